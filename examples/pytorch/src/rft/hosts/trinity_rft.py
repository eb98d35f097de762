# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The policy losses in Trinity-RFT: an algorithm type, an advantage function and a policy loss.

`algorithm.algorithm_type: rft.hosts.trinity_rft.PluginAlgorithm` is all that a config has to name.
Trinity calls a policy loss for one micro-batch and one rank, and adds the results up unscaled. The
selection is one over the optimizer batch, which one train step is: it is made before the split, and
its mask and counts travel with the batch, in keys of ours, to the loss.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import torch
from trinity.algorithm import ADVANTAGE_FN
from trinity.algorithm.advantage_fn import AdvantageFn
from trinity.algorithm.algorithm import AlgorithmType
from trinity.algorithm.policy_loss_fn import PolicyLossFn
from trinity.buffer.operators import ExperienceOperator
from trinity.common.config import Config
from trinity.common.experience import Experience
from trinity.utils.log import get_logger

from rft import ALONE, COPIED_BYTES, Batch, PolicyLoss, Report

from . import trinity_rft_config as checks
from .common import SelectionScope, count, policy_loss, reduction_of_part, refusal, warn_if_fresh
from .trinity_rft_config import ARGS, BYPASS, HOOK, Hook

if TYPE_CHECKING:
    from verl import DataProto

#: [B, R] bool: the tokens that the selection keeps.
KEEP = "rft_keep"
#: [B, 3 + metrics] float64, equal rows: valid tokens, kept tokens and sequences of the whole
#: optimizer batch, then the selection's metrics as the library orders them.
REPORT = "rft_report"

#: What a warning says to check.
ADVICE = f"check {BYPASS} and that rollouts bring their log-probs"

#: Metrics of a micro-batch: Trinity's names, and how micro-batches and ranks combine.
_METRICS = {
    "ppo_kl": ("ppo_kl", "sum"),
    "ratio_mean": ("ratio/mean", "sum"),
    "ratio_max": ("ratio/max", "max"),
    "ratio_min": ("ratio/min", "min"),
    "clip_fraction": ("pg_clipfrac", "sum"),
}


