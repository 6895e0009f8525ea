"""Training recipes for the exactness matrix: four optimizers times six kinds of training, each a few updates long.

Every recipe draws from the global random streams, counts on its place in the data and keeps a loss curve, so that a resume
which gets any of it wrong ends somewhere else.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from lastgood.models import ResumableLoader
from lastgood.models.encode import encode

torch.set_num_threads(1)

SAMPLES, STEPS = 22, 14

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
    "amsgrad": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
}

KINDS = ("batch-norm", "transformer", "scaler", "average", "accumulation", "mid-epoch")


class Samples(torch.utils.data.Dataset[Any]):
    """Inputs with noise of their own, drawn by each sample."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(1)
        self.x = torch.randn(SAMPLES, 6, 8, generator=generator)
        self.y = torch.randn(SAMPLES, 1, generator=generator)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> Any:
        return self.x[number] + torch.randn(6, 8) * 0.1 + random.gauss(0, 0.1), self.y[number]


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(48, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 96))
        self.head = nn.Linear(96, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).tanh())


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=600, dropout=0.2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x).mean(1))


class Recipe:
    """One training; `advance` makes one update."""

    def __init__(self, optimizer: str, kind: str, seed: int = 0) -> None:
        random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
        self.kind = kind
        self.model: nn.Module = Transformer() if kind == "transformer" else Perceptron()
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 20)
        # init_scale is so large that the first updates overflow and are skipped
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=3, enabled=kind == "scaler")
        self.average = torch.optim.swa_utils.AveragedModel(
            self.model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        )
        self.loader = ResumableLoader(Samples(), 7 if kind == "mid-epoch" else 4, seed=3, drop_last=kind == "mid-epoch")
        self.curve: list[float] = []
        self._batches: Any = iter(())

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "scaler": self.scaler,
            "average": self.average, "data": self.loader, "curve": self.curve,
        }  # fmt: skip

    def _batch(self) -> Any:
        while True:
            batch = next(self._batches, None)
            if batch is not None:
                return batch
            self._batches = iter(self.loader)

    def advance(self) -> None:
        self.optimizer.zero_grad()
        parts = 3 if self.kind == "accumulation" else 1
        for _ in range(parts):
            x, y = self._batch()
            x = x * (1 + 0.01 * np.random.rand())
            loss = (self.model(x) - y).square().mean() / parts
            self.scaler.scale(loss).backward()
            self.curve.append(loss.item())
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        if self.kind == "average":
            self.average.update_parameters(self.model)

    def digest(self) -> str:
        """Everything that the rest of the training depends on."""
        parts = {
            name: each.state_dict() if hasattr(each, "state_dict") else each for name, each in self.state().items()
        }
        streams = [random.getstate(), np.random.get_state(), torch.get_rng_state()]
        return hashlib.sha256(encode([parts, streams]).to_bytes()).hexdigest()
