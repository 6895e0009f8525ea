"""An ideal medium: writes become durable exactly in the order in which they were issued. Trusted.

    write(place)      joins the end of one queue
    persist(file)     on return, every write to that file, and so every write issued before one, is durable
    crash             a prefix of the queue is on the medium
    failed persist    forces nothing; the writes stay in the queue

It answers "what should be possible": a fault found here is one of logic, not of write order.
"""

from __future__ import annotations

from ..medium import Operation, Persist, State


class Strict:
    """See the rules above."""

    name = "strict"

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Always."""
        return True

    def forces(self, persist: Persist, operation: Operation, file: int) -> bool:
        """The file's own writes; what came before them follows from the order."""
        return file == persist.file

    def forgets(self, persist: Persist, operation: Operation, file: int) -> bool:
        """Never."""
        return False

    def canonical(self, state: State) -> State:
        """The queue as it is, without its leading writes that change nothing."""
        outstanding = state.outstanding
        while outstanding and state.base[outstanding[0].place] == outstanding[0].content:
            outstanding = outstanding[1:]
        return State(state.base, tuple(each._replace(thread=0) for each in outstanding))