class PluginPolicyLoss(PolicyLossFn):
    """`algorithm.policy_loss_fn`: the policy loss of an algorithm preset.

    `policy_loss_fn_args`: `preset`, `selection_scope`, and over the preset's own, any key of the
    policy loss, such as `m2_threshold`.
    """

    def __init__(
        self,
        backend: str = "verl",
        preset: str = "m2po",
        selection_scope: str = SelectionScope.OPTIMIZER_BATCH.value,
        **args: Any,
    ) -> None:
        super().__init__(backend=backend)
        self.scope = SelectionScope.parse(selection_scope, f"{ARGS}.selection_scope")
        self.loss: PolicyLoss = policy_loss(preset, args, f"{ARGS}.preset", ARGS)
        self._selection_metrics = self.loss.select([], ALONE).report.metrics.keys() - {COPIED_BYTES}

    def __call__(  # type: ignore[override]
        self,
        logprob: torch.Tensor,
        old_logprob: torch.Tensor,
        action_mask: torch.Tensor,
        advantages: torch.Tensor,
        rft_keep: torch.Tensor,
        rft_report: torch.Tensor,
        dp_size: int,
        batch_num_tokens: int,
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """One micro-batch: log-probs and advantages [b, R] float32, action_mask [b, R] bool;
        dp_size and batch_num_tokens are verl's counts of the optimizer step.

        Gives a 0-D tensor of the graph, this micro-batch's part of the optimizer batch's loss times
        the number of data-parallel ranks, because gradients are averaged over them; and metrics.
        """
        batch = Batch(logprob, old_logprob, advantages, action_mask)
        report = _report(rft_report[0].tolist())
        if report.valid_tokens != int(batch_num_tokens):
            why = "one train step has to be one optimizer step"
            expected = f"the experiences of a train step, {report.valid_tokens} tokens"
            found = f"an optimizer step of {int(batch_num_tokens)} tokens"
            raise refusal("buffer.train_batch_size", expected, found, why)
        reduction = report.reduction(scale=float(dp_size))
        if self.scope is SelectionScope.MICRO_BATCH:
            with torch.no_grad():
                (rft_keep,), report = self.loss.select([batch], ALONE)
            warn_if_fresh(report, [batch], ADVICE)
            counts = (reduction.valid_tokens, reduction.sequences)
            reduction = reduction_of_part(report, *counts, float(dp_size))
        metrics = self.loss.metrics(report)
        loss = self.loss(batch, rft_keep, reduction, metrics)
        weight = float(action_mask.sum()) / max(reduction.valid_tokens, 1) * float(dp_size)
        return loss, self._named(loss.item(), metrics.as_dict(), weight)

    def _named(self, loss: float, values: Mapping[str, float], weight: float) -> dict[str, Any]:
        """The metrics by Trinity's names; it puts actor/ before them."""
        from verl.utils.metric import Metric  # the explorer needs no verl

        # verl averages over the ranks, and sums, or what it says, over micro-batches.
        named: dict[str, Any] = {"pg_loss": Metric("sum", loss)}
        named[COPIED_BYTES] = Metric("sum", values[COPIED_BYTES])
        for metric, (name, combine) in _METRICS.items():
            if metric in values:
                value = values[metric] * weight if combine == "sum" else values[metric]
                named[name] = Metric(combine, value)
        for metric in sorted(self._selection_metrics):
            named[f"{self.loss.name}/{metric}"] = Metric("mean", values[metric])
        return named

    @classmethod
    def default_args(cls) -> dict[str, Any]:
        return {"preset": "m2po", "selection_scope": SelectionScope.OPTIMIZER_BATCH.value}

    # --------------------------------------------------------------------- before the micro-batches

    def attach(
        self, tensors: MutableMapping[str, torch.Tensor], batch: Batch, group: Any = ALONE
    ) -> Report:
        """Selects over the optimizer batch, all of it or this rank's part with `group`, and puts
        what the loss takes into `tensors`, [B, R] each: a batch of Trinity's."""
        (keep,), report = self.loss.select([batch], group)
        counts = [report.valid_tokens, report.kept_tokens, report.sequences]
        _put(tensors, keep, [*counts, *report.values])
        return report

    def attach_counts(self, tensors: MutableMapping[str, torch.Tensor], group: Any = None) -> None:
        """The same where each micro-batch selects for itself: counts only."""
        valid, sequences = count(tensors["response_mask"], group)
        _put(tensors, tensors["response_mask"] != 0, [valid, valid, sequences])


class SelectingAdvantage(AdvantageFn, ExperienceOperator):
    """`algorithm.advantage_fn`: advantages of a group function of Trinity's, such as grpo, in the
    explorer's experience pipeline, where groups are whole; then, in the trainer, the selection."""

    def __init__(
        self,
        group_advantage: str = "grpo",
        group_advantage_args: Mapping[str, Any] | None = None,
        policy_loss_fn_args: Mapping[str, Any] | None = None,
    ) -> None:
        """`policy_loss_fn_args` are algorithm.policy_loss_fn_args: PluginAlgorithm copies them."""
        function = ADVANTAGE_FN.get(group_advantage)
        if function.compute_in_trainer():
            key = "algorithm.advantage_fn_args.group_advantage"
            raise refusal(key, "one for the experience pipeline", f'"{group_advantage}"')
        self.group = function(**{**function.default_args(), **(group_advantage_args or {})})
        self.policy = PluginPolicyLoss(**(policy_loss_fn_args or {}))
        self._newest = -1

    def process(self, exps: list[Experience]) -> tuple[list[Experience], dict]:
        """In the explorer: the advantages of one explore step's experiences."""
        return self.group.process(exps)

    def __call__(self, exps: DataProto, **kwargs: Any) -> tuple[DataProto, dict]:
        """In the trainer: the selection over one train step, whose tensors are [B, R].

        Takes response_mask, advantages, rollout_log_probs and, recomputed by the trainer,
        old_log_probs of the current policy; leaves old_log_probs those of the rollouts.
        """
        tensors = exps.batch
        for name, key, expected in (
            ("rollout_log_probs", checks.LOGPROBS, "0"),
            ("advantages", checks.OPERATORS, f'"{_path(SelectingAdvantage)}" among them'),
        ):
            if name not in tensors.keys():
                raise refusal(key, expected, f"experiences without {name}")
        rollout = tensors["rollout_log_probs"]
        if self.policy.scope is SelectionScope.MICRO_BATCH:
            self.policy.attach_counts(tensors)
        else:
            current = tensors["old_log_probs"]
            if current.data_ptr() == rollout.data_ptr():
                raise refusal(BYPASS, "false", "true", "the selection takes current log-probs")
            batch = Batch(current, rollout, tensors["advantages"], tensors["response_mask"])
            report = self.policy.attach(tensors, batch)
            if self._stale(exps.meta_info.get("model_versions")):
                warn_if_fresh(report, [batch], ADVICE)
        tensors["old_log_probs"] = rollout
        return exps, {}

    def _stale(self, versions: Any) -> bool:
        """Whether a rollout is of an older policy than the one trained: at least as many updates
        as there were calls, from the newest version seen."""
        if versions is None:
            return False
        self._newest = max(self._newest + 1, int(versions.max()))
        return int(versions.min()) < self._newest

    @classmethod
    def default_args(cls) -> dict[str, Any]:
        return {"group_advantage": "grpo", "group_advantage_args": {}}

    @classmethod
    def compute_in_trainer(cls) -> bool:
        return HOOK is Hook.TRAINER


class PluginAlgorithm(AlgorithmType):
    """`algorithm.algorithm_type`: with the preset of `algorithm.policy_loss_fn_args`, or m2po."""

    use_critic: bool = False
    use_reference: bool = False
    compute_advantage_in_trainer: bool = HOOK is Hook.TRAINER
    can_balance_batch: bool = True
    schema: str = "experience"

    @classmethod
    def default_config(cls) -> dict[str, Any]:
        return {
            "sample_strategy": "default",
            "policy_loss_fn": _path(PluginPolicyLoss),
            "advantage_fn": _path(SelectingAdvantage),
            "kl_penalty_fn": "none",
            "kl_loss_fn": "none",
            "entropy_loss_fn": "none",
        }

    @classmethod
    def check_config(cls, config: Config) -> None:
        """Refuses what can't be served, and sets what follows from the rest."""
        algorithm = config.algorithm
        checks.check_parts(algorithm, cls.default_config())
        args = dict(algorithm.policy_loss_fn_args or PluginPolicyLoss.default_args())
        policy = PluginPolicyLoss(**args)
        checks.check_preset(policy.loss)
        checks.check_trainer(config.trainer, policy.scope, f"{__name__}_engine")
        checks.agree_on_aggregation(algorithm, args, policy.loss)
        algorithm.policy_loss_fn_args = args
        group = {"group_advantage": policy.loss.preset["advantage_fn"]}
        given = algorithm.advantage_fn_args or {}
        algorithm.advantage_fn_args = {**group, **given, "policy_loss_fn_args": args}
        bypass = HOOK is Hook.ENGINE or policy.scope is SelectionScope.MICRO_BATCH
        if algorithm.bypass_old_logprobs != bypass:
            algorithm.bypass_old_logprobs = bypass
            get_logger(__name__).warning("`%s` is set to %s, for the selection.", BYPASS, bypass)
        if HOOK is Hook.TRAINER:
            checks.add_operator(config, _path(SelectingAdvantage))


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _put(tensors: MutableMapping[str, torch.Tensor], keep: torch.Tensor, row: list[float]) -> None:
    tensors[KEEP] = keep
    report = torch.tensor(row, dtype=torch.float64, device=keep.device)
    tensors[REPORT] = report.repeat(len(keep), 1)


def _report(row: list[float]) -> Report:
    valid, kept, sequences, *values = row
    counts = (int(valid), int(kept), int(sequences))
    return Report(*counts, metrics={COPIED_BYTES: 0.0}, values=tuple(values))
