# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""AReaL: a selection over each optimizer step, then AReaL's own PPO or SAPO loss, or the plugin's.

A training script loads its config as RFTConfig and runs RFTTrainer; nothing else in it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from areal import PPOTrainer
from areal.api.alloc_mode import ModelAllocation
from areal.api.cli_args import PPOActorConfig
from areal.engine import FSDPPPOActor
from areal.utils import stats_tracker
from areal.utils.environ import is_single_controller

from rft import ALONE, Batch, Metrics, Report

from .areal_config import RFTActorConfig, RFTConfig, policy_loss_of
from .common import SelectionScope, count, reduction_of_part, refusal, warn_if_fresh

__all__ = ["RFTActor", "RFTActorConfig", "RFTConfig", "RFTTrainer", "policy_loss_of"]

#: The selection's answer on its way through AReaL's packing, bool.
KEEP = "rft_keep"


class RFTActor(FSDPPPOActor):
    """AReaL's FSDP actor. One call of `train_batch` is one optimizer step: there it selects."""

    def __init__(self, config: RFTActorConfig) -> None:
        super().__init__(config)
        self.loss = policy_loss_of(config)
        self.scope = SelectionScope.parse(config.selection_scope, "actor.selection_scope")
        self.actor.m2_threshold = None  # AReaL's own selection, which would run a second time
        self._proximal_is_current = False

    def ppo_update(self, *args: Any, **kwargs: Any) -> None:
        # AReaL recomputed log-probs right before: the current policy's until the first step.
        self._proximal_is_current = self.config.gives_proximal
        super().ppo_update(*args, **kwargs)

    def train_batch(
        self,
        input_: dict[str, Any],
        loss_fn: Callable[..., torch.Tensor],
        loss_weight_fn: Callable[[dict[str, Any]], torch.Tensor],
    ) -> dict[str, float]:
        """One optimizer step over this rank's `input_`, [b, S] before the micro-batch split:
        float32 `loss_mask`, `logprobs` (behavior policy), `advantages`, `prox_logp`; int32
        `versions`. `loss_fn` is AReaL's, over packed [n] tensors."""
        report = collected = counts = None
        if self.scope is SelectionScope.OPTIMIZER_BATCH:
            keep, report = self._select(input_, self._logprobs(input_), self.data_parallel_group)
            collected = self.loss.metrics(report)
            input_ = {**input_, KEEP: keep}
        elif self.config.policy_loss == "plugin":
            counts = count(input_["loss_mask"].to(self.device), self.data_parallel_group)
        self._proximal_is_current = False

        def loss_of(
            logprobs: torch.Tensor, entropy: torch.Tensor, data: dict[str, Any], **logits: Any
        ) -> torch.Tensor:
            keep, whole, metrics = data.get(KEEP), report, collected
            if whole is None:
                keep, whole = self._select(data, logprobs.detach(), ALONE)
                metrics = self.loss.metrics(whole)
            if self.config.policy_loss == "areal":
                masked = {**data, "loss_mask": keep}
                loss = loss_fn(logprobs, entropy, masked, **logits) * self._share(keep, data, whole)
            else:
                # The engine weighs a micro-batch by its share of all valid tokens.
                valid = int(data["loss_mask"].count_nonzero())
                if counts is None:
                    reduction = whole.reduction(whole.valid_tokens / valid)
                else:
                    reduction = reduction_of_part(whole, *counts, counts[0] / valid)
                loss = self.loss(self._batch(data, logprobs), keep, reduction, metrics)
            if report is None:
                self._log(whole, metrics)
            return loss

        stats = super().train_batch(input_, loss_of, loss_weight_fn)
        if report is not None:
            if self.config.policy_loss == "plugin":
                collected.all_reduce(self.data_parallel_group)
            self._log(report, collected)
        return stats

    def _logprobs(self, data: dict[str, Any]) -> torch.Tensor:
        """[b, S] float32: of the current policy, by a forward pass where the selection compares it
        and nobody has it."""
        compared = self.loss.config.get("m2_reference", "current") == "current"
        off = self.loss.config.get("m2_threshold", 0) is None
        if self._proximal_is_current or off or not compared:
            return data["prox_logp"] if self.config.gives_proximal else data["logprobs"]
        self.eval()
        logprobs = self.forward(data, aggregate_fn=lambda parts: torch.cat(parts, dim=-1))
        self.train()
        return logprobs

    def _batch(self, data: dict[str, Any], logprobs: torch.Tensor) -> Batch:
        """Padded [b, S], or packed [n] inside the loss."""
        return Batch(
            logprobs,
            data["logprobs"],
            data["advantages"],
            data["loss_mask"],
            data["prox_logp"] if self.config.gives_proximal else None,
            data.get("cu_seqlens"),
        )

    def _select(
        self, data: dict[str, Any], logprobs: torch.Tensor, group: Any
    ) -> tuple[torch.Tensor, Report]:
        batch = self._batch(data, logprobs)
        (keep,), report = self.loss.select([batch], group)
        versions = data.get("versions", torch.tensor(-1))
        stale = (versions >= 0) & (versions < self.get_version())
        if self.loss.config.get("m2_threshold") is not None and stale.any():
            warn_if_fresh(report, [batch], "check that the workflow gives the server's log-probs")
        return keep.to(data["loss_mask"].device), report

    def _share(self, keep: torch.Tensor, data: dict[str, Any], whole: Report) -> torch.Tensor:
        """What a micro-batch's mean over its kept tokens is multiplied by, as the engine weighs
        micro-batches by their valid tokens. Exactly 1 for the kept tokens of a single one."""
        kept, valid = keep.count_nonzero(), data["loss_mask"].count_nonzero()
        if self.loss.config.get("denominator") == "kept":
            return kept * whole.valid_tokens / (valid * max(whole.kept_tokens, 1))
        return kept / valid

    def _log(self, report: Report, metrics: Metrics) -> None:
        own = self.config.policy_loss == "areal"
        with stats_tracker.scope(self.loss.name):
            stats_tracker.scalar(**(report.metrics if own else metrics.as_dict()))


class RFTTrainer(PPOTrainer):
    """AReaL's trainer, whose actor is an RFTActor; reference models stay AReaL's own."""

    def _create_train_engine(self, actor_config: PPOActorConfig, alloc: ModelAllocation) -> Any:
        if actor_config is not self.config.actor:
            return super()._create_train_engine(actor_config, alloc)
        if alloc.backend != "fsdp":
            raise refusal("actor.backend", "fsdp", alloc.backend)
        if is_single_controller():
            actor = RFTActor.as_controller(actor_config, self.scheduler)
        else:
            actor = RFTActor(actor_config)
        actor.create_process_group(parallel_strategy=alloc.parallel)
        return actor
