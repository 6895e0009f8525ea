"""States in and out of files: exact where it is promised, told where not; nothing is half written or runs code."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood import cli
from lastgood.core import Damaged, FormatTooNew, NoStore, OtherRun, Store, StoreError
from lastgood.models.errors import NotAState, NotExportable
from lastgood.models.peeking import peek_store
from tests.command.running import one_line
from tests.models.states import assert_same
from tests.models.test_format import state_2
from tests.models.test_hostile_payload import Planted

pytestmark = pytest.mark.filterwarnings("ignore")  # torch calls some layouts unfinished
EXACT = (".lastgood", ".safetensors")
FORMS = (*EXACT, ".pt")


def rich_state() -> dict[str, Any]:
    net = torch.nn.Linear(3, 4)
    return {
        "model": net.state_dict(),
        "tied": [net.weight, net.weight.detach()],
        "dotted": {"a.b": torch.ones(1), "a": {"b": torch.zeros(2)}},
        "many": state_2(),
        "empty": torch.empty(0, 3),
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    lm.save(tmp_path / "store", {"old": 1}, step=6)
    lm.save(tmp_path / "store", rich_state(), step=7)
    return tmp_path / "store"


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("form", EXACT)
def test_an_export_comes_back_equal_in_type_and_bits(store: Path, form: str, lazy: bool) -> None:
    out = store.parent / f"out{form}"
    done = lm.export(store, out)
    assert (done.step, done.bytes, done.changes) == (7, out.stat().st_size, ())
    restored = lm.load(out, lazy=lazy)
    assert_same(lm.load(store), restored)
    with torch.no_grad():
        restored["tied"][0][0, 0] = 9.0
    assert restored["tied"][1][0, 0] == 9.0, "what was shared is shared"
    assert restored["model"]["weight"][0, 0] == 9.0


@pytest.mark.parametrize("form", FORMS)
def test_a_mapped_tensor_changes_no_file(tmp_path: Path, form: str) -> None:
    lm.save(tmp_path / "store", {"w": torch.arange(10_000.0), "a": np.arange(9)})
    lm.export(tmp_path / "store", tmp_path / f"out{form}")
    before = (tmp_path / f"out{form}").read_bytes()
    restored = lm.load(tmp_path / f"out{form}", lazy=True)
    restored["w"].zero_()
    restored["w"] += 1
    assert (tmp_path / f"out{form}").read_bytes() == before
    assert lm.load(tmp_path / f"out{form}")["w"].equal(torch.arange(10_000.0))


@pytest.mark.parametrize("form", EXACT)
def test_mapping_reads_next_to_nothing(tmp_path: Path, form: str) -> None:
    """Of 64 MB that are mapped, almost nothing is in memory before it is touched."""
    lm.save(tmp_path / "store", {"w": torch.zeros(16 * 2**20), "x": torch.ones(3)})
    lm.export(tmp_path / "store", tmp_path / f"out{form}")
    lm.load(tmp_path / f"out{form}", lazy=True)
    before = resident_bytes()
    state = lm.load(tmp_path / f"out{form}", lazy=True)
    assert state["x"].tolist() == [1.0, 1.0, 1.0]
    assert resident_bytes() - before < 24 * 2**20
    state["w"].sum()
    assert resident_bytes() - before > 48 * 2**20, "the check can fail"


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_live_store_is_not_mapped(store: Path) -> None:
    with pytest.raises(StoreError, match=r"live store.*export it .* or pin a step"):
        lm.load(store, lazy=True)


def test_torch_reads_what_was_exported_for_it(store: Path) -> None:
    done = lm.export(store, store.parent / "out.pt")
    plain = torch.load(store.parent / "out.pt", weights_only=True)
    assert plain["model"]["weight"].equal(rich_state()["model"]["weight"]) or plain["model"]["weight"].shape == (4, 3)
    assert any(change.startswith("state['many']['more containers'][0]: deque became a list") for change in done.changes)
    assert len(done.changes) == len(set(done.changes)) > 10
    lm.export(store, store.parent / "model.pt", only="model")
    torch.nn.Linear(3, 4).load_state_dict(torch.load(store.parent / "model.pt", weights_only=True))


def test_the_forms_own_library_reads_what_was_exported(store: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    lm.export(store, store.parent / "out.safetensors")
    found = library.load_file(store.parent / "out.safetensors")
    state = lm.load(store)
    assert found["model.weight"].equal(state["model"]["weight"])
    assert found["many.views.0"].equal(state["many"]["views"][0])
    assert found["many.views.1"].equal(state["many"]["views"][1]), "row-major values, whatever the strides were"
    lm.export(store, store.parent / "model.safetensors", only="model")
    assert set(library.load_file(store.parent / "model.safetensors")) == {"weight", "bias"}


def test_what_others_wrote_is_taken_as_it_is(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    tensors = {"a.weight": torch.randn(3, 4), "b": torch.arange(5).to(torch.bfloat16), "c": torch.tensor(True)}
    library.save_file(tensors, tmp_path / "x.safetensors")
    torch.save({"net": tensors, "epoch": 3}, tmp_path / "x.pt")
    lm.import_into(tmp_path / "x.safetensors", tmp_path / "one", step=4)
    lm.import_into(tmp_path / "x.pt", tmp_path / "two", step=5)
    assert_same(tensors, dict(sorted(lm.load(tmp_path / "one", step=4).items())))
    assert_same({"net": tensors, "epoch": 3}, lm.load(tmp_path / "two", step=5))
    model = torch.nn.Linear(2, 2)
    model.bias = None
    library.save_model(torch.nn.ModuleDict({"x": model, "y": model}), str(tmp_path / "tied.safetensors"))
    tied = lm.load(tmp_path / "tied.safetensors")
    assert tied["x.weight"].data_ptr() == tied["y.weight"].data_ptr()


@pytest.mark.parametrize("form", EXACT)
def test_a_job_resumes_from_what_was_imported(tmp_path: Path, form: str) -> None:
    parts: dict[str, Any] = {"model": torch.nn.Linear(2, 2), "epoch": 3}
    with lm.Checkpointer(tmp_path / "store", parts) as ckpt:
        ckpt.save(12)
    draws = torch.rand(3)
    lm.export(tmp_path / "store", tmp_path / f"out{form}")
    record = lm.import_into(tmp_path / f"out{form}", tmp_path / "again")
    assert record.step == 12
    fresh: dict[str, Any] = {"model": torch.nn.Linear(2, 2), "epoch": 0}
    with lm.Checkpointer(tmp_path / "again", fresh) as ckpt:
        assert ckpt.restore() == 12
    assert fresh["epoch"] == 3
    assert fresh["model"].weight.equal(parts["model"].weight)
    assert torch.rand(3).equal(draws)


def test_a_job_goes_on_from_what_torch_saved(tmp_path: Path) -> None:
    """As docs/capture.md says; a torch file has no step and no random streams, and without `step` it looked like a start."""
    model = torch.nn.Linear(2, 2)
    torch.save({"model": model.state_dict(), "epoch": 4}, tmp_path / "old.pt")
    lm.import_into(tmp_path / "old.pt", tmp_path / "store", step=4000)
    for step, epoch in ((4000, 4), (4001, 5)):
        fresh: dict[str, Any] = {"model": torch.nn.Linear(2, 2), "epoch": 0}
        with lm.Checkpointer(tmp_path / "store", fresh, rng=False) as ckpt:
            assert ckpt.restore() == step
            assert (fresh["epoch"], fresh["model"].weight.equal(model.weight)) == (epoch, True)
            fresh["epoch"] = epoch + 1
            ckpt.save(step + 1)
    (tmp_path / "rubbish.pt").write_bytes(b"rubbish")
    with pytest.raises(NotAState, match=r"rubbish.pt is no whole file of lastgood, safetensors or torch"):
        lm.import_into(tmp_path / "rubbish.pt", tmp_path / "store", new_run=True)


def test_an_import_does_not_mix_runs(store: Path) -> None:
    lm.export(store, store.parent / "out.lastgood")
    before = {path.name: path.read_bytes() for path in store.iterdir()}
    with pytest.raises(OtherRun):
        lm.import_into(store.parent / "out.lastgood", store)
    assert {path.name: path.read_bytes() for path in store.iterdir() if path.name != "lock"} == {
        name: content for name, content in before.items() if name != "lock"
    }
    lm.import_into(store.parent / "out.lastgood", store, new_run=True, step=1)


@pytest.mark.parametrize("imported", [False, True])
def test_values_are_not_saved_into_the_store_of_a_training_job(tmp_path: Path, imported: bool) -> None:
    """They were taken as its newest checkpoint, and the job could not be resumed any more."""
    with lm.Checkpointer(tmp_path / "job", {"v": torch.ones(2)}) as ckpt:
        ckpt.save(5)
    path = tmp_path / ("again" if imported else "job")
    if imported:
        lm.export(tmp_path / "job", tmp_path / "out.lastgood")
        lm.import_into(tmp_path / "out.lastgood", path)
    with pytest.raises(OtherRun, match="holds a training job, at step 5"):
        lm.save(path, {"other": 3}, step=6)
    state = {"v": torch.zeros(2)}
    with lm.Checkpointer(path, state) as ckpt:
        assert ckpt.restore() == 5
    assert state["v"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_there_is_kept_unless_it_may_be_replaced(store: Path, form: str) -> None:
    out = store.parent / f"out{form}"
    out.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        lm.export(store, out)
    assert out.read_bytes() == b"mine"
    lm.export(store, out, replace=True)
    assert "model" in lm.load(out)
    assert sorted(path.name for path in store.parent.iterdir()) == [out.name, "store"], "nothing is left beside it"
    os.umask(mask := os.umask(0))
    assert out.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_full_disk_leaves_nothing_and_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    for form in FORMS:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            lm.export(store, store.parent / f"out{form}")
        monkeypatch.undo()
        assert [path.name for path in store.parent.iterdir()] == ["store"]


def test_a_part_of_the_state(store: Path) -> None:
    assert lm.export(store, store.parent / "a.lastgood", only="dotted.a.b").step == 7
    assert lm.load(store.parent / "a.lastgood").tolist() == [1.0]
    with pytest.raises(NotExportable, match=r"only='nothing': no such part; there are 'model', 'tied'"):
        lm.export(store, store.parent / "b.lastgood", only="nothing")
    with pytest.raises(NotExportable, match="ends in one of"):
        lm.export(store, store.parent / "b.bin")
    with pytest.raises(NoStore, match="no checkpoint of step 3"):
        lm.export(store, store.parent / "b.pt", step=3)
    lm.export(store, store.parent / "six.pt", step=6)
    assert lm.load(store.parent / "six.pt") == {"old": 1}


def test_damage_in_a_state_file_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    lm.save(tmp_path / "store", {"w": torch.arange(3000.0), "n": 1}, step=3)
    lm.export(tmp_path / "store", tmp_path / "out.lastgood")
    good = (tmp_path / "out.lastgood").read_bytes()
    payload = 4096
    for position in [0, 9, 13, 20, 30, 34, 70, *range(payload, len(good), 997), len(good) - 1]:
        damaged = bytearray(good)
        damaged[position] ^= 4
        (tmp_path / "bad.lastgood").write_bytes(damaged)
        with pytest.raises((NotAState, Damaged, FormatTooNew)):
            lm.load(tmp_path / "bad.lastgood")
    for wrong in (good[:-1], good + b"\0", good[:50], good[:4000], b""):
        (tmp_path / "bad.lastgood").write_bytes(wrong)
        with pytest.raises((NotAState, Damaged)):
            lm.load(tmp_path / "bad.lastgood")


def safetensors_bytes(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(code: Any = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"x": {"dtype": code, "shape": shape, "data_offsets": offsets}}


HOSTILE: list[bytes] = [
    safetensors_bytes(b"{"),
    safetensors_bytes([]),
    safetensors_bytes(entry(offsets=(0, 8)), bytes(4)),
    safetensors_bytes(entry(shape=(2,)), bytes(4)),
    safetensors_bytes(entry(offsets=(-4, 0)), bytes(4)),
    safetensors_bytes(entry(offsets=(4, 0)), bytes(4)),
    safetensors_bytes(entry(code="F99"), bytes(4)),
    safetensors_bytes(entry(shape=(2**62, 8)), bytes(4)),
    safetensors_bytes({"x": 3}, bytes(4)),
    safetensors_bytes(entry() | {"__metadata__": {"lastgood": "{"}}, bytes(4)),
    safetensors_bytes(entry() | {"__metadata__": {"lastgood": '{"state": ["T", 9], "extra": null}'}}, bytes(4)),
    struct.pack("<Q", 2**60) + b"{}",
    b"short",
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_file_that_makes_no_sense_is_not_a_state(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(NotAState) as refusal:
        lm.load(tmp_path / "x.safetensors")
    assert "\n" not in str(refusal.value)


def test_a_planted_pickle_is_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    torch.save({"w": Planted(marker)}, tmp_path / "planted.pt")
    (tmp_path / "bare.pt").write_bytes(pickle.dumps(Planted(marker), protocol=2))
    for name in ("planted.pt", "bare.pt"):
        with pytest.raises(NotAState, match="nothing of it was run"):
            lm.import_into(tmp_path / name, tmp_path / "store")
        with pytest.raises(NotAState):
            lm.peek(tmp_path / name)
    assert not marker.exists()
    assert not (tmp_path / "store").exists()


# --- looking without reading ------------------------------------------------------------------------------------------


def test_peek_tells_keys_types_shapes_step_bytes_and_age(store: Path) -> None:
    found = lm.peek(store)
    leaves = {leaf.key: leaf for leaf in found.leaves}
    weight = leaves["state['model']['weight']"]
    assert (weight.dtype, weight.shape, weight.bytes, weight.kind) == ("float32", (4, 3), 48, "Tensor")
    assert leaves["state['tied'][0]"].kind == "Parameter"
    assert leaves["state['many']['sparse'][0]"].shape == (2, 3)
    assert found.step == 7
    assert 0 <= found.age_seconds < 600
    assert lm.peek(store, step=6).keys == ("state['old']",)
    with pytest.raises(NoStore, match="no checkpoint of step 3"):
        lm.peek(store, step=3)


@pytest.mark.parametrize("form", FORMS)
def test_peek_into_files(store: Path, form: str) -> None:
    lm.export(store, store.parent / f"out{form}")
    found = lm.peek(store.parent / f"out{form}")
    shapes = [
        leaf.shape for leaf in found.leaves if leaf.key.replace("['", ".").replace("']", "").endswith("model.weight")
    ]
    assert shapes == [(4, 3)]
    assert found.step == (0 if form == ".pt" else 7)


def test_peek_reads_the_skeleton_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lm.save(tmp_path / "store", {"w": torch.zeros(8 * 2**20)})
    read: list[int] = []
    from lastgood.core.files import DirectFile

    plain = DirectFile.read
    monkeypatch.setattr(
        DirectFile, "read", lambda self, offset, into: (read.append(into.size), plain(self, offset, into))[1]
    )
    assert lm.peek(tmp_path / "store").leaves[0].shape == (8 * 2**20,)
    assert sum(read) < 20 * 2**20, "three chunks of nine, at most, and the records"


def test_peek_needs_no_torch(store: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; import lastgood.models as lm; print(lm.peek(sys.argv[1]).step)"
    done = subprocess.run([sys.executable, "-c", program, str(store)], capture_output=True, text=True)
    assert done.stdout == "7\n", done.stderr


def test_peek_passes_over_what_is_damaged(store: Path) -> None:
    with Store.open(store, read_only=True) as opened:
        newest = opened.records()[0]
    path = store / f"slot-{newest.slot:04d}"
    content = bytearray(path.read_bytes())
    content[newest.payload_offset + 70] ^= 1
    path.write_bytes(content)
    with Store.open(store, read_only=True) as opened:
        assert peek_store(opened).step == 6
    assert lm.load(store) == {"old": 1}


# --- the command line -------------------------------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    """Status, output and errors of a command that is run in this process."""
    status = cli.main([str(word) for word in words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_the_commands(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, again = store.parent / "out.safetensors", store.parent / "again"
    status, printed, _ = command(capsys, "export", store, out, "--json")
    assert status == 0
    assert json.loads(printed) == {"path": str(out), "step": 7, "bytes": out.stat().st_size, "changes": []}
    status, printed, errors = command(capsys, "export", store, out)
    assert (status, printed) == (2, "")
    assert "exists" in one_line(errors)
    assert command(capsys, "import", out, again)[::2] == (0, "")
    status, printed, _ = command(capsys, "inspect", again, "--json")
    facts = json.loads(printed)
    assert facts["checkpoints"][0]["step"] == facts["state"]["step"] == 7
    assert {leaf["key"] for leaf in facts["state"]["leaves"]} == set(lm.peek(store).keys)
    assert "state['model']['weight']" in command(capsys, "inspect", again)[1]
    assert "state['model']['weight']" in command(capsys, "inspect", out)[1]
    status, printed, errors = command(capsys, "inspect", out, "--step", "99")
    assert (status, printed) == (2, "")
    assert f"{out} is of step 7, not 99" in one_line(errors), "the step was not looked at when it was a file"
    status, printed, errors = command(capsys, "export", store, store.parent / "out.pt")
    assert status == 0
    assert "deque became a list" in errors


@pytest.mark.parametrize("form", ["pt", "safetensors"])
def test_an_import_tells_which_step_it_took_when_the_file_says_none(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job of 4000 steps was imported from a torch file, was step 0 without a word, and began its schedule anew."""
    old = tmp_path / f"old.{form}"
    if form == "pt":
        torch.save({"weight": torch.ones(3)}, old)
    else:
        pytest.importorskip("safetensors.torch").save_file({"weight": torch.ones(3)}, old)
    status, printed, errors = command(capsys, "import", old, tmp_path / "store")
    assert (status, errors) == (0, "")
    assert "is step 0 of" in printed
    assert printed.endswith("(the file says no step: --step N gives another)\n")
    assert len(printed.splitlines()) == 1
    printed = command(capsys, "import", old, tmp_path / "store", "--step", "4000", "--new-run")[1]
    assert "is step 4000 of" in printed
    assert "says no step" not in printed
    assert lm.export(tmp_path / "store", tmp_path / f"new.{form}").step == 4000
    if form == "safetensors":  # ours says it
        assert "says no step" not in command(capsys, "import", tmp_path / "new.safetensors", tmp_path / "other")[1]


