# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Trinity-RFT's hook in verl 0.9: the engine that selects, for `rft.hosts.trinity_rft`.

A worker loads it, as `trainer.trainer_config.model.external_lib`, before it makes its engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensordict import TensorDict
from verl.workers.engine import EngineRegistry

from .common import SelectionScope, refusal, warn_if_fresh
from .trinity_rft import ADVICE, PluginPolicyLoss
from .trinity_rft_config import LOGPROBS
from .verl_engine import SelectingEngine


# verl looks for the vendor's engine before its own.
@EngineRegistry.register("language_model", ["fsdp", "fsdp2"], device="cuda", vendor="nvidia")
class TrinityEngine(SelectingEngine):
    """Selects once an optimizer step, with log-probs of the policy as it is then."""

    def train_batch(self, data: TensorDict, loss_function: Callable) -> dict[str, Any]:
        """One optimizer step. `data`: this rank's part of the optimizer batch, [B, R] each:
        response_mask, old_log_probs of the behavior policy, advantages."""
        policy = getattr(loss_function, "policy_loss_fn", None)
        if isinstance(policy, PluginPolicyLoss):
            self._select(data, policy)
        return super(SelectingEngine, self).train_batch(data, loss_function)

    def _select(self, data: TensorDict, policy: PluginPolicyLoss) -> None:
        if "old_log_probs" not in data.keys():
            raise refusal(LOGPROBS, "0", "experiences without rollout log-probs")
        group = self.get_data_parallel_group()
        if policy.scope is SelectionScope.MICRO_BATCH:
            policy.attach_counts(data, group)
            return
        batch = self.batch(data, self.current_logprob(data))
        report = policy.attach(data, batch, group)
        if self.get_data_parallel_rank() == 0:
            warn_if_fresh(report, [batch], ADVICE)
