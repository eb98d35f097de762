# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The policy losses in TRL: a GRPOTrainer that selects once per optimizer batch.

TRL has no registry of losses: PluginGRPOTrainer takes the place of GRPOTrainer, PluginGRPOConfig
that of GRPOConfig. What TRL generates, scores, logs and saves stays as it is. `trl_async` is the
same for AsyncGRPOTrainer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import torch
import torch.distributed as dist
import trl
from accelerate import Accelerator
from accelerate.utils import DistributedType

from rft import ALONE, Batch, Metrics, PolicyLoss, Reduction, Report

from .common import (
    PLAIN,
    SelectionScope,
    logger,
    policy_loss,
    prefixed,
    reduction_of_part,
    refusal,
    refuse_other_presets,
    refuse_padded_mean,
    refuse_proximal,
    warn_if_fresh,
)

Inputs = dict[str, Any]

#: What TRL's own losses are set with; a preset and its arguments take their place.
_OF_TRL_LOSS = (
    "beta",
    "delta",
    "entropy_coef",
    "epsilon",
    "epsilon_high",
    "importance_sampling_level",
    "loss_type",
    "off_policy_mask_threshold",
    "top_entropy_quantile",
    "use_adaptive_entropy",
)

_MULTIMODAL = (
    "pixel_values",
    "image_grid_thw",
    "num_images",
    "pixel_attention_mask",
    "spatial_shapes",
    "num_tiles",
    "image_sizes",
    "token_type_ids",
    "mm_token_type_ids",
    "image_position_ids",
)


@dataclass
class Keys:
    """The config keys of ours, beside TRL's in a YAML file or on the command line."""

    preset: str = field(default="m2po", metadata={"help": "Algorithm preset of a plugin."})
    policy_loss_fn_args: dict[str, Any] | str | None = field(
        default=None, metadata={"help": "Keys of the policy loss's config, over the preset's."}
    )
    selection_scope: str = field(
        default=SelectionScope.OPTIMIZER_BATCH.value,
        metadata={"help": "optimizer_batch (exact) or micro_batch (no extra forward pass)."},
    )


@dataclass
class PluginGRPOConfig(Keys, trl.GRPOConfig):
    """`trl.GRPOConfig` with the keys of ours; refuses what PluginGRPOTrainer can't serve."""

    _VALID_DICT_FIELDS = [*trl.GRPOConfig._VALID_DICT_FIELDS, "policy_loss_fn_args"]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_keys(self)
        if self.steps_per_generation % self.gradient_accumulation_steps:
            raise refusal(
                "steps_per_generation",
                f"a multiple of gradient_accumulation_steps ({self.gradient_accumulation_steps})",
                self.steps_per_generation,
                "an optimizer batch has to come out of one generation",
            )
        if self.use_vllm and self.vllm_importance_sampling_correction:
            why = "the policy loss compares with vLLM's log-probs itself"
            raise refusal("vllm_importance_sampling_correction", "false", "true", why)


def check_keys(args: Any) -> None:
    """Refuses keys of TRL's own loss that are set: they would have no effect."""
    SelectionScope.parse(args.selection_scope, "selection_scope")
    _loss_of(args)
    for key in fields(args):
        found = getattr(args, key.name)
        if key.name in _OF_TRL_LOSS and found != key.default:
            why = (
                "the policy loss takes the place of TRL's; its own keys go into policy_loss_fn_args"
            )
            raise refusal(key.name, repr(key.default), repr(found), why)
    if args.parallelism_config is not None and args.parallelism_config.tp_enabled:
        found = args.parallelism_config.tp_size
        raise refusal("parallelism_config.tp_size", "1", found, "its ranks hold the same tokens")


def _loss_of(args: Any) -> PolicyLoss:
    """The policy loss that the config names, if TRL can give it what it needs."""
    if isinstance(args.policy_loss_fn_args, str):
        raise refusal(
            "policy_loss_fn_args", "a mapping or a JSON object", repr(args.policy_loss_fn_args)
        )
    loss = policy_loss(args.preset, args.policy_loss_fn_args, "preset", "policy_loss_fn_args")
    refuse_other_presets(loss, "preset", {**PLAIN, "advantage_fn": "grpo"}, {})
    refuse_proximal(loss, "preset", "policy_loss_fn_args", "TRL has no proximal policy")
    refuse_padded_mean(loss, "policy_loss_fn_args")
    return loss


