"""What docs/goodput.md shows is what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastgood import cli
from lastgood.goodput.strategies import ROWS
from tests.goodput.test_published import SERIES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "goodput.md").read_text()


def test_the_table_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["goodput"]) == 0
    assert f"```\n{capsys.readouterr().out}```\n" in PAGE


def test_every_strategy_is_described() -> None:
    assert [line.split(" | ")[0][2:] for line in PAGE.splitlines() if line.startswith("| ")][1:11] == [
        row.name for row in ROWS
    ]


def test_the_published_series_is_the_one_that_is_checked() -> None:
    for system, series in SERIES.items():
        assert f"| {system} | " + " | ".join(f"{value:.2f}" for value in series) + " |" in PAGE
