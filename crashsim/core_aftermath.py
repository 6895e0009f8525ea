"""What comes after a crash: recovery, crashed at every step and started again, to any depth, and judged. Trusted.

From one state of the medium, `Aftermath.judge` follows everything that can happen without another save:

    crash ──> survey ──> make_ready ─┬─ step ─┬─ step ─┬─ … ─┬─> ready ──> crash ──> …
      ^                              │        │        │     │
      └────────── crash ─────────────┴────────┴────────┴─────┘        a crash is a power loss (any image) or a
                                                                       process crash (the cache is what is read)

Media that were met before are not followed twice, and there are finitely many. Judged everywhere, beside what one
recovery alone must get right (`core_recovery`):

    newest-survives   the lowest sequence that any of these recoveries returns (the caller compares it with what was
                      acknowledged); a recovery from a medium with nothing outstanding, interrupted, finds the same
                      again (R6); what a completed recovery returned is found again after any crash (R3)
    monotone          after a completed recovery, sequences go on above every record that any image can show (R5)

A path is written down as  P3:2K/P0  =  power loss leaving image 3; recovery, crashed after its second step; process
crash; recovery, completed; power loss leaving image 0. `:2x` says that the second step was a persist that failed, K1
that clean pages were dropped from the cache, in the first of the ways in which they can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .core_recovery import Recovery, Run, result_text
from .core_target import cells, rules
from .core_words import tag_text
from .promises import MONOTONE, NEWEST_SURVIVES
from .replay import split_path


class Judgement(NamedTuple):
    """Everything that recoveries from one medium can come to."""

    lowest: int
    lowest_path: str
    returned: dict[int, str]  # content of each record that a recovery returns -> path
    problems: dict[str, tuple[str, str]]  # promise -> (path, what happened)
    ready: dict[tuple[int, tuple[int, ...]], str]  # (medium, cells) -> path of a completed recovery


class Aftermath:
    """Everything that can follow a crash, under one way of recovering."""

    def __init__(self, recovery: Recovery, *, faults: bool) -> None:
        """With `faults`, a persist of recovery itself may fail; the store is not opened then, and is opened again."""
        self.recovery = recovery
        self.store = recovery.store
        self.digests = recovery.digests
        self.faults = faults
        self._crashes: dict[int, list[tuple[str, int]]] = {}
        self._judgements: dict[int, Judgement] = {}
        self._settled_judgements: dict[int, Judgement] = {}
        self._onwards: dict[int, tuple[list[tuple[str, int]], list[tuple[str, str, str]]]] = {}

    def crashes(self, medium: int) -> list[tuple[str, int]]:
        """Every crash from here: how it is written down, and the medium that recovery finds."""
        found = self._crashes.get(medium)
        if found is None:
            found = [("K", medium)]
            found += [(f"K{index}", each) for index, each in enumerate(self.store.evictions(medium), 1)]
            found += [(f"P{index}", each) for index, (each, _) in enumerate(self.store.power_losses(medium))]
            self._crashes[medium] = found
        return found

    def judge(self, medium: int) -> Judgement:
        """Follow every crash and recovery from here."""
        found = self._judgements.get(medium)
        if found is None:
            found = self._judgements[medium] = self._follow(self.crashes(medium), whole=False)
        return found

    def _settled(self, start: int) -> Judgement:
        """Follow every crash and recovery from the recovery that starts here, with nothing outstanding."""
        found = self._settled_judgements.get(start)
        if found is None:
            found = self._settled_judgements[start] = self._follow([("", start)], whole=True)
        return found

    def _follow(self, starts: list[tuple[str, int]], *, whole: bool) -> Judgement:
        """Nearest first; what follows from a settled medium is computed once for all that lead there, unless `whole`."""
        lowest, lowest_path = rules.SEQUENCE_LIMIT, ""
        returned: dict[int, str] = {}
        problems: dict[str, tuple[str, str]] = {}
        ready: dict[tuple[int, tuple[int, ...]], str] = {}
        queue = list(starts)
        seen = {start for _, start in queue}
        for path, start in queue:
            if not whole and not self.store.outstanding(start):
                known = self._settled(start)
                if known.lowest < lowest:
                    lowest, lowest_path = known.lowest, path + known.lowest_path
                for content, rest in known.returned.items():
                    returned.setdefault(content, path + rest)
                for promise, (rest, sentence) in known.problems.items():
                    problems.setdefault(promise, (path + rest, sentence))
                if "/" not in path:  # one life at a time
                    for end, rest in known.ready.items():
                        ready.setdefault(end, path + rest)
                continue
            run = self.recovery.run(start)
            sequence = rules.sequence_of(run.recovered)
            if sequence < lowest:
                lowest, lowest_path = sequence, path
            returned.setdefault(run.content, path)
            if run.ready >= 0 and "/" not in path:
                ready.setdefault((run.ready, run.cells), path + "/")
            onward, found = self._onward(start)
            for promise, piece, sentence in found:
                problems.setdefault(promise, (path + piece, sentence))
            for piece, following in onward:
                if following not in seen:
                    seen.add(following)
                    queue.append((path + piece, following))
        return Judgement(lowest, lowest_path, returned, problems, ready)

    def _onward(self, start: int) -> tuple[list[tuple[str, int]], list[tuple[str, str, str]]]:
        """Every medium that a crash during or after this recovery leaves, and all that was wrong on the way there."""
        found = self._onwards.get(start)
        if found is None:
            run = self.recovery.run(start)
            following: dict[int, str] = {}
            agree: set[int] = set()
            problems = [(promise, "", sentence) for promise, sentence in run.problems]
            settled = not self.store.outstanding(start)
            for piece, left in self._ends_of(run):
                completed = piece == "/"
                for crash, medium in self.crashes(left):
                    if medium not in following:
                        following[medium] = piece + crash
                    if (completed or settled or crash == "K") and (completed or medium not in agree):
                        agree.add(medium)
                        wrong = self._disagreements(run, medium, completed)
                        problems += [(promise, piece + crash, sentence) for promise, sentence in wrong]
            found = self._onwards[start] = ([(piece, medium) for medium, piece in following.items()], problems)
        return found

    def _ends_of(self, run: Run) -> Iterator[tuple[str, int]]:
        """Where a recovery can be crashed: after each of its steps, after one that fails, at its end."""
        for count, stage in enumerate(run.stages, 1):
            yield f":{count}", stage.medium
            if self.faults and stage.failed >= 0:
                yield f":{count}x", stage.failed
        if run.ready >= 0:
            yield "/", run.ready

    def _disagreements(self, run: Run, following: int, completed: bool) -> Iterable[tuple[str, str]]:
        """What differs between a recovery and the next one, with no save in between."""
        again = self.recovery.run(following)
        behind = completed and again.highest > run.cells[cells.SEQUENCE]
        return self._told(run, again, completed, behind) if behind or again.recovered != run.recovered else ()

    def _told(self, run: Run, again: Run, completed: bool, behind: bool) -> Iterator[tuple[str, str]]:
        """The same for people."""
        if again.recovered != run.recovered:
            what = "a completed recovery" if completed else "an interrupted recovery"
            yield NEWEST_SURVIVES, f"{what} returned {tag_text(run.recovered)}, the next one {result_text(again)}"
        if behind:
            yield (
                MONOTONE,
                (
                    f"sequences go on after {run.cells[cells.SEQUENCE]}, but the medium can still show the record of "
                    f"sequence {again.highest}"
                ),
            )

    def result_at(self, medium: int, path: str) -> str:
        """What the recovery at the end of this path returns, for people."""
        return result_text(self.recovery.run(self.arrive(medium, path)))

    def arrive(self, medium: int, path: str) -> int:
        """The medium that the last crash of this path leaves, or that its last recovery ends on."""
        for crash, during in split_path(path):
            medium = self.recovery.left_by(dict(self.crashes(medium))[crash], during)
        return medium
