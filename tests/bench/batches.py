# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The inputs: how stale the rollouts are, and orders that a selection may stumble over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

SEQUENCE = 1024  # tokens of a row; fewer where there are fewer
TAU = 0.04


@dataclass(frozen=True)
class Batch:
    """An optimizer batch of which every position is valid, [B, T]."""

    logprob: torch.Tensor
    old_logprob: torch.Tensor
    advantages: torch.Tensor
    mask: torch.Tensor

    @property
    def tokens(self) -> int:
        return self.logprob.numel()

    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.logprob, self.old_logprob, self.advantages, self.mask

    @property
    def trust_region_tokens(self) -> int:
        log_ratio = self.logprob.float() - self.old_logprob.float()
        return int((log_ratio * self.advantages.float() > 0).sum())

    def bfloat16(self) -> Batch:
        logprob, old_logprob, advantages, mask = self.tensors()
        half = [tensor.bfloat16() for tensor in (logprob, old_logprob, advantages)]
        return Batch(*half, mask)

    def flat(self) -> Batch:
        return Batch(*(tensor.view(-1) for tensor in self.tensors()))

    def first(self, tokens: int) -> Batch:
        """Its first tokens, without a copy."""
        columns = min(tokens, SEQUENCE)
        return Batch(*(tensor.view(-1)[:tokens].view(-1, columns) for tensor in self.tensors()))


@dataclass(frozen=True)
class Outputs:
    """Buffers that a caller keeps from step to step: touched once, and warm from then on."""

    gradient: torch.Tensor
    mask: torch.Tensor

    @classmethod
    def like(cls, batch: Batch) -> Outputs:
        return cls(torch.zeros_like(batch.logprob), torch.zeros_like(batch.mask))

    def flat(self) -> Outputs:
        return Outputs(self.gradient.view(-1), self.mask.view(-1))

    def first(self, batch: Batch) -> Outputs:
        """The beginning, for a batch that is the beginning of theirs."""
        shape = batch.logprob.shape
        flat = self.flat()
        return Outputs(*(t[: batch.tokens].view(shape) for t in (flat.gradient, flat.mask)))


Draw = Callable[[np.random.Generator, int], np.ndarray]

#: Log-ratios of rollouts of a few updates ago, and of many.
REGIMES: dict[str, Draw] = {
    "fresh": lambda random, n: random.normal(0.0, 0.05, n),
    "stale": lambda random, n: 0.15 * random.standard_t(3, n),
    "very stale": lambda random, n: 0.5 * random.standard_t(3, n),
}


def _over_tau(random: np.random.Generator, n: int) -> np.ndarray:
    return random.choice([-1.0, 1.0], n) * random.uniform(1.1 * TAU**0.5, 5 * TAU**0.5, n)


def _hidden_outlier(random: np.random.Generator, n: int) -> np.ndarray:
    """One token breaks the budget by itself, in a place that no sample has reason to look at."""
    ratios = REGIMES["fresh"](random, n)
    ratios[int(0.618 * n)] = n**0.5
    return ratios


#: Log-ratios in unkind orders.
ORDERS: dict[str, Draw] = {
    "as drawn (stale)": REGIMES["stale"],
    "sorted by |log-ratio|": lambda random, n: _by_size(REGIMES["stale"](random, n)),
    "sorted, reversed": lambda random, n: _by_size(REGIMES["stale"](random, n))[::-1],
    "all equal": lambda random, n: np.full(n, 0.3125),
    "all over tau": _over_tau,
    "one hidden outlier": _hidden_outlier,
}


def _by_size(ratios: np.ndarray) -> np.ndarray:
    return ratios[np.argsort(np.abs(ratios))]


def draw(distribution: Draw, tokens: int, seed: int = 1) -> Batch:
    """A batch with such log-ratios and normal advantages; the same for the same seed."""
    random = np.random.default_rng(seed)
    # In steps of 1/1024, so that adding the log-ratio and taking it away again rounds little.
    old_logprob = -(random.integers(0, 4096, tokens) / 1024).astype(np.float32)
    ratios = distribution(random, tokens).astype(np.float32)
    advantages = random.standard_normal(tokens, np.float32)
    advantages[np.argmax(ratios)] = 1.0  # an outlier counts in the trust region only
    shape = (-1, min(tokens, SEQUENCE))
    arrays = (old_logprob + ratios, old_logprob, advantages, np.ones(tokens, np.bool_))
    # Cloned: torch's own memory starts at a cache line.
    return Batch(*(torch.from_numpy(array).view(shape).clone() for array in arrays))


def packed_ends(tokens: int, seed: int = 1) -> torch.Tensor:
    """cu_seqlens of sequences of uneven length, SEQUENCE on average."""
    inner = np.random.default_rng(seed).integers(0, tokens + 1, max(tokens // SEQUENCE - 1, 0))
    return torch.from_numpy(np.concatenate([[0], np.sort(inner), [tokens]]))
