# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What a run depends on, and all of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    algorithm: str  #: a name of learner.ALGORITHMS
    staleness: int  #: in updates
    learning_rate: float
    seed: int
    updates: int = 40
    prompts: int = 3  #: of a batch
    samples: int = 8  #: of a prompt
    tokens: int = 12  #: of an answer, at most
    max_gradient_norm: float = 1.0
    evaluate_every: int = 5
    record_every: int = 10

    def name(self) -> str:
        return f"{self.algorithm}-k{self.staleness}-lr{self.learning_rate:g}-s{self.seed}"
