"""A small training job with everything in it that a resume can get wrong, for the tests of this folder."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import torch
from torch import nn

from lastgood.models import ResumableSampler
from lastgood.models.encode import encode

# Sums over two threads are not those over one, and another process is compared with this one bit for bit.
torch.set_num_threads(1)

SAMPLES = 37
BATCH = 5


class Network(nn.Module):
    """Dropout, batch normalisation, tied weights, spectral normalisation and a layer that is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 12))
        self.norm = nn.BatchNorm1d(12)
        self.second = nn.Linear(12, 12, bias=False)
        self.tied = nn.Linear(12, 12, bias=False)
        self.tied.weight = self.second.weight
        self.out = nn.Linear(12, 1)
        self.unused = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.dropout(self.norm(self.first(x)).relu(), 0.3, self.training)
        return self.out(self.tied(self.second(x).tanh()))


class Job:
    """Model, optimizer, scheduler, scaler, sampler, and noise from all three global random streams."""

    def __init__(self, optimizer: str = "adamw", seed: int = 0) -> None:
        random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
        data = torch.Generator().manual_seed(99)
        self.x, self.y = torch.randn(SAMPLES, 6, generator=data), torch.randn(SAMPLES, 1, generator=data)
        self.model = Network()
        parameters = [
            {"params": list(self.model.first.parameters())},
            {
                "params": [each for name, each in self.model.named_parameters() if not name.startswith("first")],
                "lr": 0.02,
            },
        ]
        self.optimizer: torch.optim.Optimizer
        if optimizer == "sgd":
            self.optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True)
        elif optimizer == "adafactor":
            self.optimizer = torch.optim.Adafactor(parameters, lr=0.05)
        else:
            self.optimizer = torch.optim.AdamW(parameters, lr=0.05, amsgrad=True)
        self.scheduler = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=4),
                torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 40),
            ],
            [4],
        )
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3)
        self.sampler = ResumableSampler(SAMPLES, seed=seed)
        self.batches = iter(self.sampler.batches(BATCH, endless=True))
        self.own_stream = torch.Generator().manual_seed(seed + 1)
        self.notes: dict[str, Any] = {"losses": [], "best": np.float64("inf")}

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "scaler": self.scaler,
            "sampler": self.sampler,
            "noise": self.own_stream,
            "notes": self.notes,
        }

    def step(self) -> None:
        ids = next(self.batches)
        x = self.x[ids] + random.gauss(0, 0.1) + np.random.randn() * 0.1
        x = x + torch.randn(x.shape, generator=self.own_stream) * 0.1
        self.optimizer.zero_grad()
        loss = (self.model(x) - self.y[ids]).square().mean()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        self.notes["losses"].append(loss.item())
        self.notes["best"] = min(self.notes["best"], np.float64(loss.item()))

    def digest(self) -> str:
        """Everything that the next step depends on, and the global random streams."""
        parts = {name: part.state_dict() for name, part in self.state().items() if hasattr(part, "state_dict")}
        streams = [random.getstate(), np.random.get_state(), torch.get_rng_state(), self.own_stream.get_state()]
        return hashlib.sha256(encode([parts, streams, self.notes]).to_bytes()).hexdigest()
