"""The demo's model and its text: a small transformer that learns English letter by letter. Trusted.

The text is the prose that Python's own `help()` prints, which every installation has. The model is chosen by its ratio:
its state (parameters and two moments of AdamW, 60 MB, most of it a table of letter pairs) is large for its step (20 to
50 ms on one core), so that saves take long enough to overlap with training and with each other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

ALPHABET = 128
LETTERS = 32
"""Letters that the model sees of one sample."""
PASSAGES = 502
"""Samples that the text is cut into: so few that the demo goes through several epochs, whose last batch is short."""
HEADS = 4
DROPOUT = 0.1
NOISE = 0.02
"""Share of the letters that are replaced by others, so that NumPy's random stream matters too."""


class Text:
    """Text, cut into passages. Which letters of one are shown depends on Python's and NumPy's random streams."""

    def __init__(self) -> None:
        from pydoc_data.topics import topics

        prose = "\n\n".join(topics[name] for name in sorted(topics))
        self._letters = np.frombuffer(prose.encode("ascii", "replace"), dtype=np.uint8)
        self._stride = len(self._letters) // PASSAGES
        assert self._stride > LETTERS

    def batch(self, samples: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return some letters of each of these passages, a few of them wrong, and the letters that follow each."""
        starts = [sample * self._stride + random.randrange(self._stride - LETTERS) for sample in samples]
        windows = np.stack([self._letters[start : start + LETTERS + 1] for start in starts]).astype(np.int64)
        shown = windows[:, :-1].copy()
        wrong = np.random.random_sample(shown.shape) < NOISE
        shown[wrong] = np.random.randint(0, ALPHABET, size=int(wrong.sum()))
        return torch.from_numpy(shown), torch.from_numpy(windows[:, 1:].copy())


class Block(nn.Module):
    """Attention to what came before, then two layers on each letter; both added to what flows through."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.after_attention = nn.Linear(width, width)
        self.before_layers = nn.LayerNorm(width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(DROPOUT)
        )

    def forward(self, flow: Tensor) -> Tensor:
        """Pass a batch of sequences on, same shape."""
        batch, length, width = flow.shape
        heads = self.query_key_value(self.before_attention(flow)).view(batch, length, 3, HEADS, width // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        dropout = DROPOUT if self.training else 0.0
        seen = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        flow = flow + self.after_attention(seen.transpose(1, 2).reshape(batch, length, width))
        return flow + self.layers(self.before_layers(flow))


class LanguageModel(nn.Module):
    """Letters in, a guess at each next letter out."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.letter = nn.Embedding(ALPHABET, width)
        self.pair = nn.Embedding(ALPHABET * ALPHABET, width)
        self.place = nn.Embedding(LETTERS, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.guess = nn.Linear(width, ALPHABET)

    def forward(self, letters: Tensor) -> Tensor:
        """Return one score per letter of the alphabet, at every place."""
        places = torch.arange(letters.shape[1])
        pairs = ALPHABET * functional.pad(letters[:, :-1], (1, 0)) + letters
        return self.guess(self.norm(self.blocks(self.letter(letters) + self.pair(pairs) + self.place(places))))