def test_an_import_into_a_store_in_use_is_refused_in_the_words_of_the_command_line(
    store: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It said that one save in flight had been asked for, which nobody had, and to give `new_run=True`."""
    out = store.parent / "out.safetensors"
    assert command(capsys, "export", store, out)[0] == 0
    with Store.create(store.parent / "other", slot_bytes=10_000, in_flight=4) as other:
        other.save(b"mine", step=1).wait()
    status, printed, errors = command(capsys, "import", out, other.path)
    assert (status, printed) == (2, "")
    assert "other holds checkpoints already: give another path, or --new-run to begin" in one_line(errors)
    assert command(capsys, "import", out, other.path, "--new-run")[0] == 0
    assert caplog.text == ""


def test_an_export_into_a_folder_that_is_not_there_names_the_folder(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It named a temporary file that the user had never heard of."""
    errors = command(capsys, "export", store, store.parent / "no" / "out.pt")[2]
    assert one_line(errors) == f"lastgood: {store.parent / 'no'}: No such directory"


def test_inspect_of_a_store_that_holds_no_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.create(tmp_path / "store", slot_bytes=4096) as opened:
        assert "no checkpoint yet" in command(capsys, "inspect", tmp_path / "store")[1]
        opened.save(b"somebody else's", step=1).wait()
    status, printed, errors = command(capsys, "inspect", tmp_path / "store")
    assert (status, errors) == (0, "")
    assert "step        1" in printed


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (["export", "nowhere", "x.pt"], "nowhere: the path does not exist"),
        (["export", "nowhere", "x.bin"], "ends in one of"),
        (["import", "nowhere.pt", "x"], "nowhere.pt: No such file"),
        (["import", ".", "x"], "is a directory"),
    ],
)
def test_bad_input_is_one_line(words: list[str], phrase: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, printed, errors = command(capsys, *words)
    assert (status, printed) == (2, "")
    assert phrase in one_line(errors)
