"""One definition of what a crash can leave: images as order ideals of micro-operations. Trusted; pinned by litmus tests.

A medium is a row of *places*, each the largest unit that is never torn. A write is cut into *micro-operations*, one a
place. A micro-operation is *outstanding* until a persist that covers it has returned:

    base image      what is on the medium for certain
    outstanding     micro-operations issued since, oldest first, any of which may or may not be there

    crash image  =  base + D, folded in issue order, for any set D of outstanding micro-operations that is
                    downward closed:  whatever the medium orders before a member of D is in D too

Everything that a returned persist forced has left the outstanding ones and is in the base, so every image contains
it. What differs from medium to medium is four rules (`Rules`); each medium is one small module in `media/`.

M1 forced-is-kept    no image lacks an operation that a returned persist forced
M2 closed            every image is downward closed under `ordered`
M3 all-of-them       every downward-closed set gives an image; none is left out
M4 view              a process crash changes nothing here: the next program sees every write (`visible`), while a later
                     power loss still chooses among the same images

Contents are small ints that only mean something to the program under test; states are plain tuples, so that they can be
hashed, compared and interned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class Operation(NamedTuple):
    """One micro-operation: `content` written to `place` by `thread`.

    `forgotten` is set when a persist that should have covered it failed: the cache holds it as clean, so no later
    persist brings it to the medium. Whether it got there is open.
    """

    place: int
    content: int
    thread: int
    forgotten: bool


Image = tuple[int, ...]
"""The content of every place."""


class State(NamedTuple):
    """A medium at one moment."""

    base: Image
    outstanding: tuple[Operation, ...]


class Persist(NamedTuple):
    """A persist of `file` asked for by `thread`."""

    file: int
    thread: int


class Rules(Protocol):
    """What distinguishes one medium from another. `file` is the file that a micro-operation's place belongs to."""

    name: str

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Whether `earlier`, issued before `later`, must be durable no later than it."""

    def forces(self, persist: Persist, operation: Operation, file: int) -> bool:
        """Whether this persist, when it returns, has made this earlier operation durable."""

    def forgets(self, persist: Persist, operation: Operation, file: int) -> bool:
        """Whether this persist, when it fails, leaves this earlier operation where no later persist reaches it."""

    def canonical(self, state: State) -> State:
        """An equal state in a form that equal states share; may reorder or drop what makes no difference."""


class CrashImage(NamedTuple):
    """One possible content after a power loss, and which outstanding operations (by index) had to be lost for it."""

    image: Image
    lost: tuple[int, ...]


class Medium:
    """The operations of one medium, over immutable states."""

    def __init__(self, rules: Rules, file_of_place: Sequence[int]) -> None:
        """`file_of_place[place]` is the file that a persist must name to cover the place."""
        self.rules = rules
        self.file_of_place = tuple(file_of_place)

    def write(self, state: State, place: int, content: int, thread: int = 0) -> State:
        """The state after one micro-operation was issued."""
        operation = Operation(place, content, thread, False)
        return self.rules.canonical(State(state.base, (*state.outstanding, operation)))

    def persist(self, state: State, persist: Persist) -> State:
        """The state after a persist returned: what it forces, and what is ordered before that, joins the base (M1)."""
        forced = [self.rules.forces(persist, each, self.file_of_place[each.place]) for each in state.outstanding]
        for index in range(len(forced) - 1, -1, -1):
            if forced[index]:
                for earlier in range(index):
                    if self.rules.ordered(state.outstanding[earlier], state.outstanding[index]):
                        forced[earlier] = True
        base = list(state.base)
        left = []
        for operation, is_forced in zip(state.outstanding, forced, strict=True):
            if is_forced:
                base[operation.place] = operation.content
            else:
                left.append(operation)
        return self.rules.canonical(State(tuple(base), tuple(left)))

    def fail_persist(self, state: State, persist: Persist) -> State:
        """The state after a persist failed: nothing is forced, and some operations are forgotten."""
        outstanding = tuple(
            each._replace(forgotten=True) if self.rules.forgets(persist, each, self.file_of_place[each.place]) else each
            for each in state.outstanding
        )
        return self.rules.canonical(State(state.base, outstanding))

    def visible(self, state: State) -> Image:
        """What a program reads while the machine is up: every write, durable or not (M4)."""
        return fold(state, range(len(state.outstanding)))

    def images(self, state: State, collapse: Callable[[Image], Image]) -> list[CrashImage]:
        """Every image a power loss can leave (M2, M3), equal ones once, each with the fewest operations lost.

        `collapse` maps an image to the one that stands for all images the program under test cannot tell apart.
        The order is fixed, the image that lost least first: replay strings count on it.
        """
        fewest: dict[Image, tuple[int, ...]] = {}
        count = len(state.outstanding)
        for kept in ideals(state.outstanding, self.rules.ordered):
            members = set(kept)
            lost = tuple(index for index in range(count) if index not in members)
            image = collapse(fold(state, kept))
            known = fewest.get(image)
            if known is None or (len(lost), lost) < (len(known), known):
                fewest[image] = lost
        found = [CrashImage(image, lost) for image, lost in fewest.items()]
        return sorted(found, key=lambda each: (len(each.lost), each.lost, each.image))


def fold(state: State, kept: Sequence[int]) -> Image:
    """The base with the operations at these indices applied in issue order."""
    image = list(state.base)
    for index in kept:
        operation = state.outstanding[index]
        image[operation.place] = operation.content
    return tuple(image)


def ideals(operations: Sequence[Operation], ordered: Callable[[Operation, Operation], bool]) -> list[tuple[int, ...]]:
    """Every downward-closed set of these operations, each as its indices in issue order."""
    found: list[tuple[int, ...]] = [()]
    for index, operation in enumerate(operations):
        needed = {earlier for earlier in range(index) if ordered(operations[earlier], operation)}
        found += [(*kept, index) for kept in found if needed.issubset(kept)]
    return found
