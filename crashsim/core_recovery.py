"""The real recovery programs, run on what a crash left, without another crash. Trusted.

`survey` reads every record and finds the newest whole checkpoint; `make_ready` prepares the store for savers. Each is
run as it is, over a simulated medium, with payload digests trusted or ignored. Judged here, for one recovery alone:

    never-wrong   the payload returned, and every one kept, was written whole by the save its record names
    monotone      what was found is what is published
    no-leak       every slot is free or kept, once
    loud          a step that fails ends it
"""

from __future__ import annotations

from typing import NamedTuple

from .core_target import Target, cells, recover, rules, steps
from .core_words import slots_unaccounted, tag_text
from .promises import LOUD, MONOTONE, NEVER_WRONG, NO_LEAK
from .store_layout import NOTHING, Contents, StoreMedium, tag_in

PERSISTS = (steps.PERSIST_RECORD, steps.PERSIST_EMPTY_RECORD, steps.PERSIST_PAYLOAD, steps.PERSIST_MARK)
READS_ONLY = (steps.STEP, steps.VERIFY_PAYLOAD)
"""Steps that change no medium and cannot fail; a payload that does not verify is an answer."""
TRUSTED = "trusted"
IGNORED = "ignored"


class Stage(NamedTuple):
    """The medium after one step of a recovery that changed it."""

    step: int
    slot: int
    medium: int
    failed: int  # the medium, had this step been a persist that failed; −1 when it cannot


class Run(NamedTuple):
    """One recovery without a crash: what it returned, what it did, where it ended, what was wrong with it."""

    recovered: int
    content: int  # of the record it returned
    highest: int  # the highest sequence in any valid record it read
    refused: bool
    changes: tuple[tuple[int, int], ...]  # its steps that change the medium, each with the slot
    cells: tuple[int, ...]
    problems: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...] = ()
    ready: int = -1  # the medium at the end; −1 when recovery refused


