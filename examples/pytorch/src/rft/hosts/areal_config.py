# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""AReaL: the config keys of ours, and what is refused. The adapter is in areal.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from areal.api.cli_args import PPOActorConfig, PPOConfig
from areal.utils.constants import ProxLogpMethod

from rft import PolicyLoss

from . import common
from .common import SelectionScope, refusal

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
        """Whether a batch has log-probs of a proximal policy that is not the behavior policy."""
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
    args, threshold = _arguments(config.policy_loss_fn_args), "actor.m2_threshold"
    loss = common.policy_loss(config.preset, args, "actor.preset", "actor.policy_loss_fn_args")
    if "m2_threshold" in loss.schema["properties"]:
        given = {**args, "m2_threshold": config.m2_threshold}
        loss = common.policy_loss(config.preset, given, "actor.preset", threshold)
    elif config.m2_threshold is not None:
        why = f"policy loss {loss.name} has no such setting"
        raise refusal(threshold, "null", config.m2_threshold, why)
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
        raise refusal(
            f"{key}.m2_threshold", "nothing", args["m2_threshold"], "set actor.m2_threshold"
        )
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
        common.refuse_padded_mean(loss, "actor.policy_loss_fn_args")
    else:
        raise refusal("actor.policy_loss", '"areal" or "plugin"', repr(config.policy_loss))


def _check_data(config: RFTActorConfig, loss: PolicyLoss) -> None:
    """The batch must hold the log-probs that are compared, the loss no term that is unasked for."""
    preset = loss.preset
    if preset.get("kl_penalty_fn") == "none" and config.kl_ctl != 0:
        why = (
            f"preset {config.preset} has no KL penalty, and AReaL's enters without a reference too"
        )
        raise refusal("actor.kl_ctl", "0", config.kl_ctl, why)
    for term in ("kl_loss_fn", "entropy_loss_fn"):
        if preset.get(term, "none") != "none":
            found = f'{config.preset}, with {term} "{preset[term]}"'
            raise refusal("actor.preset", "a preset without it", found, "AReaL has no such term")
    if config.enable_tree_training:
        raise refusal("actor.enable_tree_training", "false", "true")
    if config.recompute_logprob and not config.use_decoupled_loss:
        why = "alone it replaces the behavior policy's log-probs; or set actor.use_decoupled_loss"
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
