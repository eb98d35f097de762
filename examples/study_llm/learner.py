# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""One optimizer step: log-probs of the batch, the plugin's selection and loss, AdamW."""

from __future__ import annotations

import torch
from transformers import LlamaForCausalLM

import rft
from packing import logprobs
from rollouts import Rollout
from settings import Settings

#: Presets of the plugin, and what goes over their arguments.
ALGORITHMS = {
    "on_policy": ("grpo", {}),
    "grpo": ("grpo", {}),
    "m2po": ("m2po", {}),
    "no_mask": ("m2po", {"m2_threshold": None}),
}


class Learner:
    def __init__(self, policy: LlamaForCausalLM, settings: Settings) -> None:
        self.policy = policy
        preset, arguments = ALGORITHMS[settings.algorithm]
        self._loss = rft.PolicyLoss.from_preset(preset, arguments)
        self._max_gradient_norm = settings.max_gradient_norm
        self.optimizer = torch.optim.AdamW(
            policy.parameters(), settings.learning_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
        )

    def update(self, rollout: Rollout) -> tuple[dict[str, float], torch.Tensor]:
        """One step on the batch. Gives numbers for the log, and the log-probs of before the step."""
        logprob = logprobs(self.policy, rollout)
        metrics = self._loss.metrics()
        batch = rft.Batch(logprob, rollout.logprob, rollout.advantages(), rollout.mask)
        step = self._loss.select_evaluate(batch, metrics=metrics)
        self.optimizer.zero_grad()
        step.loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self._max_gradient_norm)
        self.optimizer.step()
        numbers = {"loss": float(step.loss.detach()), "gradient_norm": float(norm), **metrics.as_dict()}
        return numbers, logprob.detach()