class Recovery:
    """Recoveries of one target over one medium, with payload digests trusted or ignored; each start run once."""

    def __init__(
        self, target: Target, store: StoreMedium, keep: int, one_persist: int, digests: str, *, faults: bool = False
    ) -> None:
        """With `faults`, it is also seen to that recovery stops at a step that fails."""
        self.store = store
        self.faults = faults
        self.keep = keep
        self.one_persist = one_persist
        self.digests = digests
        # A disk that lies may have lost what an older record says. Its payload is verified when it is read, not now.
        self.keeps_whole = store.rules.reports_failure or digests == IGNORED
        self.survey = target.survey
        self.make_ready = target.make_ready
        self._runs: dict[int, Run] = {}
        self._courses: dict[Contents, Run] = {}
        self._stops: dict[tuple[int, ...], bool] = {}

    def run(self, start: int) -> Run:
        """Run survey and make_ready on this medium, without a crash."""
        found = self._runs.get(start)
        if found is None:
            found = self._runs[start] = self._recover(start)
        return found

    def left_by(self, start: int, during: str) -> int:
        """The medium after a recovery from here that completed, was crashed at a step, or did nothing yet."""
        if during == "/":
            return self.run(start).ready
        if not during:
            return start
        stage = self.run(start).stages[int(during.strip(":x")) - 1]
        return stage.failed if during.endswith("x") else stage.medium

    def _recover(self, start: int) -> Run:
        """What it does is told by what it finds; what becomes of the medium, also by what of that is durable."""
        contents = self.store.contents(start)
        course = self._courses.get(contents)
        if course is None:
            course = self._courses[contents] = self._course(contents)
        if course.refused:
            return course
        medium = start
        stages = []
        for step, slot in course.changes:
            stages.append(self._stage(medium, step, slot, contents))
            medium = stages[-1].medium
        return course._replace(stages=tuple(stages), ready=medium)

    def _course(self, contents: Contents) -> Run:
        """Run the programs on these contents, without a medium below them."""
        slots = self.store.layout.slots
        mine = [0] * cells.MINE_COUNT
        tags = [rules.NO_TAG] * slots
        verdict = [recover.EMPTY] * slots
        for step in self.survey(mine, tags, verdict, slots):
            slot = mine[cells.MY_SLOT]
            record = contents.records[slot]
            if step == steps.READ_RECORD and record != NOTHING:
                tags[slot] = tag_in(record) if record > 0 else rules.NO_TAG
                verdict[slot] = recover.CANDIDATE if record > 0 else recover.REJECTED
            elif step == steps.VERIFY_PAYLOAD:
                mine[cells.STATUS] = self._verified(contents, slot)
        recovered = mine[cells.MY_TAG]
        highest = rules.sequence_of(max(tags))
        words = [0] * cells.CELL_COUNT
        words[cells.MARKED] = contents.mark
        if recovered == rules.NO_TAG and contents.mark:
            return Run(recovered, NOTHING, highest, True, (), (), ())
        content = NOTHING if recovered == rules.NO_TAG else contents.records[rules.slot_of(recovered)]
        problems = []
        if recovered != rules.NO_TAG:
            problems += _wrong(contents, rules.slot_of(recovered), "returns")
        if self.faults and not self._stops_at_failures(tags, verdict, contents.mark):
            problems.append((LOUD, "recovery goes on although one of its steps failed"))
        changes = []
        for step in self.make_ready(words, mine, tags, verdict, slots, self.keep, self.one_persist):
            slot = mine[cells.MY_SLOT]
            mine[cells.STATUS] = self._verified(contents, slot) if step == steps.VERIFY_PAYLOAD else rules.DONE
            if step not in READS_ONLY:
                changes.append((step, slot))
        for slot in range(slots):
            if verdict[slot] == recover.KEPT_RECORD and slot != rules.slot_of(recovered) and self.keeps_whole:
                problems += _wrong(contents, slot, "keeps")
        problems += self._unaccounted(words, recovered)
        return Run(recovered, content, highest, False, tuple(changes), tuple(words), tuple(problems))

    def _stage(self, medium: int, step: int, slot: int, contents: Contents) -> Stage:
        """The medium after one step of a recovery that found these contents."""
        store, mark = self.store, self.store.layout.mark
        failed = medium
        if step in PERSISTS:
            file = store.layout.slots if step == steps.PERSIST_MARK else slot
            after = store.persist(medium, file)
            if self.faults:
                failed = store.fail_persist(medium, file)
        elif step == steps.REWRITE_RECORD:
            after = store.write_record(medium, slot, contents.records[slot])
        elif step == steps.WRITE_EMPTY_RECORD:
            after = store.write_record(medium, slot, NOTHING)
        elif step == steps.REWRITE_PAYLOAD:
            after = store.rewrite_payload(medium, slot, contents.payloads[slot])
        else:
            assert step == steps.WRITE_MARK, f"recovery asks for {steps.NAMES[step]}"
            after = store.write(medium, mark, 1)
        return Stage(step, slot, after, failed if failed != medium else -1)

    def _verified(self, contents: Contents, slot: int) -> int:
        """What verifying a payload against its record's digests comes to."""
        passes = self.digests == IGNORED or contents.payloads[slot] == contents.records[slot]
        return rules.DONE if passes else rules.BROKEN

    def _stops_at_failures(self, tags: list[int], verdict: list[int], mark: int) -> bool:
        """Whether make_ready ends at whichever of its steps fails, and leaves the failure in its status."""
        key = (*tags, *verdict, mark)
        found = self._stops.get(key)
        if found is None:
            found = all(self._stops_at(position, tags, verdict, mark) for position in range(3 + 5 * len(tags)))
            self._stops[key] = found
        return found

    def _stops_at(self, position: int, tags: list[int], verdict: list[int], mark: int) -> bool:
        words = [0] * cells.CELL_COUNT
        words[cells.MARKED] = mark
        mine = [0] * cells.MINE_COUNT
        slots = self.store.layout.slots
        program = self.make_ready(words, mine, list(tags), list(verdict), slots, self.keep, self.one_persist)
        for index, step in enumerate(program):
            if index > position:
                return False
            if index == position and step in READS_ONLY:
                return True
            mine[cells.STATUS] = rules.BROKEN if index == position else rules.DONE
        return True

    def _unaccounted(self, words: list[int], recovered: int) -> list[tuple[str, str]]:
        """Whether the words that a completed recovery leaves account for every slot once."""
        if words[cells.ROOT] != recovered:
            return [(MONOTONE, f"recovery found {tag_text(recovered)} but published {tag_text(words[cells.ROOT])}")]
        problem = slots_unaccounted(words, self.store.layout.slots, self.keep)
        return [(NO_LEAK, f"recovery leaves {problem}")] if problem else []


def _wrong(contents: Contents, slot: int, does: str) -> list[tuple[str, str]]:
    """Whether the payload in a slot that recovery trusts is what its record says."""
    record, payload = contents.records[slot], contents.payloads[slot]
    if record == payload:
        return []
    what = "a mix of several saves" if payload < 0 else "not what that save was given"
    return [(NEVER_WRONG, f"recovery {does} {tag_text(tag_in(record))}, but the payload there is {what}")]


def result_text(run: Run) -> str:
    """What a recovery returned, for people."""
    return "refuses: nothing usable" if run.refused else f"returns {tag_text(run.recovered)}"
