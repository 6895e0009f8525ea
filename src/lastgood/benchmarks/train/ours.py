"""lastgood as a contender: boundary or lazy capture, so many in flight, any overload policy."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from lastgood.core import SaveSkipped, Ticket
from lastgood.models import Checkpointer

from .contender import KEPT, Contender
from .job import Job

LAZY_STAGING = 0.5
"""Staging memory of lazy capture, in states: copying overlaps writing, so half a state is enough.

A policy that refuses saves rather than wait must not wait for staging memory either: one state for each save in flight.
"""


class Lastgood(Contender):
    """A `Checkpointer`, used as its page says."""

    is_durable = True

    def __init__(self, capture: str, in_flight: int, overload: str = "block") -> None:
        super().__init__()
        self.name = f"lastgood-{capture}-{in_flight}" + ("" if overload == "block" else f"-{overload}")
        self.places = in_flight
        self.warm_saves = in_flight + KEPT  # every slot is written once
        self._capture, self._overload = capture, overload
        self._tickets: list[Ticket] = []
        self._newest: int | None = None
        self._count = 0
        self._job: Job
        self._directory = ""

    def begin(self, job: Job, directory: str) -> None:
        """Make the checkpointer; its store is made by the first save."""
        self._job, self._directory = job, f"{directory}/store"
        self.checkpointer = Checkpointer(self._directory, job.parts(), **self._options(job))

    def _options(self, job: Job) -> dict[str, Any]:
        options: dict[str, Any] = {"every": 10**9, "rng": False, "in_flight": self.places, "keep": KEPT}
        options |= {"capture": self._capture, "overload": self._overload}
        if self._capture == "lazy":
            states = LAZY_STAGING if self._overload == "block" else self.places
            options["staging_bytes"] = int(states * job.state_bytes)
        return options

    def save(self, step: int) -> None:
        """Save now."""
        self._tickets.append(self.checkpointer.save(step))

    def _look(self) -> None:
        ended = [ticket for ticket in self._tickets if ticket.done]
        if ended:
            self._tickets = [ticket for ticket in self._tickets if not ticket.done]
        for ticket in ended:
            if ticket.durable:
                self._count += 1
                self._newest = max(self._newest or 0, ticket.step)
            else:
                self.dropped += ticket.outcome == "skipped"

    def newest_durable_step(self) -> int | None:
        """By the tickets."""
        self._look()
        return self._newest

    def durable_count(self) -> int:
        """By the tickets."""
        self._look()
        return self._count

    def drain(self) -> None:
        """Until all tickets are done."""
        self.checkpointer.capture.settle()
        for ticket in self._tickets:
            with contextlib.suppress(SaveSkipped):
                ticket.wait()
        self._look()

    def load(self) -> dict[str, torch.Tensor]:
        """Restore into a second job of the same size."""
        self.checkpointer.close()
        fresh = self._job.twin()
        with Checkpointer(self._directory, fresh.parts(), **self._options(fresh)) as other:
            other.restore()
        return fresh.tensors()

    def close(self) -> None:
        """Close the store."""
        self.checkpointer.close()
