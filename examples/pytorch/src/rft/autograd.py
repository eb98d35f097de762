# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The loss as a node of torch's graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .batch import Array, Batch
from .evaluation import SelectedEvaluation, select_evaluate
from .metrics import Metrics
from .selection import Reduction

if TYPE_CHECKING:
    from .loss import PolicyLoss


class _Attach(torch.autograd.Function):
    """A number whose gradient is known."""

    @staticmethod
    def forward(
        ctx: Any, logprob: torch.Tensor, loss: float, gradient: torch.Tensor
    ) -> torch.Tensor:
        ctx.save_for_backward(gradient)
        ctx.dtype = logprob.dtype
        return _scalar(loss, logprob)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple:
        (gradient,) = ctx.saved_tensors
        # In the gradient's own precision first: upstream may be a loss scale.
        return (gradient * upstream).to(ctx.dtype), None, None


def _scalar(loss: float, logprob: torch.Tensor) -> torch.Tensor:
    dtype = torch.float64 if logprob.dtype == torch.float64 else torch.float32
    return torch.tensor(loss, dtype=dtype, device=logprob.device)


def _attaches(logprob: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and logprob.requires_grad


def _attach(logprob: torch.Tensor, loss: float, gradient: torch.Tensor | None) -> torch.Tensor:
    return _scalar(loss, logprob) if gradient is None else _Attach.apply(logprob, loss, gradient)


def _outside_graphs(function: Callable) -> Callable:
    """torch.compile can't look into the library: it breaks its graph here."""
    compiler = getattr(torch, "compiler", None) or getattr(torch, "_dynamo", None)
    return function if compiler is None else compiler.disable(function)


@_outside_graphs
def differentiable(
    loss: PolicyLoss,
    batch: Batch,
    mask: Array | None,
    reduction: Reduction | None,
    metrics: Metrics | None,
) -> torch.Tensor:
    """`PolicyLoss.__call__`."""
    result = loss.evaluate(batch, mask, reduction, metrics, gradient=_attaches(batch.logprob))
    return _attach(batch.logprob, result.loss, result.gradient)


@_outside_graphs
def differentiable_selection(
    loss: PolicyLoss, batch: Batch, group: Any, scale: float, metrics: Metrics | None
) -> SelectedEvaluation:
    """`PolicyLoss.select_evaluate` of torch tensors."""
    gradient = _attaches(batch.logprob)
    result = select_evaluate(loss, batch, group, scale, metrics, gradient)
    attached = _attach(batch.logprob, result.loss, result.gradient)
    return dataclasses.replace(result, loss=attached)
