"""What recovery makes of an image: drawn tables, one row an image, one word a slot (`images` has the alphabet).

`newest-survives`, `never-wrong`, `monotone`, and that a writer makes durable what it found before it hands a slot out.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from lastgood.core import Damaged, FormatTooNew, NoStore, NothingUsable, Store, StoreError
from lastgood.core.layout import slot_name
from lastgood.core.record import encode_empty
from tests.store.images import STORE, Image, record_of
from tests.store.small import check_no_leak, is_payload_of, payload_of
from tests.store.watched import AREA_BYTES, Operation

# finds: the sequence that is read; `none`: nothing was ever saved; `lost`: there was something, nothing is usable;
# `wait`: a writer must not go on (a reader finds what comes after the bar); `new`: a later format.
# kept: the sequences kept after the next save, which gets the sequence `next`.
TABLE = """
# slots                  keep  marked  finds   kept      next  passed over
.   .   .   .             2     no      none    1          1     0
.   .   .   .             2     yes     lost    -          -     0
0   0   0   0             2     yes     lost    -          -     4
0   0   0   0             2     no      none    1          1     4
1   .   .   .             2     yes     1       2 1        2     0
1   .   .   .             2     no      1       2 1        2     0
.   1   2   .             2     yes     2       3 2        3     0
2   1   3   4             2     yes     4       5 4        5     0
4   3   2   1             1     yes     4       5          5     0
9   2   .   .             3     yes     9       10 9 2     10    0
7   .   3   5             3     yes     7       8 7 5      8     0
x1  .   .   .             2     no      none    1          1     1
x1  .   .   .             2     yes     lost    -          -     1
5   x9  .   .             2     yes     5       6 5        6     1
5   4   x6  x7            2     yes     5       6 5        6     2
5!  4   .   .             2     yes     4       6 4        6     1
4   5!  6!  7!            2     yes     4       8 4        8     3
5!  4!  .   .             2     yes     lost    -          -     2
5!  4!  3   .             2     yes     3       6 3        6     2
5!  4!  .   .             2     no      none    6          6     2
5   4!  3   .             2     yes     5       6 5        6     0
o9  4   .   .             2     yes     4       5 4        5     1
o9  o8  o7  .             2     yes     lost    -          -     3
o9  .   .   .             2     no      none    1          1     1
s9  4   .   .             2     yes     4       5 4        5     1
s9  s8  3   2             2     yes     3       4 3        4     2
-   3   4   .             2     yes     4       5 4        5     1
4   -   -   -             2     yes     4       5 4        5     3
-   -   -   -             2     yes     lost    -          -     4
-   -   -   -             2     no      none    1          1     4
<5  4   .   .             2     yes     4       6 4        6     1
<<5 4   .   .             2     yes     4       5 4        5     1
<<5 <<4 .   .             2     yes     lost    -          -     2
5   4   <<3 .             2     yes     5       6 5        6     1
5   ?9  .   .             2     yes     wait|5  -          -     1
?9  .   .   .             2     yes     wait|lost -        -     1
5*  4   .   .             2     yes     wait|4  -          -     1
5   4*  .   .             2     yes     5       6 5        6     0
n9  4   .   .             2     yes     new     -          -     -
0   5   .   4             2     yes     5       6 5        6     1
e   5   .   4             2     yes     5       6 5        6     1
281474975661055 5 . .     2     yes     281474975661055 281474975661056 281474975661055  281474975661056  0
"""


class Row(NamedTuple):
    """One line of the table."""

    slots: str
    keep: int
    marked: bool
    finds: str
    kept: list[int]
    next_sequence: int
    passed_over: int


def rows(table: str) -> list[Row]:
    """The table, read from the right: the drawing is what is left over."""
    found = []
    for line in table.strip().splitlines()[1:]:
        words = line.split()
        at = next(index for index, word in enumerate(words) if word in ("yes", "no"))
        *kept, next_sequence, passed_over = [int(word) if word != "-" else -1 for word in words[at + 2 :]]
        slots = " ".join(words[: at - 1])
        found.append(
            Row(slots, int(words[at - 1]), words[at] == "yes", words[at + 1], kept, next_sequence, passed_over)
        )
    return found


ROWS = rows(TABLE)
READABLE = [row for row in ROWS if row.finds.isdigit()]  # by a writer


def image_of(row: Row, persists: int = 2) -> Image:
    return Image(row.slots, row.keep, marked=row.marked, persists=persists)


def name_of(row: Row) -> str:
    return f"{row.slots}, {'' if row.marked else 'not '}marked"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_what_a_reader_finds(row: Row) -> None:
    image = image_of(row)
    before = image.contents()
    finds = row.finds.rpartition("|")[2]
    if finds == "new":
        with pytest.raises(FormatTooNew, match=r"/memory.*slot 0 is of format 2, this version reads up to 1"):
            Store.open(image, read_only=True)
        return
    with Store.open(image, read_only=True) as store:
        if finds.isdigit():
            record, payload = store.read_with_record()
            assert (record.sequence, record.step) == (int(finds), 10 * int(finds))
            assert is_payload_of(record.step, payload)
            assert record == record_of(image.layout, record.sequence, record.slot)
        else:
            with pytest.raises({"none": NoStore, "lost": NothingUsable}[finds]) as caught:
                store.read()
            assert "\n" not in str(caught.value)
        assert len(store.passed_over) == row.passed_over, store.passed_over
        assert all("\n" not in line for line in store.passed_over)
        if row.passed_over and finds.isdigit():
            with pytest.raises(Damaged):
                store.read(strict=True)
        elif finds.isdigit():
            assert store.read(strict=True).size
    assert image.contents() == before
    assert {operation.kind for operation in image.log} <= {"read"}, "a reader writes nothing"


@pytest.mark.parametrize("persists", [2, 1])
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_what_a_writer_finds_and_goes_on_from(row: Row, persists: int) -> None:
    image = image_of(row, persists)
    before = image.contents()
    if row.finds.startswith("wait") or row.finds == "new":
        kind, words = (
            (FormatTooNew, "format 2")
            if row.finds == "new"
            else (StoreError, "Input/output error.*: *repair the device")
        )
        with pytest.raises(kind, match=words) as caught, Store.open(image, new_run=True) as store:
            store.save(payload_of(10, 100), step=10).wait(60)
        assert "\n" not in str(caught.value)
        assert image.contents() == before, "no-harm: what could not be read was not touched either"
        return
    with Store.open(image) as store:
        if row.finds.isdigit():
            record, payload = store.read_with_record()
            assert record.sequence == int(row.finds)
            assert is_payload_of(record.step, payload)
            assert store.run == record.run.hex()
        else:
            with pytest.raises({"none": NoStore, "lost": NothingUsable}[row.finds]):
                store.read()
        assert len(store.passed_over) == row.passed_over, store.passed_over
        assert image.contents() == before, "opening and reading write nothing"
    with Store.open(image, new_run=True) as store:
        if row.finds == "lost":
            with pytest.raises(NothingUsable):
                store.save(b"a fresh start", step=0)
            after = image.contents()  # missing files may have been made again, empty
            assert {name: content for name, content in after.items() if name in before} == before
            assert all(after[name].startswith(b"LGEMPTY") for name in after.keys() - before.keys())
            return
        if persists == 1 and "*" in row.slots:
            with pytest.raises(StoreError, match="Input/output error"):
                store.save(b"x", step=1)
            assert image.contents() == before
            return
        record = store.save(payload_of(10 * row.next_sequence, 100), step=10 * row.next_sequence).wait(60)
        assert record.sequence == row.next_sequence, "monotone: above every record seen"
        assert [each.sequence for each in store.records()] == row.kept
        check_no_leak(store)
        for each in store.records():
            assert is_payload_of(each.step, store.read(each))
    image.unreadable.clear()
    with Store.open(image, read_only=True) as store:
        assert [each.sequence for each in store.records()] == row.kept
        assert "damaged" not in {report.state for report in store.verify() if report.record not in store.records()[1:]}


def kept_slots(row: Row, persists: int) -> list[int]:
    """The slots that recovery keeps: the one it finds, then older records.

    Their payloads are not looked at, except where a record may be durable without its payload: with one persist.
    """
    sequences = {
        int(word.rstrip("!*")): slot
        for slot, word in enumerate(row.slots.split())
        if word[0] in "123456789" and not (persists == 1 and "!" in word)
    }
    older = [sequence for sequence in sorted(sequences, reverse=True) if sequence <= int(row.finds)]
    return [sequences[sequence] for sequence in older][: row.keep]


def preparation_of(image: Image) -> list[Operation]:
    """What a writer does between opening and the first write of a payload of its own."""
    with Store.open(image, new_run=True) as store:
        store.newest()
        image.log.clear()
        slot = store.save(payload_of(7, 100), step=7).wait(60).slot
    mine = [index for index, each in enumerate(image.log) if each.file == slot_name(slot) and each.kind == "write"]
    first = next(index for index in mine if image.log[index].is_payload)
    return image.log[:first]


def is_written_then_persisted(operations: list[Operation], slot: int, content: bytes) -> bool:
    """Whether a slot's record area got these bytes and was persisted afterwards."""
    name = slot_name(slot)
    written = -1
    for index, each in enumerate(operations):
        if each.kind == "write" and each.file == name and each.offset == 0:
            assert each.data is not None
            assert each.data.tobytes() == content[: each.data.size]
            written = index
    return written >= 0 and f"persist {name}" in [str(each) for each in operations[written:]]


