"""The demo's training job, run in a child process that may be killed at any moment. Checked by `tests/demo/`.

An ordinary loop: AdamW, dropout, a learning rate that rises and falls, clipped gradients, sample ids from a resumable
sampler. What it does about crashes is the few lines of `train_with_saves`. All it learns it reports to the supervisor:

    restored(step) ─┬─▶ step(n, loss, samples) ──▶ saved(started, durable, stalled) ─┬─▶ finished(digests)
                    │            │ then, if due, the save of n starts                │
                    └────────────┴─── durable(step), at once, from a second thread ◀─┘

J1 step-before-save     a step is reported before its save starts: no checkpoint is newer than the newest step reported
J2 durable-is-durable   a save is reported durable only after its ticket says so
"""

from __future__ import annotations

import hashlib
import queue
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from lastgood.core import SaveFailed, Store, Ticket
from lastgood.core.layout import slot_name
from lastgood.core.rules import PAGE_BYTES

from . import Checkpointer, ResumableSampler
from .demo_language import PASSAGES, LanguageModel, Text
from .demo_process import SIZES, Job

if TYPE_CHECKING:
    from .demo_process import Reports

BATCH = 4
PEAK_RATE = 2e-3
LONGEST_GRADIENT = 1.0
TIMED_SAVES = 7


def prepare() -> None:
    """Load once, for all children, what a first step, a first save and a first restore load.

    No thread is left when this returns, so that forking is harmless: the store is closed, and there was no backward pass.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    trial = Training(Job(steps=10, seed=0, size="tiny"))
    for parameter in trial.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    trial.optimizer.step()
    with tempfile.TemporaryDirectory() as directory:
        with Checkpointer(directory, trial.state()) as checkpointer:
            checkpointer.save(1)
        with Checkpointer(directory, trial.state()) as checkpointer:
            checkpointer.restore()


def run(job: Job, reports: Reports) -> None:
    """Train to the end, from the newest checkpoint if the job has a directory."""
    training = Training(job)
    if job.directory:
        train_with_saves(training, job, reports)
    else:
        reports.send("restored", step=0)
        for step in range(1, job.steps + 1):
            reports.send("step", step=step, beside=0, **training.step())
    digests = training.digests()
    seconds = synchronous_save_seconds(training, job) if job.scratch else None
    size = sum(3 * parameter.nbytes for parameter in training.model.parameters())  # each with its two moments
    reports.send("finished", digests=digests, state_bytes=size, synchronous_save_seconds=seconds)


class Training:
    """Everything that makes up the state of the training, and one step of it."""

    def __init__(self, job: Job) -> None:
        random.seed(job.seed)
        np.random.seed(job.seed % 2**32)
        torch.manual_seed(job.seed)
        self.text = Text()
        self.model = LanguageModel(*SIZES[job.size])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=PEAK_RATE, weight_decay=0.01)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=PEAK_RATE, total_steps=job.steps + TIMED_SAVES + 1
        )
        self.sampler = ResumableSampler(PASSAGES, seed=job.seed)
        self._batches = iter(
            self.sampler.batches(BATCH, endless=True)
        )  # asks the sampler where it stands when first used

    def state(self) -> dict[str, Any]:
        """Name the objects to save."""
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "sampler": self.sampler,
        }

    def step(self) -> dict[str, Any]:
        """Make one update; return its loss (as hexadecimal, to the last bit) and the ids of the samples it used."""
        began = time.perf_counter()
        samples = next(self._batches)
        letters, following = self.text.batch(samples)
        self.optimizer.zero_grad(set_to_none=True)
        scores = self.model(letters)
        loss = functional.cross_entropy(scores.flatten(0, 1), following.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), LONGEST_GRADIENT)
        self.optimizer.step()
        self.scheduler.step()
        return {"loss": float(loss.item()).hex(), "samples": samples, "seconds": time.perf_counter() - began}

    def digests(self) -> dict[str, str]:
        """Digest the state by kind, bit for bit."""
        return {
            "parameters": digest(self.model.state_dict()),
            "moments": digest(self.optimizer.state_dict()),
            "schedule": digest(self.scheduler.state_dict()),
            "random streams": digest([random.getstate(), np.random.get_state(), torch.get_rng_state()]),
            "sampler": digest(self.sampler.state_dict()),
        }


def train_with_saves(training: Training, job: Job, reports: Reports) -> None:
    """Resume, train, and save every few steps with several saves in flight."""
    checkpointer = Checkpointer(
        job.directory, training.state(), every=job.every, in_flight=job.in_flight, rng=job.sabotage != "random"
    )
    witness = Witness(reports)
    in_flight: list[Ticket] = []
    if job.sabotage == "older":
        lose_acknowledged(job)
    with checkpointer:
        start = checkpointer.restore()
        if job.sabotage == "sampler":
            training.sampler.load_state_dict(ResumableSampler(PASSAGES, seed=job.seed).state_dict())
        reports.send("restored", step=start)
        for step in range(start + 1, job.steps + 1):
            in_flight = [earlier for earlier in in_flight if not earlier.done]
            reports.send("step", step=step, beside=len(in_flight), **training.step())  # J1 step-before-save
            before = time.perf_counter()
            ticket = checkpointer.step(step) if step < job.steps else checkpointer.save(step)
            stalled = time.perf_counter() - before
            if ticket is not None:
                witness.watch(ticket)
                in_flight.append(ticket)
                reports.send("saved", stalled=stalled, in_flight=sum(not earlier.done for earlier in in_flight))
        before = time.perf_counter()
    reports.send("closed", stalled=time.perf_counter() - before)
    witness.close()


def lose_acknowledged(job: Job) -> None:
    """Overwrite the newest records, down to the acknowledged one, like a medium that forgets; leave one, or do nothing."""
    with Store.open(job.directory, read_only=True) as store:
        records = store.records()
    if records and records[-1].step < job.acknowledged:
        for record in records:
            if record.step >= job.acknowledged:
                with open(f"{job.directory}/{slot_name(record.slot)}", "r+b") as slot:
                    slot.write(bytes(PAGE_BYTES))


class Witness:
    """A thread that waits for each save in turn and reports at once that it is durable."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._tickets: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="lastgood-demo-witness", daemon=True)
        self._thread.start()

    def watch(self, ticket: Ticket) -> None:
        """Report this save once it is durable."""
        self._tickets.put(ticket)

    def close(self) -> None:
        """Wait until every save has been reported."""
        self._tickets.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (ticket := self._tickets.get()) is not None:
            try:
                record = ticket.wait()  # of a superseded save: the newer record
            except SaveFailed:
                continue  # the checkpointer tells the training of it
            self._reports.send("durable", step=record.step)  # J2 durable-is-durable


