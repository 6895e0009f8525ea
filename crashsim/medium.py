"""One definition of what a crash can leave: images as order ideals of micro-operations. Trusted; pinned by litmus tests.

A medium is a row of *places*, each the largest unit that is never torn. What a program does is cut into
*micro-operations*, each of which happens to its place or not at all. A micro-operation is *outstanding* until a persist
that covers it has returned:

    base image      what is on the medium for certain
    outstanding     micro-operations issued since, oldest first, any of which may or may not be there

    crash image  =  base + D, folded in issue order, for any set D of outstanding micro-operations that is
                    downward closed:  whatever the medium orders before a member of D is in D too

Everything that a returned persist forced has left the outstanding ones and is in the base, so every image contains
it. What differs from medium to medium is a few rules (`Rules`); each medium is one small module in `media/`.

M1 forced-is-kept    no image lacks an operation that a returned persist forced
M2 closed            every image is downward closed under `ordered`
M3 all-of-them       every downward-closed set gives an image; none is left out
M4 view              a process crash changes nothing here: the next program sees every write (`visible`), while a later
                     power loss still chooses among the same images

Contents are small ints that only mean something to the program under test; states are plain tuples, so that they can be
hashed, compared and interned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from .promises import PROMISES


class Operation(NamedTuple):
    """One micro-operation: `content` written to `place` by `thread`.

    `forgotten` is set when a persist that should have covered it failed: the cache holds it as clean, so no later
    persist brings it to the medium. Whether it got there is open.
    """

    place: int
    content: int
    thread: int = 0
    forgotten: bool = False
    scope: tuple[int, ...] = ()
    """The files, directories or ranges whose persist covers it."""
    note: int = 0
    """What else its medium has to know of it; each medium names its own."""
    also: tuple[tuple[int, int], ...] = ()
    """Further places and contents that change in the same instant."""

    def effects(self) -> tuple[tuple[int, int], ...]:
        """Every place that it changes, with what it puts there."""
        return ((self.place, self.content), *self.also)

    def overlaps(self, other: Operation) -> bool:
        """Whether both change some place."""
        if not self.also and not other.also:
            return self.place == other.place
        return not {place for place, _ in self.effects()}.isdisjoint(place for place, _ in other.effects())


Image = tuple[int, ...]
"""The content of every place."""


class State(NamedTuple):
    """A medium at one moment."""

    base: Image
    outstanding: tuple[Operation, ...]


class Persist(NamedTuple):
    """A persist of `file` (or directory, or range) asked for by `thread`."""

    file: int
    thread: int
    data_only: bool = False
    """Whether what only names the file is left out, as fdatasync does."""


NO_FILE = -1
"""What a fence persists: nothing by name, only what its thread has stored."""


class Rules(Protocol):
    """What distinguishes one medium from another."""

    name: str
    persist_per_thread: bool = False
    """Whether every writer has to persist what it wrote itself, before it is joined."""
    payload_note: int = 0
    """The note of a micro-operation that writes payload."""
    reports_failure: bool = True
    """Whether a persist that forces nothing says so; a disk that lies does not."""
    names_follow_files: bool = False
    """Whether a persist of a file covers the names it has."""
    faults: int = 0
    """How many faults a search allows here when nobody says how many."""
    promises: tuple[str, ...] = tuple(PROMISES)
    """What the store claims on this medium."""
    digests: tuple[str, ...] = ("trusted", "ignored")
    """With which ways of recovering it claims that."""

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Whether `earlier`, issued before `later`, must be durable no later than it."""

    def forces(self, persist: Persist, operation: Operation) -> bool:
        """Whether this persist, when it returns, has made this earlier operation durable."""

    def forgets(self, persist: Persist, operation: Operation) -> bool:
        """Whether this persist, when it fails, leaves this earlier operation where no later persist reaches it."""

    def write_back(self, state: State, line: int, thread: int) -> State:
        """The state after a thread began to write one of its processor's cache lines back; the same on most media."""
        return state

    def evictions(self, state: State) -> list[State]:
        """What else a program may read, and a later power loss leave, without anybody having done anything."""
        return []

    def canonical(self, state: State) -> State:
        """An equal state in a form that equal states share, for writes of one place each (see `settled_places`)."""


class CrashImage(NamedTuple):
    """One possible content after a power loss, and which outstanding operations (by index) had to be lost for it."""

    image: Image
    lost: tuple[int, ...]