@pytest.mark.parametrize("persists", [2, 1])
@pytest.mark.parametrize("row", READABLE, ids=name_of)
def test_what_is_kept_is_made_durable_before_any_slot_is_written(row: Row, persists: int) -> None:
    """After a process crash recovery has read a cache: what it keeps it writes again, byte for byte, and persists."""
    if persists == 1 and "*" in row.slots:
        pytest.skip("a one-persist store reads all payloads that it keeps, and cannot here")
    image = image_of(row, persists)
    before = image.contents()
    operations = preparation_of(image)
    assert kept_slots(row, persists)
    for slot in kept_slots(row, persists):
        name = slot_name(slot)
        assert is_written_then_persisted(operations, slot, before[name])
        payload = [each for each in operations if each.file == name and each.kind == "write" and each.is_payload]
        assert bool(payload) is (persists == 1), "a one-persist store rewrites its payloads too"
        for each in payload:
            assert each.data is not None
            assert each.data.tobytes() == before[name][each.offset : each.offset + each.data.size]
            assert f"persist {name}" in [str(other) for other in operations[operations.index(each) :]]
    header = [str(each) for each in operations if each.file == "header"]
    assert header == (["write header at 4096", "persist header"] if row.marked else []), "the mark was in a cache, too"


@pytest.mark.parametrize("persists", [2, 1])
@pytest.mark.parametrize("row", READABLE, ids=name_of)
def test_what_is_not_kept_is_emptied_before_a_slot_is_handed_out(row: Row, persists: int) -> None:
    """No ghosts: a record that was passed over must not be found by the next recovery, whatever it finds then.

    A slot that seemed empty is emptied again: on the medium, under the cache, there may be something else.
    """
    if persists == 1 and "*" in row.slots:
        pytest.skip("a one-persist store reads all payloads that it keeps, and cannot here")
    image = image_of(row, persists)
    operations = preparation_of(image)
    words = row.slots.split()
    kept = kept_slots(row, persists)
    older = [
        slot
        for slot, word in enumerate(words)
        if word[0] in "123456789" and int(word.rstrip("!*")) < int(row.finds) and slot not in kept
    ]
    leftovers = [slot for slot in older if not (persists == 1 and "!" in words[slot])]
    for slot in set(range(len(words))) - set(kept) - set(leftovers):
        assert is_written_then_persisted(operations, slot, encode_empty(STORE, slot).tobytes())
    with Store.open(image, read_only=True) as store:
        assert store.read_with_record()[0].step == 7
        assert store.passed_over == ()


def test_the_table_means_what_it_says() -> None:
    """The drawings are only as good as their reader."""
    assert len(ROWS) == TABLE.count("\n") - 2
    assert next(row for row in ROWS if row.slots == "1 . . .") == Row("1 . . .", 2, True, "1", [2, 1], 2, 0)
    image = Image("5 5! x5 <5 <<5 o5 s5 - . 0 e", 1)
    whole = image.bytes_of("slot-0000")
    different = [image.bytes_of(slot_name(slot)) for slot in range(1, 11)]
    assert whole not in different
    assert len({content for content in different if content is not None}) == 9
    assert image.bytes_of("slot-0007") is None
    damaged = [at for at in range(len(whole)) if image.bytes_of("slot-0001")[at] != whole[at]]
    assert [at for at in damaged if at >= AREA_BYTES] == [AREA_BYTES + 8999]
