# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The policy losses in verl: the policy loss "m2po" of its registry, its config, and the engine.

verl calls a policy loss for one micro-batch at a time. The selection is one over the optimizer
batch: the engine makes it, and the loss takes the mask.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from tensordict import TensorDict
from verl.trainer.ppo.core_algos import register_policy_loss
from verl.workers import config as verl_config
from verl.workers.engine import EngineRegistry
from verl.workers.utils.losses import ppo_loss

from rft import ALONE, Batch, PolicyLoss, Report, RftError

from .common import (
    SelectionScope,
    policy_loss,
    reduction_of_part,
    refusal,
    refuse_padded_mean,
    refuse_proximal,
    warn_if_fresh,
)
from .verl_engine import SelectingEngine, current_step, metric_names, padded

#: The name of the policy loss in verl's registry.
LOSS_MODE = "m2po"

_ACTOR = "actor_rollout_ref.actor"
_POLICY_LOSS = f"{_ACTOR}.policy_loss"
_CALCULATE = "actor_rollout_ref.rollout.calculate_log_probs"
_PRESET = f"{_POLICY_LOSS}.preset"
_ARGS = f"{_POLICY_LOSS}.policy_loss_fn_args"
_BYPASS = "algorithm.rollout_correction.bypass_mode"


@dataclass
class PolicyLossConfig(verl_config.PolicyLossConfig):
    """`actor_rollout_ref.actor.policy_loss`, where its `_target_` names this class.

    With verl's own class and `loss_mode: m2po`, the defaults below hold.
    """

    loss_mode: str = LOSS_MODE
    preset: str = "m2po"  #: an algorithm preset, of any plugin
    policy_loss_fn_args: dict[str, Any] = field(default_factory=dict)  #: over the preset's
    selection_scope: str = SelectionScope.OPTIMIZER_BATCH.value

    def __post_init__(self) -> None:
        _refuse_bypass_loss(self.loss_mode)
        if self.loss_mode != LOSS_MODE:
            raise refusal(f"{_POLICY_LOSS}.loss_mode", f'"{LOSS_MODE}"', f'"{self.loss_mode}"')
        self.scope = SelectionScope.parse(self.selection_scope, f"{_POLICY_LOSS}.selection_scope")
        self.loss = policy_loss(self.preset, self.policy_loss_fn_args, _PRESET, _ARGS)
        why = "verl hands a policy loss one set of old log-probs"
        refuse_proximal(self.loss, _PRESET, _ARGS, why)
        refuse_padded_mean(self.loss, _ARGS)


@register_policy_loss(LOSS_MODE)
def m2po(
    old_log_prob: torch.Tensor,
    log_prob: torch.Tensor,
    advantages: torch.Tensor,
    response_mask: torch.Tensor,
    loss_agg_mode: str = "token-mean",
    config: verl_config.ActorConfig | None = None,
    rollout_is_weights: torch.Tensor | None = None,
) -> tuple[torch.Tensor, dict[str, float]]:
    """The loss of one micro-batch, as verl calls it: tensors [B, R], log-probs and advantages
    float32, response_mask bool; `rollout_is_weights` is the engine's mask, float32 0 or 1.

    Gives a 0-D tensor of the graph, and metrics. The sum over micro-batches, averaged over
    data-parallel ranks, is the loss of the optimizer batch.
    """
    settings, step = settings_of(config), current_step.get()
    batch = Batch(log_prob, old_log_prob, advantages, response_mask)
    if step is not None:
        return settings.loss(batch, rollout_is_weights != 0, step.reduction, step.metrics), {}
    if settings.scope is SelectionScope.MICRO_BATCH:
        if rollout_is_weights is not None:
            raise _weights_refusal()
        return _select_here(settings.loss, batch, config.global_batch_info)
    raise refusal(
        f"{_ACTOR}.strategy",
        '"fsdp" or "fsdp2" on an NVIDIA GPU',
        f'an engine other than the one of {__name__}, under "{config.strategy}"',
        f'or set {_POLICY_LOSS}.selection_scope to "micro_batch"',
    )


def _select_here(
    loss: PolicyLoss, batch: Batch, counts: dict[str, Any]
) -> tuple[torch.Tensor, dict[str, float]]:
    """Selects within one micro-batch; means divide by verl's counts of the optimizer batch."""
    with torch.no_grad():
        (keep,), report = loss.select([batch], ALONE)
    _warn(report, batch)
    names = ("batch_num_tokens", "global_batch_size", "dp_size")
    tokens, sequences, ranks = (int(counts[name]) for name in names)
    reduction = reduction_of_part(report, tokens, sequences, float(ranks))
    metrics = loss.metrics(report)
    return loss(batch, keep, reduction, metrics), metric_names(loss, metrics)