def check_router(trainer: Any) -> None:
    if trainer.aux_loss_enabled:
        found = trainer.router_aux_loss_coef
        raise refusal("router_aux_loss_coef", "0.0", found, "only the policy loss is computed")


class OptimizerBatch:
    """The policy loss over one optimizer batch after the other, each in micro-batches.

    First `select` or, where the scope is a micro-batch, `count`; then `evaluate` for every
    micro-batch, in the same order.
    """

    def __init__(self, args: Any, accelerator: Accelerator) -> None:
        self.loss = _loss_of(args)
        self.scope = SelectionScope(args.selection_scope)
        self.left = 0  #: micro-batches still to evaluate
        self._accelerator = accelerator
        self._group = dist.group.WORLD if accelerator.num_processes > 1 else ALONE
        self._stale = False
        self._masks: Iterator[torch.Tensor] = iter(())
        self._reduction = Reduction()
        self._metrics: Metrics | None = None

    def select(self, batches: list[Batch], stale: bool) -> None:
        """One selection over all micro-batches of all ranks. `stale`: the rollouts are said to be."""
        masks, report = self.loss.select(batches, self._group)
        self._stale = stale
        self._warn(report, batches)
        self._masks, self.left = iter(masks), len(batches)
        self._reduction = report.reduction(self._scale)
        self._metrics = self.loss.metrics(report)

    def count(self, tokens: int, sequences: int, micro_batches: int, stale: bool) -> None:
        """`tokens`: this rank's valid ones; `sequences`: those with a valid token."""
        local = torch.tensor([tokens, sequences], device=self._accelerator.device)
        tokens, sequences = self._accelerator.reduce(local, "sum").tolist()
        self._reduction = Reduction(tokens, 0, sequences, self._scale)
        self._stale, self.left = stale, micro_batches

    def evaluate(self, batch: Batch) -> tuple[torch.Tensor, dict[str, float]]:
        """The loss of the next micro-batch, 0-D; and metrics of the optimizer batch after the last
        one, or of every micro-batch where that is the scope."""
        self.left -= 1
        if self.scope is SelectionScope.MICRO_BATCH:
            (mask,), report = self.loss.select([batch], ALONE)
            self._warn(report, [batch])
            whole = self._reduction
            reduction = reduction_of_part(report, whole.valid_tokens, whole.sequences, whole.scale)
            metrics = self.loss.metrics(report)
        else:
            mask, reduction, metrics = next(self._masks), self._reduction, self._metrics
        loss = self.loss(batch, mask, reduction, metrics)
        if self.left and self.scope is SelectionScope.OPTIMIZER_BATCH:
            return loss, {}
        if self._group is not ALONE:
            metrics.all_reduce(self._group)
        return loss, prefixed(metrics.as_dict(), f"{self.loss.name}/")

    def _warn(self, report: Report, batches: list[Batch]) -> None:
        if self._stale:
            warn_if_fresh(report, batches, "check the log-probs that the rollouts come with")

    @property
    def _scale(self) -> float:
        """Gradients are averaged over ranks, and up to some release of transformers 5 divided by
        the accumulation steps where they are computed, except by DeepSpeed."""
        ranks = self._accelerator.num_processes
        if self._accelerator.distributed_type == DistributedType.DEEPSPEED:
            return float(ranks)
        return float(ranks * self._accelerator.gradient_accumulation_steps)


def without_unscored(mask: torch.Tensor, old_logprob: torch.Tensor) -> torch.Tensor:
    """The mask, bool, less the tokens for which vLLM gave NaN as log-prob: they have no ratio."""
    unscored = (mask != 0) & old_logprob.isnan()
    count = int(unscored.sum())
    if count:
        logger.warning("%d tokens leave the response mask: the rollout has no log-prob", count)
    return (mask != 0) & ~unscored


