"""What a writer has said to be durable, readable after it was killed and while it runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from lastgood.core.record import Record
from lastgood.core.ticket import Ticket


class Ledger:
    """A file with a line for each acknowledgement, and beside it one word: the newest acknowledged step.

    Both are kept by the operating system once written, whatever happens to the process. A line is 32 bytes long: one that lay
    in two pages could be seen half written, or stay so.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)

    def note_acknowledgements(self) -> None:
        """In the writer: write down every acknowledgement, in the instant after it was given."""
        line = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        board = self._board("r+" if os.path.exists(f"{self.path}.board") else "w+")
        acknowledge = Ticket.acknowledge

        def noted(ticket: Ticket, record: Record) -> None:
            acknowledge(ticket, record)
            os.write(line, f"{record.sequence:15} {record.step:15}\n".encode())
            board[0] = max(int(board[0]), record.step)

        Ticket.acknowledge = noted  # type: ignore[method-assign]

    def acknowledged(self) -> dict[int, int]:
        """Sequence -> step of everything that was ever acknowledged."""
        if not os.path.exists(self.path):
            return {}
        with open(self.path) as file:
            return {int(sequence): int(step) for sequence, step in (line.split() for line in file)}

    def newest_sequence(self) -> int:
        """The highest acknowledged sequence, 0 before the first."""
        return max(self.acknowledged(), default=0)

    def newest_step(self) -> int:
        """The highest acknowledged step at this moment; cheap."""
        return int(self._board("r")[0])

    def _board(self, mode: Any) -> np.memmap[Any, np.dtype[np.int64]]:
        return np.memmap(f"{self.path}.board", np.int64, mode, shape=(1,))
