# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""AReaL: a selection over each optimizer step, then AReaL's own PPO or SAPO loss, or the plugin's.

A training script loads its config as RFTConfig and runs RFTTrainer. That is all it does differently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from areal import PPOTrainer
from areal.api.alloc_mode import ModelAllocation
from areal.api.cli_args import PPOActorConfig, PPOConfig
from areal.engine import FSDPPPOActor
from areal.utils import stats_tracker
from areal.utils.constants import ProxLogpMethod
from areal.utils.environ import is_single_controller

from rft import ALONE, Batch, Metrics, PolicyLoss, Report

from . import common
from .common import SelectionScope, refusal

#: The selection's answer on its way through AReaL's packing, bool.
KEEP = "rft_keep"

#: Settings of the plugin's loss, and where AReaL's own loss has the same one.
OWN_LOSS = {
    "surrogate": "actor.use_sapo_loss",
    "clip_range_low": "actor.eps_clip",
    "clip_range_high": "actor.eps_clip_higher",
    "clip_ratio_c": "actor.c_clip",
    "sapo_tau_pos": "actor.sapo_tau_pos",
    "sapo_tau_neg": "actor.sapo_tau_neg",
    "loss_agg_mode": "nothing: it is a mean over tokens",
    "loss_scale_factor": "nothing: it is a mean over tokens",
    "log_ratio_clip": "nothing: it has no such clamp",
}
#: What AReaL's own loss offers and the plugin's does not read, with the value that says nothing.
UNREAD = {
    "use_sapo_loss": False,
    "rejection_sampling": None,
    "importance_sampling_level": "token",
    "eps_clip_higher": None,
    "c_clip": None,
}


@dataclass
class RFTActorConfig(PPOActorConfig):
    """AReaL's actor config and four keys; `m2_threshold`, AReaL's own, goes over the preset's."""

    preset: str = field(default="m2po", metadata={"help": "Algorithm preset of an RFT plugin."})
    policy_loss_fn_args: Any = field(
        default=None, metadata={"help": "Over the preset's: a mapping, or one as JSON text."}
    )
    policy_loss: str = field(
        default="areal",
        metadata={
            "help": "Loss after the selection: AReaL's PPO or SAPO, or the plugin's.",
            "choices": ["areal", "plugin"],
        },
    )
    selection_scope: str = field(
        default="optimizer_batch",
        metadata={
            "help": "Tokens that one selection sees.",
            "choices": ["optimizer_batch", "micro_batch"],
        },
    )

    @property
    def gives_proximal(self) -> bool:
        """Whether a micro-batch has log-probs of a proximal policy that differs from the behavior's."""
        return self.use_decoupled_loss and self.should_compute_prox_logp()