class PluginGRPOTrainer(trl.GRPOTrainer):
    """`trl.GRPOTrainer` with a plugin's policy loss; `args` is a PluginGRPOConfig."""

    def __init__(
        self, model: Any, reward_funcs: Any = None, args: Any = None, *rest: Any, **named: Any
    ) -> None:
        if not isinstance(args, PluginGRPOConfig):
            raise refusal("args", "a PluginGRPOConfig", type(args).__name__)
        super().__init__(model, reward_funcs, args, *rest, **named)
        check_router(self)
        self._optimizer_batch = OptimizerBatch(args, self.accelerator)

    def _prepare_inputs(self, generation_batch: Any) -> Inputs:
        """One micro-batch. Before the first of an optimizer batch, the selection over all of them."""
        inputs = super()._prepare_inputs(generation_batch)
        micro_batches = self.current_gradient_accumulation_steps if self.model.training else 1
        # One alone is selected with the log-probs of its loss.
        if self._optimizer_batch.left == 0 and micro_batches > 1:
            first = self._step % self.args.steps_per_generation
            self._begin(self._buffered_inputs[first : first + micro_batches])
        return inputs

    def _begin(self, window: list[Inputs]) -> None:
        if self._optimizer_batch.scope is SelectionScope.MICRO_BATCH:
            self._count(window)
            return
        with torch.no_grad():
            batches = [self._batch(x, self._logprob_and_entropy(self.model, x)[0]) for x in window]
        self._optimizer_batch.select(batches, self._stale(window[0]))

    def _count(self, window: list[Inputs]) -> None:
        masks = [self._mask(inputs) for inputs in window]
        tokens = sum(int(mask.sum()) for mask in masks)
        sequences = sum(int(mask.any(1).sum()) for mask in masks)
        self._optimizer_batch.count(tokens, sequences, len(masks), self._stale(window[0]))

    def _stale(self, inputs: Inputs) -> bool:
        """What the trainer has generated itself is fresh until the first update."""
        since = self._step % (self.args.steps_per_generation * self.num_iterations)
        updated = self.model.training and since > 0
        return updated or "sampling_per_token_logps" in inputs

    def _compute_loss(self, model: torch.nn.Module, inputs: Inputs) -> torch.Tensor:
        """The loss of one micro-batch: log-probs float32 [B, C], advantages [B]."""
        logprob, entropy = self._logprob_and_entropy(model, inputs)
        batch = self._batch(inputs, logprob)
        if self._optimizer_batch.left == 0:
            if self._optimizer_batch.scope is SelectionScope.MICRO_BATCH:
                self._count([inputs])
            else:
                self._optimizer_batch.select([batch], self._stale(inputs))
        loss, metrics = self._optimizer_batch.evaluate(batch)
        sums = torch.stack([entropy.detach().float()[batch.mask].sum(), batch.mask.float().sum()])
        total, tokens = self.accelerator.reduce(sums, "sum").tolist()
        metrics["entropy"] = total / max(tokens, 1.0)
        for name, value in metrics.items():
            self._metrics["train" if self.model.training else "eval"][name].append(value)
        return loss

    def _logprob_and_entropy(
        self, model: torch.nn.Module, inputs: Inputs
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[B, C] each, under the model as it is."""
        logprob, entropy, _ = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1),
            torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1),
            inputs["completion_ids"].size(1),
            compute_entropy=True,
            **{key: inputs[key] for key in _MULTIMODAL if key in inputs},
        )
        return logprob, entropy

    def _behavior(self, inputs: Inputs) -> torch.Tensor:
        """[B, C] float32: log-probs of the rollout, or of the trainer when it generated."""
        for key in ("sampling_per_token_logps", "old_per_token_logps"):
            if key in inputs:
                return inputs[key]
        raise refusal(
            "steps_per_generation",
            "more than gradient_accumulation_steps, or num_iterations above 1, or use_vllm, or a "
            "rollout_func that gives log-probs",
            self.args.steps_per_generation,
            "every rollout is fresh, and there are no log-probs to compare with",
        )

    def _mask(self, inputs: Inputs) -> torch.Tensor:
        """[B, C] bool: tokens of the completion that the model wrote."""
        mask = inputs["completion_mask"]
        if "tool_mask" in inputs:
            mask = mask * inputs["tool_mask"]
        return without_unscored(mask, self._behavior(inputs))

    def _batch(self, inputs: Inputs, logprob: torch.Tensor) -> Batch:
        return Batch(logprob, self._behavior(inputs), inputs["advantages"], self._mask(inputs))
