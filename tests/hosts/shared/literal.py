# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Algorithm 1 and its loss as the paper writes them: slow, in exact arithmetic, over a whole batch."""

from __future__ import annotations

import fractions

import torch


def keep_mask(
    logprob: torch.Tensor,
    old_logprob: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    tau: float = 0.04,
) -> torch.Tensor:
    """True for the tokens that stay; all arguments [B, T], float32 log-probs, token order row-major."""
    d = (logprob.float() - old_logprob.float()).flatten()
    m = d * d
    valid, sign = mask.flatten() != 0, advantages.flatten()
    along = ((sign > 0) & (d > 0)) | ((sign < 0) & (d < 0))
    inside = [i for i in range(len(d)) if valid[i] and along[i]]
    square = {i: fractions.Fraction(float(m[i])) for i in inside}
    keep = valid.clone()
    total, budget = sum(square.values(), fractions.Fraction(0)), fractions.Fraction(tau)
    while inside and total > budget * len(inside):
        largest = max(inside, key=lambda i: (square[i], -i))
        keep[largest] = False
        inside.remove(largest)
        total -= square[largest]
    return keep.reshape(logprob.shape)


def loss(
    logprob: torch.Tensor,
    old_logprob: torch.Tensor,
    advantages: torch.Tensor,
    keep: torch.Tensor,
    n: int,
) -> torch.Tensor:
    """-(1/N) sum of keep r A, with torch's own gradient."""
    ratio = torch.exp(logprob - old_logprob.detach())
    return -torch.where(keep, ratio * advantages, 0.0).sum() / n
