# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""How others bound the second moment: each rule in torch, written from its published description.

All have the same loss, the importance sampling surrogate with the mean over valid tokens, so that
they differ by the rule alone; the capped budget clips by its nature. The gradient is autograd's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from batches import TAU, Batch

LOG_RATIO_CLIP = 20.0

Rule = Callable[[torch.Tensor, Batch], torch.Tensor]
Result = tuple[torch.Tensor, torch.Tensor]  # loss and gradient


def _ratio(log_ratio: torch.Tensor) -> torch.Tensor:
    return log_ratio.clamp(-LOG_RATIO_CLIP, LOG_RATIO_CLIP).exp()


def _masked_loss(log_ratio: torch.Tensor, batch: Batch, keep: torch.Tensor) -> torch.Tensor:
    return -(_ratio(log_ratio) * batch.advantages * keep).sum() / batch.mask.sum()


def _within_budget(squares: torch.Tensor) -> tuple[int, torch.Tensor]:
    """How many of the smallest have a mean of at most TAU, and the order from small to large."""
    ascending, order = squares.sort()
    means = ascending.cumsum(0) / torch.arange(1, len(ascending) + 1)
    return int((means <= TAU).sum()), order


def _drop_largest(
    squares: torch.Tensor, constrained: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    positions = constrained.view(-1).nonzero().squeeze(1)
    kept, order = _within_budget(squares.view(-1)[positions])
    keep = mask.clone()
    keep.view(-1)[positions[order[kept:]]] = False
    return keep


def trust_region(log_ratio: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The paper's algorithm 1 by a sort and a cumulative sum (Trinity-RFT)."""
    d = log_ratio.detach()
    constrained = batch.mask & (d * batch.advantages > 0)
    return _masked_loss(log_ratio, batch, _drop_largest(d * d, constrained, batch.mask))


def all_tokens(log_ratio: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The same over every valid token, whatever its advantage (AReaL)."""
    d = log_ratio.detach()
    return _masked_loss(log_ratio, batch, _drop_largest(d * d, batch.mask, batch.mask))


def _capped_bound(squares: torch.Tensor) -> float:
    """The c for which the mean of min(m, c) is TAU."""
    ascending = squares.sort().values.double()
    count = len(ascending)
    sums = ascending.cumsum(0)
    capped = sums + ascending * torch.arange(count - 1, -1, -1)  # with c at each of them
    below = int((capped <= TAU * count).sum())
    if below == count:
        return float("inf")
    return (TAU * count - float(sums[below - 1] if below else 0.0)) / (count - below)


def capped_budget(log_ratio: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Ratios are clipped where capping the squares uses up the budget (the authors' code)."""
    d = log_ratio.detach()
    constrained = batch.mask & (d * batch.advantages > 0)
    bound = _capped_bound((d * d)[constrained]) ** 0.5
    clipped = _ratio(log_ratio.clamp(-bound, bound)) * batch.advantages
    objective = torch.minimum(_ratio(log_ratio) * batch.advantages, clipped)
    return -(objective * batch.mask).sum() / batch.mask.sum()


def no_mask(log_ratio: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The importance sampling loss alone: no selection at all."""
    return _masked_loss(log_ratio, batch, batch.mask)


RULES: dict[str, Rule] = {
    "sort, trust-region tokens": trust_region,
    "sort, all tokens": all_tokens,
    "capped budget": capped_budget,
    "no mask": no_mask,
}


def prepared(rule: Rule, batch: Batch) -> Callable[[], Result]:
    """A call that gives loss and gradient by a rule."""
    logprob = batch.logprob.detach().requires_grad_()

    def call() -> Result:
        loss = rule(logprob - batch.old_logprob, batch)
        (gradient,) = torch.autograd.grad(loss, logprob)
        return loss.detach(), gradient

    return call
