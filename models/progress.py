"""What a checkpointer has done so far: counts, the time it held the training, and how far behind the medium is."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from lastgood.core import Ticket

STALENESS_SAMPLES = 4096


@dataclass(frozen=True)
class Progress:
    """A snapshot of a checkpointer's counts.

    `saves` were started: `published`, `superseded`, `skipped` and `failed` have ended so, the rest is in flight.
    `stalled_seconds` is the time that `step` and `save` held the training, and that updates waited for copies;
    `update_wait_seconds` is that last part of it. `staleness_steps` has one sample for each
    save (the newest 4096): steps between the newest started and the newest durable save, right after starting it.
    """

    saves: int
    published: int
    superseded: int
    skipped: int
    failed: int
    newest_started_step: int | None
    newest_durable_step: int | None
    stalled_seconds: float
    longest_stall_seconds: float
    update_wait_seconds: float
    encode_seconds: float
    state_bytes: int
    staleness_steps: tuple[int, ...]


class Tracker:
    """Follows the tickets of one run. Used by the training's thread only."""

    def __init__(self) -> None:
        self.in_flight: list[Ticket] = []
        self.state_bytes = 0
        self.encode_seconds = 0.0
        self._counts = {"published": 0, "superseded": 0, "skipped": 0, "failed": 0}
        self._saves = 0
        self._stalls = 0.0
        self._longest_stall = 0.0
        self._started_step: int | None = None
        self._durable_step: int | None = None
        self._durable_sequence = 0
        self._failed: list[Ticket] = []
        self._ended: list[tuple[int, bool]] = []
        self._staleness: deque[int] = deque(maxlen=STALENESS_SAMPLES)

    @property
    def durable_step(self) -> int | None:
        """Step of the newest save that is known to be durable."""
        self.look()
        return self._durable_step

    def restored(self, step: int, sequence: int) -> None:
        """A checkpoint was restored: it is the newest durable one."""
        self._durable_step, self._durable_sequence = step, sequence

    def started(self, ticket: Ticket) -> None:
        """A save was started."""
        self._saves += 1
        self._started_step = ticket.step
        self.in_flight.append(ticket)

    def sample_staleness(self) -> None:
        """Note how far the newest durable save is behind the newest started one; nothing durable counts from step 0."""
        if self._started_step is not None:
            self._staleness.append(self._started_step - (self._durable_step or 0))

    def held(self, seconds: float) -> None:
        """The training was held for so long."""
        self._stalls += seconds
        self._longest_stall = max(self._longest_stall, seconds)

    def has_news(self) -> bool:
        """Whether the oldest save in flight has ended, or an end was not taken yet. Costs next to nothing."""
        return bool(self._failed or self._ended or (self.in_flight and self.in_flight[0].done))

    def tell_of_failures(self, ticket: Ticket | None) -> None:
        """Raise one SaveFailed for the saves that failed and were not told of.

        `ticket` is the save just started. Should it have failed already, that is left to the next call: whoever is told
        of a failure by `save` may rely on its own save being under way.
        """
        self.look()
        failed = [each for each in self._failed if each is not ticket]
        if not failed:
            return
        self._failed = [each for each in self._failed if each is ticket]
        failure = failed[0].failure()
        if len(failed) > 1:
            failure.args = (f"{failure} (and {len(failed) - 1} more saves failed)",)
        failure.ticket = ticket
        raise failure

    def take_ended(self) -> list[tuple[int, bool]]:
        """Step, and whether it became durable, of the saves that have ended and were not taken yet."""
        self.look()
        ended, self._ended = self._ended, []
        return ended

    def look(self) -> None:
        """Count the saves that have ended. A signal handler may look while somebody looks: each end is counted once."""
        for ticket in tuple(self.in_flight):
            if ticket.durable and ticket.sequence > self._durable_sequence:
                self._durable_step, self._durable_sequence = ticket.step, ticket.sequence
            if not ticket.done:
                continue
            try:
                self.in_flight.remove(ticket)  # one call of the interpreter: whoever comes second finds it gone
            except ValueError:
                continue
            self._counts[ticket.outcome] += 1
            self._ended.append((ticket.step, ticket.durable))
            if ticket.outcome == "failed":
                self._failed.append(ticket)

    def snapshot(self, update_wait_seconds: float = 0.0) -> Progress:
        """The numbers now."""
        self.look()
        return Progress(
            saves=self._saves,
            **self._counts,
            newest_started_step=self._started_step,
            newest_durable_step=self._durable_step,
            stalled_seconds=self._stalls + update_wait_seconds,
            longest_stall_seconds=self._longest_stall,
            update_wait_seconds=update_wait_seconds,
            encode_seconds=self.encode_seconds,
            state_bytes=self.state_bytes,
            staleness_steps=tuple(self._staleness),
        )
