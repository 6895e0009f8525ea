"""An ideal medium: everything becomes durable exactly in the order in which it was issued. Trusted.

    write             joins the end of one queue
    persist           on return, everything issued before the call is durable, in whatever file
    crash             a prefix of the queue is on the medium
    failed persist    forces nothing; the queue stays as it is

It answers "what should be possible": a fault found here is one of logic, not of write order.
"""

from __future__ import annotations

from ..medium import Operation, Persist, Rules, State


class Strict(Rules):
    """See the rules above."""

    name = "strict"

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Always."""
        return True

    def forces(self, persist: Persist, operation: Operation) -> bool:
        """The whole queue."""
        return True

    def forgets(self, persist: Persist, operation: Operation) -> bool:
        """Never."""
        return False

    def canonical(self, state: State) -> State:
        """The queue without writes of what the queue before them leaves there anyway."""
        content = list(state.base)
        kept = []
        for operation in state.outstanding:
            if content[operation.place] != operation.content:
                content[operation.place] = operation.content
                kept.append(operation._replace(thread=0, note=0))
        return State(state.base, tuple(kept))
