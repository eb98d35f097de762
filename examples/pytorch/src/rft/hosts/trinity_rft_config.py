# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What a config of Trinity-RFT has to be for `rft.hosts.trinity_rft`, and where it selects."""

from __future__ import annotations

import enum
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from packaging.version import Version
from trinity.common.config import AlgorithmConfig, Config, OperatorConfig, TrainerConfig

from rft import PolicyLoss

from .common import (
    PLAIN,
    SelectionScope,
    refusal,
    refuse_other_presets,
    refuse_proximal,
)

ARGS = "algorithm.policy_loss_fn_args"
BYPASS = "algorithm.bypass_old_logprobs"
LOGPROBS = "buffer.explorer_input.taskset.rollout_args.logprobs"
OPERATORS = "data_processor.experience_pipeline.operators"
_EPOCHS = "trainer.trainer_config.actor.ppo_epochs"
_EXTERNAL = "trainer.trainer_config.model.external_lib"

_MEANS = "Trinity adds the term's mean of each micro-batch, and the loss is the whole batch's"
#: Why a part of the algorithm is not for choice.
_REASONS = {
    "kl_loss_fn": _MEANS,
    "entropy_loss_fn": _MEANS,
    "kl_penalty_fn": "advantages are computed before the trainer could change rewards",
}


class Hook(enum.Enum):
    """Where the selection is made."""

    #: In the trainer process, by the advantage function, from the log-probs recomputed there.
    TRAINER = "trainer"
    #: In the workers, by the engine of `rft.hosts.trinity_rft_engine`.
    ENGINE = "engine"


#: The one that this verl allows: before 0.9, EngineRegistry takes no engine beside verl's own.
HOOK = (
    Hook.ENGINE if Version(importlib.metadata.version("verl")) >= Version("0.9") else Hook.TRAINER
)


def check_parts(algorithm: AlgorithmConfig, wanted: Mapping[str, str]) -> None:
    """Refuses other parts of the algorithm than ours: its functions by name."""
    for key in sorted(wanted.keys() - {"sample_strategy"}):
        found = getattr(algorithm, key)
        if found not in (None, wanted[key]):
            why = _REASONS.get(key, "the parts belong together")
            raise refusal(f"algorithm.{key}", f'"{wanted[key]}"', f'"{found}"', why)


def check_preset(loss: PolicyLoss) -> None:
    """Refuses a preset of an algorithm with more than a policy loss."""
    key, why = (
        f"{ARGS}.preset",
        "in a train step, which is one optimizer step, it is the current one",
    )
    refuse_other_presets(loss, key, PLAIN, _REASONS)
    refuse_proximal(loss, key, ARGS, why)


def check_trainer(trainer: TrainerConfig, scope: SelectionScope, engine: str) -> None:
    """Refuses trainers that the hook is not for; `engine`: the module of the one that selects."""
    verl = importlib.metadata.version("verl")
    if Version(verl) < Version("0.8"):
        why = "the trainer for older ones scales losses itself"
        raise refusal("verl", "0.8.0 or newer", verl, why)
    if trainer.trainer_type != "verl":
        raise refusal("trainer.trainer_type", '"verl"', f'"{trainer.trainer_type}"')
    strategy = trainer.trainer_strategy
    if strategy not in ("fsdp", "fsdp2"):
        raise refusal("trainer.trainer_strategy", '"fsdp" or "fsdp2"', f'"{strategy}"')
    overrides = _overrides(trainer)
    epochs = overrides.get("actor", {}).get("ppo_epochs", 1)
    if epochs != 1 and HOOK is Hook.TRAINER and scope is SelectionScope.OPTIMIZER_BATCH:
        raise refusal(_EPOCHS, "1", epochs, "the selection is made once a train step")
    if HOOK is Hook.ENGINE:
        found = overrides.setdefault("model", {}).setdefault("external_lib", engine)
        if found != engine:
            raise refusal(_EXTERNAL, f'"{engine}"', f'"{found}"', "its engine selects")


def _overrides(trainer: TrainerConfig) -> dict[str, Any]:
    """trainer.trainer_config's sections, in whichever of Trinity's two layouts."""
    given = trainer.trainer_config
    return given.get("actor_rollout_ref", given)


def agree_on_aggregation(
    algorithm: AlgorithmConfig, args: dict[str, Any], loss: PolicyLoss
) -> None:
    """Trinity writes algorithm.loss_agg_mode over policy_loss_fn_args.loss_agg_mode, unless it is
    missing there; then the loss would not see it."""
    mode, own = algorithm.loss_agg_mode, loss.config.get("loss_agg_mode")
    if own is None:
        if mode not in (None, "token-mean"):  # which Trinity puts where there is none
            raise refusal("algorithm.loss_agg_mode", "null", f'"{mode}"', f"not in {loss.name}")
    elif mode not in (None, own):
        if "loss_agg_mode" in args:
            why = f"as {ARGS} has it"
            raise refusal("algorithm.loss_agg_mode", f'"{own}"', f'"{mode}"', why)
        args["loss_agg_mode"] = mode
    else:
        algorithm.loss_agg_mode = own


def add_operator(config: Config, name: str) -> None:
    """Adds the group advantages to the explorer's pipeline: Trinity does so by itself only where
    the trainer computes none."""
    operators = config.data_processor.experience_pipeline.operators
    if all(operator.name != name for operator in operators):
        operators.append(OperatorConfig(name=name, args=config.algorithm.advantage_fn_args))