# Under the vendor's name: verl looks there before it takes its own entry.
@EngineRegistry.register("language_model", ["fsdp", "fsdp2"], device="cuda", vendor="nvidia")
class Engine(SelectingEngine):
    """verl's FSDP engine, which selects for the policy loss above and leaves others alone."""

    def policy_loss(self, data: TensorDict, loss_function: Callable) -> PolicyLoss | None:
        actor = getattr(loss_function, "keywords", {}).get("config")
        settings = settings_of(actor) if hasattr(actor, "policy_loss") else None
        if settings is None:
            return None
        if loss_function.func is not ppo_loss:
            raise refusal("distillation.enabled", "false", "true")
        _check_batch(data, settings)
        if settings.scope is SelectionScope.MICRO_BATCH:
            _check_old_logprob(data)
            return None
        return settings.loss

    def batch(self, data: TensorDict, logprob: torch.Tensor) -> Batch:
        _check_old_logprob(data)  # the one check that may fail on some ranks only
        return super().batch(data, logprob)

    def selected(self, report: Report, batch: Batch) -> None:
        if self.get_data_parallel_rank() == 0:
            _warn(report, batch)


def settings_of(actor: verl_config.ActorConfig) -> PolicyLossConfig | None:
    """The settings in an actor's config, after a look at the rest of it; None: another loss."""
    given = actor.policy_loss
    _refuse_bypass_loss(given.loss_mode)
    if given.loss_mode != LOSS_MODE:
        return None
    settings = given if isinstance(given, PolicyLossConfig) else _default_settings()
    config, preset = settings.loss.config, settings.loss.preset
    for key, term, without, having in (
        ("use_kl_loss", "kl_loss_fn", "false", "true"),
        ("entropy_coeff", "entropy_loss_fn", "0", "another number"),
    ):
        wanted = preset[term] != "none"
        if bool(actor.get(key)) != wanted:
            why = f'preset "{settings.preset}" has {term} "{preset[term]}"'
            found = str(actor.get(key)).lower()
            raise refusal(f"{_ACTOR}.{key}", having if wanted else without, found, why)
    for key in ("loss_agg_mode", "loss_scale_factor"):
        if key in config and config[key] != actor.get(key):
            why = f"it has to agree with {_ARGS}.{key}"
            raise refusal(f"{_ACTOR}.{key}", repr(config[key]), repr(actor.get(key)), why)
    return settings


@functools.cache
def _default_settings() -> PolicyLossConfig:
    return PolicyLossConfig()


def _check_batch(data: TensorDict, settings: PolicyLossConfig) -> None:
    """Refuses what only shows in the batch, since the rest of the config never gets to a worker."""
    preset = settings.loss.preset
    if "rollout_log_probs" not in data:
        raise refusal(_CALCULATE, "true", "no rollout_log_probs in the batch")
    if "rollout_is_weights" in data:
        raise _weights_refusal()
    if "values" in data and not preset["use_critic"]:
        why = f'preset "{settings.preset}" has no critic'
        raise refusal("algorithm.adv_estimator", '"grpo"', "values of a critic in the batch", why)
    if "ref_log_prob" in data and not preset["use_reference"]:
        why = f'preset "{settings.preset}" has no KL term'
        found = "log-probs of a reference policy in the batch"
        raise refusal("algorithm.use_kl_in_reward", "false", found, why)


def _check_old_logprob(data: TensorDict) -> None:
    names = ("response_mask", "old_log_probs", "rollout_log_probs")
    mask, old, rollout = (padded(data[name]) for name in names)
    if not torch.equal(old[mask != 0], rollout[mask != 0]):
        why = "old_log_probs are not those of the rollouts"
        raise refusal(_BYPASS, "true", "false", why)


def _refuse_bypass_loss(loss_mode: str) -> None:
    """In bypass mode, verl's older trainers write this name over the loss that was asked for."""
    if loss_mode == "bypass_mode":
        why = f"with {_BYPASS} this trainer replaces the policy loss; set trainer.use_v1 to true"
        raise refusal(f"{_POLICY_LOSS}.loss_mode", f'"{LOSS_MODE}"', '"bypass_mode"', why)


def _weights_refusal() -> RftError:
    why = "the policy loss has importance ratios of its own"
    return refusal("algorithm.rollout_correction.rollout_is", "null", "weights in the batch", why)


def _warn(report: Report, batch: Batch) -> None:
    warn_if_fresh(report, [batch], f"check {_BYPASS} and {_CALCULATE}")
