"""What `save` takes can be given back by `load`; what cannot is refused by `save`, with its key path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import lastgood.models as lm
from lastgood.models import kinds
from lastgood.models.errors import NotPlainData

NAMED = [each for each in vars(torch).values() if isinstance(each, torch.layout | torch.memory_format)]


@pytest.mark.parametrize("value", NAMED, ids=str)
def test_every_layout_and_memory_format_of_torch_comes_back(tmp_path: Path, value: Any) -> None:
    """A state with `torch.sparse_bsr` somewhere in it was saved, and the whole checkpoint was not readable any more."""
    lm.save(tmp_path / "store", {"l": [value]})
    assert lm.load(tmp_path / "store")["l"][0] is value


def test_one_that_has_no_name_is_refused_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(kinds.LAYOUTS, "torch.sparse_bsr")
    with pytest.raises(NotPlainData, match=r"state\['l'\]\[0\].*torch.sparse_bsr"):
        lm.save(tmp_path / "store", {"l": [torch.sparse_bsr]})
    assert not (tmp_path / "store").exists()


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_quantised_tensor_without_a_scale_is_refused_by_key(tmp_path: Path) -> None:
    """torch answered with an internal assertion, "please report a bug", and no key."""
    with pytest.raises(NotPlainData, match=r"state\['q'\].*without a scale"):
        lm.save(tmp_path / "store", {"q": torch.empty(2, 3, dtype=torch.qint8)})