@dataclass
class RFTConfig(PPOConfig):
    """AReaL's experiment config; refuses what could not be served before anything is started."""

    actor: RFTActorConfig = field(default_factory=RFTActorConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        loss = policy_loss_of(self.actor)
        if self.critic is not None and loss.preset.get("use_critic") is False:
            raise refusal("critic", "null", "a critic", f"preset {self.actor.preset} has none")
        if self.teacher is not None:
            raise refusal("teacher", "null", "a teacher", "its KL term would be masked as well")


def policy_loss_of(config: RFTActorConfig) -> PolicyLoss:
    """The policy loss that an actor's config asks for; an RftError where it can't be served."""
    args = _arguments(config.policy_loss_fn_args)
    loss = common.policy_loss(config.preset, {}, "actor.preset")
    if "m2_threshold" in loss.schema["properties"]:
        loss = common.policy_loss(config.preset, {**args, "m2_threshold": config.m2_threshold}, "actor")
    elif config.m2_threshold is not None:
        why = f"policy loss {loss.name} has no such setting"
        raise refusal("actor.m2_threshold", "null", config.m2_threshold, why)
    else:
        loss = common.policy_loss(config.preset, args, "actor.policy_loss_fn_args")
    SelectionScope.parse(config.selection_scope, "actor.selection_scope")
    _check_loss(config, args, loss)
    _check_data(config, loss)
    return loss


def _arguments(given: Any) -> dict[str, Any]:
    key, args = "actor.policy_loss_fn_args", given
    if isinstance(given, str):
        try:
            args = json.loads(given)
        except ValueError as error:
            raise refusal(key, "a mapping or JSON", repr(given), str(error)) from None
    if not isinstance(args, Mapping | None):
        raise refusal(key, "a mapping, or JSON of one", repr(given))
    if "m2_threshold" in (args or {}):
        raise refusal(f"{key}.m2_threshold", "nothing", args["m2_threshold"], "set actor.m2_threshold")
    return dict(args or {})


def _check_loss(config: RFTActorConfig, args: dict[str, Any], loss: PolicyLoss) -> None:
    """Settings that the chosen loss does not read are refused."""
    if config.policy_loss == "areal":
        for key in OWN_LOSS.keys() & args.keys():
            found = f'{args[key]!r} with actor.policy_loss "areal"'
            why = f"AReaL's loss has {OWN_LOSS[key]}"
            raise refusal(f"actor.policy_loss_fn_args.{key}", "nothing", found, why)
    elif config.policy_loss == "plugin":
        for key, unset in UNREAD.items():
            if getattr(config, key) != unset:
                found = f'{getattr(config, key)!r} with actor.policy_loss "plugin"'
                raise refusal(f"actor.{key}", repr(unset), found, "only AReaL's loss reads it")
        mode, factor = map(loss.config.get, ("loss_agg_mode", "loss_scale_factor"))
        if mode == "seq-mean-token-sum-norm" and factor is None:
            why = "packed micro-batches have no padded length"
            raise refusal("actor.policy_loss_fn_args.loss_scale_factor", "a number", "null", why)
    else:
        raise refusal("actor.policy_loss", '"areal" or "plugin"', repr(config.policy_loss))


def _check_data(config: RFTActorConfig, loss: PolicyLoss) -> None:
    """The batch must hold the log-probs that the selection compares, and no term of another loss."""
    preset = loss.preset
    if preset.get("kl_penalty_fn") == "none" and config.kl_ctl != 0:
        why = f"preset {config.preset} has no KL penalty, and AReaL's enters without a reference too"
        raise refusal("actor.kl_ctl", "0", config.kl_ctl, why)
    for term in ("kl_loss_fn", "entropy_loss_fn"):
        if preset.get(term, "none") != "none":
            found = f'{config.preset}, with {term} "{preset[term]}"'
            raise refusal("actor.preset", "a preset without it", found, "AReaL has no such term")
    if config.enable_tree_training:
        raise refusal("actor.enable_tree_training", "false", "true")
    if config.recompute_logprob and not config.use_decoupled_loss:
        why = "it replaces the behavior policy's log-probs; for a proximal policy, set use_decoupled_loss"
        raise refusal("actor.recompute_logprob", "false", "true", why)
    proximal = (
        loss.config.get("m2_reference") == "proximal"
        or preset.get("rollout", {}).get("proximal_logprobs") is True
    )
    if proximal and not config.use_decoupled_loss:
        why = "the proximal policy would be the behavior policy, which it is compared with"
        raise refusal("actor.use_decoupled_loss", "true", "false", why)
    proximal |= config.use_decoupled_loss and config.policy_loss == "plugin"
    if proximal and not config.gives_proximal:
        found, why = config.prox_logp_method, "AReaL guesses the proximal policy inside its loss"
        raise refusal("actor.prox_logp_method", ProxLogpMethod.RECOMPUTE.value, found, why)


class RFTActor(FSDPPPOActor):
    """AReaL's FSDP actor. One call of `train_batch` is one optimizer step: there it selects."""

    def __init__(self, config: RFTActorConfig) -> None:
        super().__init__(config)
        self.loss = policy_loss_of(config)
        self.scope = SelectionScope.parse(config.selection_scope, "actor.selection_scope")
        self.actor.m2_threshold = None  # AReaL's own selection, which would run a second time
        self._proximal_is_current = False

    def ppo_update(self, *args: Any, **kwargs: Any) -> None:
        # AReaL recomputes log-probs right before: they are the current policy's until the first step.
        self._proximal_is_current = self.config.gives_proximal
        super().ppo_update(*args, **kwargs)

    def train_batch(
        self,
        input_: dict[str, Any],
        loss_fn: Callable[..., torch.Tensor],
        loss_weight_fn: Callable[[dict[str, Any]], torch.Tensor],
    ) -> dict[str, float]:
        """One optimizer step over this rank's `input_`, tensors [b, S] before the micro-batch split:
        `loss_mask`, `logprobs` (behavior policy), `advantages`, and `prox_logp` float32, `versions`
        int32. `loss_fn` is AReaL's, over packed [n] tensors."""
        report = collected = None
        if self.scope is SelectionScope.OPTIMIZER_BATCH:
            keep, report = self._select(input_, self._logprobs(input_), self.data_parallel_group)
            collected = self.loss.metrics(report)
            input_ = {**input_, KEEP: keep}
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
                scale = whole.valid_tokens / int(data["loss_mask"].count_nonzero())
                batch = self._batch(data, logprobs)
                loss = self.loss(batch, keep, whole.reduction(scale), metrics)
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
        (keep,), report = self.loss.select([self._batch(data, logprobs)], group)
        versions = data.get("versions", torch.tensor(-1))
        stale = (versions >= 0) & (versions < self.get_version())
        same = (logprobs == data["logprobs"]) | (data["loss_mask"] == 0)
        if self.loss.config.get("m2_threshold") is not None and stale.any() and same.all():
            common.warn_if_fresh(report, "check that the workflow gives the server's log-probs")
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
