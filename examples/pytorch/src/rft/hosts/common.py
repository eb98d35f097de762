# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the adapters share: the config keys of ours, refusals, counts of the optimizer batch, the
warning, metric names."""

from __future__ import annotations

import contextlib
import enum
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist

from rft import (
    ALONE,
    Batch,
    Code,
    PolicyLoss,
    Reduction,
    Registry,
    Report,
    RftError,
    default_registry,
)

logger = logging.getLogger("rft")


class SelectionScope(enum.Enum):
    """The tokens that one selection sees."""

    #: Everything that goes into one optimizer step: exact.
    OPTIMIZER_BATCH = "optimizer_batch"
    #: What one call of the loss is given: no extra forward pass, and another mask.
    MICRO_BATCH = "micro_batch"

    @classmethod
    def parse(cls, value: Any, key: str) -> SelectionScope:
        """The scope that the config key `key` names."""
        for scope in cls:
            if value == scope.value:
                return scope
        known = " or ".join(f'"{scope.value}"' for scope in cls)
        raise refusal(key, known, repr(value))


def refusal(key: str, expected: str, found: Any, why: str = "") -> RftError:
    """The error, to raise, about a mode that an adapter can't serve: `key` is the one to change."""
    message = f"{key}: expected {expected}, found {found}"
    return RftError(Code.FAILED_PRECONDITION, f"{message}: {why}" if why else message)


def policy_loss(preset: Any, args: Any, preset_key: str, args_key: str) -> PolicyLoss:
    """The policy loss of an algorithm preset, its config overridden by the mapping `args`.

    The keys are where the framework's config holds them; errors begin with the one to change.
    """
    if not isinstance(preset, str):
        raise refusal(preset_key, "the name of an algorithm preset", repr(preset))
    if not isinstance(args, (Mapping, type(None))):
        raise refusal(args_key, "a mapping", repr(args))
    with _about("RFT_PLUGIN_PATH"):
        registry = default_registry()
    with _about(preset_key, registry):
        registry.preset(preset)
    with _about(args_key):
        return PolicyLoss.from_preset(preset, args)


@contextlib.contextmanager
def _about(key: str, registry: Registry | None = None) -> Iterator[None]:
    """Puts the key before an error, and behind it where the registry has looked."""
    try:
        yield
    except RftError as error:
        looked = "" if registry is None else _looked(registry)
        raise RftError(error.code, f"{key}: {error.message}{looked}") from error


def _looked(registry: Registry) -> str:
    path = os.environ.get("RFT_PLUGIN_PATH")
    places = f"RFT_PLUGIN_PATH={path}" if path else "the package rft and installed ones"
    refused = "".join(f"; refused {it.path}: {it.reason}" for it in registry.refusals)
    return f"; plugins are looked for in {places}{refused}"


#: Settings of a preset that has a policy loss and no other term.
PLAIN: dict[str, Any] = {
    "use_critic": False,
    "use_reference": False,
    "kl_penalty_fn": "none",
    "kl_loss_fn": "none",
    "entropy_loss_fn": "none",
}


def refuse_other_presets(
    loss: PolicyLoss, key: str, served: Mapping[str, Any], reasons: Mapping[str, str]
) -> None:
    """Refuses a preset, named by the config key `key`, with other settings than those served."""
    preset = loss.preset or {}
    for setting, value in served.items():
        if preset[setting] != value:
            why = reasons.get(setting, "")
            raise refusal(key, f"a preset with {setting} {value!r}", repr(preset[setting]), why)


def refuse_proximal(loss: PolicyLoss, key: str, args_key: str, why: str) -> None:
    """Refuses to compare with a proximal policy: by the preset, or by the arguments over it."""
    preset = loss.preset or {}
    if preset["rollout"]["proximal_logprobs"]:
        raise refusal(key, "a preset without proximal log-probs", "one that needs them", why)
    if loss.config.get("m2_reference") == "proximal":
        raise refusal(f"{args_key}.m2_reference", "'current'", "'proximal'", why)


def refuse_padded_mean(loss: PolicyLoss, key: str) -> None:
    """Refuses to divide by a padded length, which is another one in each micro-batch; `key` holds
    the arguments."""
    if loss.config.get("loss_agg_mode") == "seq-mean-token-sum-norm":
        if loss.config.get("loss_scale_factor") is None:
            why = "the padded length differs between micro-batches"
            raise refusal(f"{key}.loss_scale_factor", "a number", "null", why)


def count(mask: torch.Tensor, group: Any = None) -> tuple[int, int]:
    """Valid tokens, and sequences that have one, of a response mask [B, T]; summed over the ranks
    of `group`, or of this process alone."""
    valid = mask != 0
    counts = torch.stack([valid.sum(), valid.any(1).sum()])
    if group not in (None, ALONE):
        dist.all_reduce(counts, group=group)
    tokens, sequences = counts.tolist()
    return tokens, sequences


def reduction_of_part(report: Report, valid_tokens: int, sequences: int, scale: float) -> Reduction:
    """The reduction where each micro-batch selects for itself: `report` is that of one of them, the
    counts are the optimizer batch's. Nobody has counted the kept tokens of all: as many as if every
    micro-batch were like this one."""
    share = report.kept_tokens / max(report.valid_tokens, 1)
    return Reduction(valid_tokens, round(valid_tokens * share), sequences, scale)


def warn_if_fresh(report: Report, batches: Iterable[Batch], advice: str) -> None:
    """Warns where a selection over data that should be stale found a second moment of exactly 0,
    because every log-ratio is 0 in the `batches` of this rank.

    It comes from a framework that gives the current log-probs as those of the behavior policy:
    nothing can be selected then. A trust region without any token is no reason to warn. `advice`
    says what to check. A loss without the metric m2_before is not judged.
    """
    if report.metrics.get("m2_before") == 0.0:
        same = [_log_ratios_are_0(batch) for batch in batches if (batch.mask != 0).any()]
        if same and all(same):
            logger.warning(
                "m2_before is exactly 0 over %d valid tokens of rollouts that are said to be "
                "stale: nothing can be selected; %s",
                report.valid_tokens,
                advice,
            )


def _log_ratios_are_0(batch: Batch) -> bool:
    """Against the current or, where there is one, the proximal policy."""
    old = batch.old_logprob
    invalid = (batch.mask == 0).to(old.device)  # a framework may have some of it on the CPU
    return any(
        bool(((policy.detach().to(old.device) == old) | invalid).all())
        for policy in (batch.logprob, batch.proximal_logprob)
        if policy is not None
    )


def prefixed(metrics: Mapping[str, float], prefix: str) -> dict[str, float]:
    """The metrics under a framework's own prefix, such as "actor/"."""
    return {prefix + name: value for name, value in metrics.items()}