def synchronous_save_seconds(training: Training, job: Job) -> float:
    """Time saves that the training waits for, each after a step as in training; return the median."""
    seconds = []
    with Checkpointer(job.scratch, training.state(), every=1, in_flight=1) as checkpointer:
        for number in range(1, TIMED_SAVES + 1):
            before = time.perf_counter()
            checkpointer.save(job.steps + number).wait()
            seconds.append(time.perf_counter() - before)
            training.step()
    return statistics.median(seconds[1:])  # the first one makes the store


def digest(value: Any) -> str:
    """Return the SHA-256 of nested containers, arrays, tensors and plain values; types and shapes count."""
    sha256 = hashlib.sha256()
    feed(sha256, value)
    return sha256.hexdigest()


def feed(sha256: Any, value: Any) -> None:
    """Add one value to a digest."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        sha256.update(f"array {value.dtype} {value.shape} ".encode())
        sha256.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        sha256.update(f"mapping {len(value)} ".encode())
        for key in sorted(value, key=repr):
            feed(sha256, repr(key))
            feed(sha256, value[key])
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        sha256.update(f"sequence {len(value)} ".encode())
        for item in value:
            feed(sha256, item)
    else:  # repr of a float gives back every bit
        sha256.update(f"{type(value).__name__} {value!r} ".encode())
