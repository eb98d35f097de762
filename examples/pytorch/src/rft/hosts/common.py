# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the adapters share: the config keys of ours, refusals, the warning, metric names."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from typing import Any

from rft import Code, PolicyLoss, Report, RftError

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


def policy_loss(preset: str, args: Mapping[str, Any] | None, key: str) -> PolicyLoss:
    """The policy loss of an algorithm preset, its config overridden by `args`.

    `key` is where the framework's config holds them; errors begin with it.
    """
    try:
        return PolicyLoss.from_preset(preset, dict(args or {}))
    except RftError as error:
        raise RftError(error.code, f"{key}: {error.message}") from error


def warn_if_fresh(report: Report, advice: str) -> None:
    """Warns where a selection over data that should be stale found a second moment of exactly 0.

    It comes from a framework that gives the current log-probs as those of the behavior policy, so
    that every log-ratio is 0 and the selection does nothing. `advice` says what to check. A loss
    without the metric m2_before is not judged.
    """
    if report.valid_tokens and report.metrics.get("m2_before") == 0.0:
        logger.warning(
            "m2_before is exactly 0 over %d valid tokens of rollouts that are said to be stale: "
            "nothing can be selected; %s",
            report.valid_tokens,
            advice,
        )


def prefixed(metrics: Mapping[str, float], prefix: str) -> dict[str, float]:
    """The metrics under a framework's own prefix, such as "actor/"."""
    return {prefix + name: value for name, value in metrics.items()}