class Medium:
    """The operations of one medium, over immutable states."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def issue(self, state: State, operation: Operation) -> State:
        """The state after one micro-operation was issued."""
        return State(state.base, (*state.outstanding, operation))

    def persist(self, state: State, persist: Persist) -> State:
        """The state after a persist returned: what it forces, and what is ordered before that, joins the base (M1)."""
        return self.settle(state, [self.rules.forces(persist, each) for each in state.outstanding])

    def settle(self, state: State, forced: Iterable[bool]) -> State:
        """The state after these outstanding operations, and what is ordered before them, became durable."""
        is_forced = list(forced)
        if True not in is_forced:
            return state
        for index in range(len(is_forced) - 1, -1, -1):
            if is_forced[index]:
                for earlier in range(index):
                    if not is_forced[earlier] and self.rules.ordered(
                        state.outstanding[earlier], state.outstanding[index]
                    ):
                        is_forced[earlier] = True
        left = tuple(each for each, gone in zip(state.outstanding, is_forced, strict=True) if not gone)
        return State(fold(state, [index for index, gone in enumerate(is_forced) if gone]), left)

    def fail_persist(self, state: State, persist: Persist) -> State:
        """The state after a persist failed: nothing is forced, and some operations are forgotten."""
        outstanding = tuple(
            each._replace(forgotten=True) if self.rules.forgets(persist, each) else each for each in state.outstanding
        )
        return State(state.base, outstanding)

    def visible(self, state: State) -> Image:
        """What a program reads while the machine is up: every write, durable or not (M4)."""
        return fold(state, range(len(state.outstanding)))

    def images(self, state: State, collapse: Callable[[Image], Image]) -> list[CrashImage]:
        """Every image a power loss can leave (M2, M3), equal ones once, each with the fewest operations lost.

        `collapse` maps an image to the one that stands for all images the program under test cannot tell apart.
        The order is fixed, the image that lost least first: replay strings count on it.
        """
        every = range(len(state.outstanding))
        plain: dict[Image, tuple[int, ...]] = {}  # the same before it is collapsed, which costs more than folding
        for kept in ideals(state.outstanding, self.rules.ordered):
            image = fold(state, kept)
            lost = tuple(index for index in every if index not in kept)
            known = plain.get(image)
            if known is None or (len(lost), lost) < (len(known), known):
                plain[image] = lost
        fewest: dict[Image, tuple[int, ...]] = {}
        for image, lost in plain.items():
            collapsed = collapse(image)
            known = fewest.get(collapsed)
            if known is None or (len(lost), lost) < (len(known), known):
                fewest[collapsed] = lost
        found = [CrashImage(image, lost) for image, lost in fewest.items()]
        return sorted(found, key=lambda each: (len(each.lost), each.lost, each.image))


def fold(state: State, kept: Sequence[int]) -> Image:
    """The base with the operations at these indices applied in issue order."""
    image = list(state.base)
    for index in kept:
        operation = state.outstanding[index]
        image[operation.place] = operation.content
        for place, content in operation.also:
            image[place] = content
    return tuple(image)


def ideals(operations: Sequence[Operation], ordered: Callable[[Operation, Operation], bool]) -> list[tuple[int, ...]]:
    """Every downward-closed set of these operations, each as its indices in issue order."""
    found: list[tuple[int, ...]] = [()]
    for index, operation in enumerate(operations):
        needed = {earlier for earlier in range(index) if ordered(operations[earlier], operation)}
        found += [(*kept, index) for kept in found if needed.issubset(kept)]
    return found


def settled_places(state: State, owner: Callable[[Operation], tuple[int, int]] = lambda operation: (0, 0)) -> State:
    """The canonical form where nothing is ordered but writes to one place. `owner` is the thread and note that matter.

    All that matters of a place is which contents it may have, which one is read, and what a persist would make of it.
    So of neighbouring writes of one owner the earlier ones are a set, and a write that leaves no doubt is none.
    """
    writes: dict[int, list[Operation]] = {}
    for operation in state.outstanding:
        thread, note = owner(operation)
        if thread != operation.thread or note != operation.note:
            operation = operation._replace(thread=thread, note=note)
        writes.setdefault(operation.place, []).append(operation)
    kept: list[Operation] = []
    for place in sorted(writes):
        known = {state.base[place]}
        if len(writes[place]) == 1:
            kept += [each for each in writes[place] if each.content not in known]
            continue
        for _, run in groupby(writes[place], _by):
            contents = list(run)
            last = contents[-1]
            before = {each.content for each in contents} - known - {last.content}
            if before or last.content not in known:
                kept += [last._replace(content=content) for content in sorted(before)]
                kept.append(last)
                known = set()
    return State(state.base, tuple(kept))


def _by(operation: Operation) -> tuple[int, int]:
    return operation.thread, operation.note
