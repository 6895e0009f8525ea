"""Stores to mapped memory, cut into micro-operations, for `mmap` and persistent memory. Trusted.

    store t W x    thread t stores x in word W, through the cache        msync A…    a persist of these sectors' pages
    nt t W x       the same past the cache                               fsync       a persist of the whole file
    clwb t A       thread t begins to write line A back                  persist t   clwb of every line, then sfence
    sfence t       thread t waits for what it began

A word is 8 bytes, named by its line (on a disk, its sector) and its number there: A0, A1, B0. Contents are written in
the order of the words' names, a point for a word that still holds what it held at first.
"""

from __future__ import annotations

from collections.abc import Callable

from ..medium import NO_FILE, Medium, Operation, Persist, Rules, State
from .calls import Call, Program

FILE = 0
NON_TEMPORAL = 1
"""The note of a store past the cache."""

UNTOUCHED = "."


def ordered_in_lines(line_of: Callable[[int], int], earlier: Operation, later: Operation) -> bool:
    """Whether two stores keep their order: within one word; and within one line or sector, through the cache."""
    if earlier.overlaps(later):
        return True
    through_cache = NON_TEMPORAL not in (earlier.note, later.note)
    return through_cache and line_of(earlier.place) == line_of(later.place)


def written_images(medium: Medium, state: State) -> set[str]:
    """Every content that a power loss can leave in this state, a letter a place."""
    images = medium.images(state, lambda image: image)
    return {"".join(chr(content) if content else UNTOUCHED for content in each.image) for each in images}


class Memory:
    """Words of one mapped file, which the threads of a program store to."""

    def __init__(self, rules: Callable[[Callable[[int], int]], Rules], program: Program) -> None:
        """Run this program on the rules that this makes of the line of each place; its words are those that it names."""
        self._words = sorted({call.arguments[1] for call in program if call.name in ("store", "nt")})
        self.rules = rules(lambda place: ord(self._words[place][0]))
        self.medium = Medium(self.rules)
        self.state = State((0,) * len(self._words), ())
        for call in program:
            self._do(call)

    def images(self) -> set[str]:
        """Every content that a power loss can leave now."""
        return written_images(self.medium, self.state)

    def _do(self, call: Call) -> None:
        state, arguments = self.state, call.arguments
        if call.name in ("store", "nt"):
            thread, word, content = arguments
            note = NON_TEMPORAL if call.name == "nt" else 0
            operation = Operation(self._words.index(word), ord(content), int(thread), False, (FILE, ord(word[0])), note)
            self.state = self.medium.issue(state, operation)
        elif call.name == "clwb":
            self.state = self.rules.write_back(state, ord(arguments[1]), int(arguments[0]))
        elif call.name == "sfence":
            self.state = self.medium.persist(state, Persist(NO_FILE, int(arguments[0])))
        elif call.name == "persist":
            for line in {word[0] for word in self._words}:
                self.state = self.rules.write_back(self.state, ord(line), int(arguments[0]))
            self.state = self.medium.persist(self.state, Persist(NO_FILE, int(arguments[0])))
        elif call.name in ("msync", "fsync"):
            self.state = self._written_back(call)
        else:
            raise ValueError(f"memory knows no call {call.name!r}")

    def _written_back(self, call: Call) -> State:
        """After the kernel's own persist of some sectors, or of all."""
        ranges = [ord(each) for each in "".join(call.arguments)] if call.name == "msync" else [FILE]
        persists = [Persist(each, NO_FILE) for each in ranges]
        if call.failed:
            state = self.state
            for persist in persists:
                state = self.medium.fail_persist(state, persist)
            return state
        forces = self.rules.forces
        return self.medium.settle(
            self.state, [any(forces(persist, each) for persist in persists) for each in self.state.outstanding]
        )
