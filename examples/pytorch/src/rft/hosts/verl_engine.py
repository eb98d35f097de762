# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""verl's FSDP engine with one selection an optimizer step.

Its `train_batch` is the one place in verl that holds a rank's part of the optimizer batch uncut. It
knows nothing of a trainer's config: `rft.hosts.verl` derives from it, and Trinity-RFT can.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict
from verl.utils import tensordict_utils
from verl.utils.metric import AggregationType, Metric
from verl.workers.engine import FSDPEngineWithLMHead
from verl.workers.utils.padding import no_padding_2_padding, response_to_nested

from rft import Batch, Metrics, PolicyLoss, Reduction, Report

from .common import prefixed


@dataclass(frozen=True)
class Step:
    """The optimizer step under way, for the loss of its micro-batches."""

    reduction: Reduction
    metrics: Metrics


#: Set while the micro-batches of a step run, else None.
current_step: contextvars.ContextVar[Step | None] = contextvars.ContextVar(
    "rft.hosts.verl_engine.current_step", default=None
)


class SelectingEngine(FSDPEngineWithLMHead):
    """Selects before the micro-batch split, over the data-parallel group. Derive, say which loss
    selects, and register with verl's EngineRegistry."""

    def policy_loss(self, data: TensorDict, loss_function: Callable) -> PolicyLoss | None:
        """The loss to select with, after a look at what the batch holds. None: verl's own step."""
        raise NotImplementedError

    def selected(self, report: Report, batch: Batch) -> None:
        """Is called with what the selection found, and this rank's part, on every rank."""

    def train_batch(self, data: TensorDict, loss_function: Callable) -> dict[str, Any]:
        """One optimizer step. `data`: this rank's part of the optimizer batch, [B, R], padded or
        jagged: response_mask, old_log_probs (those of the behavior policy), advantages."""
        loss = self.policy_loss(data, loss_function)
        if loss is None:
            return super().train_batch(data, loss_function)
        logprob, group = self.current_logprob(data), self.get_data_parallel_group()
        # Made inside `select`, which tells the other ranks where this one fails.
        batches = (self.batch(data, logprob) for _ in range(1))
        (keep,), report = loss.select(batches, group)
        self.selected(report, self.batch(data, logprob))
        self.send(data, keep)
        # verl averages gradients over the data-parallel ranks.
        reduction = report.reduction(scale=float(self.get_data_parallel_size()))
        step = Step(reduction, loss.metrics(report))
        context = contextvars.copy_context()
        context.run(current_step.set, step)
        outputs = context.run(super().train_batch, data, loss_function)
        step.metrics.all_reduce(group)
        named = metric_names(loss, step.metrics)
        outputs["metrics"].update(Metric.from_dict(named, AggregationType.MEAN))
        return outputs

    @torch.no_grad()
    def current_logprob(self, data: TensorDict) -> torch.Tensor:
        """[B, R] float32, on the device: log-probs under the current policy, from one forward pass
        in the step's own micro-batches."""
        probe = data.copy()
        tensordict_utils.assign_non_tensor(
            probe, calculate_entropy=False, calculate_sum_pi_squared=False
        )
        self.module.eval()
        try:
            outputs = self.infer_batch(probe)
        finally:
            self.module.train()
        return no_padding_2_padding(outputs["model_output"]["log_probs"], data)

    def batch(self, data: TensorDict, logprob: torch.Tensor) -> Batch:
        """This rank's part of the optimizer batch, padded to [B, R]."""
        names = ("old_log_probs", "advantages", "response_mask")
        return Batch(logprob, *(padded(data[name]) for name in names))

    def send(self, data: TensorDict, keep: torch.Tensor) -> None:
        """Puts the mask, [B, R] bool, where it reaches the loss of each micro-batch: in the one key
        for tokens that verl hands on to a policy loss."""
        response_mask = data["response_mask"]
        weights = keep.to(response_mask.device, torch.float32)
        if response_mask.is_nested:
            weights = response_to_nested(weights, response_mask)
        data["rollout_is_weights"] = weights


def padded(tensor: torch.Tensor) -> torch.Tensor:
    """[B, R], zeros behind the end of a jagged tensor's rows."""
    return tensor.to_padded_tensor(0) if tensor.is_nested else tensor


def metric_names(loss: PolicyLoss, metrics: Metrics) -> dict[str, float]:
    """The metrics by verl's names where it has one, else as actor/<policy loss>/<metric>."""
    values = metrics.as_dict()
    known = {"ppo_kl": "actor/ppo_kl", "clip_fraction": "actor/pg_clipfrac"}
    named = {known[name]: values.pop(name) for name in known if name in values}
    return named | prefixed(values, f"actor/{loss.name}/")
