# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Steps of a trainer, recorded: the micro-batches, their masks, parameters and gradient; and what
the same step gives when it is written out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import literal
import tiny
import torch
import transformers

import rft

#: Both trainers' arguments on the CPU.
CPU = {
    "num_generations": 2,
    "max_completion_length": 12,
    "max_steps": 2,
    "learning_rate": 1e-2,
    "lr_scheduler_type": "constant",
    "max_grad_norm": 0.0,
    "logging_steps": 1,
    "bf16": False,
    "use_cpu": True,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
}


@dataclass
class Step:
    """One optimizer step on one rank."""

    weights: dict[str, torch.Tensor]
    inputs: list[dict[str, Any]] = field(default_factory=list)
    batches: list[rft.Batch] = field(default_factory=list)
    masks: list[torch.Tensor] = field(default_factory=list)
    gradient: dict[str, torch.Tensor] = field(default_factory=dict)


class Gradients(transformers.TrainerCallback):
    """The parameters before each step, and the gradient that the optimizer is given."""

    def __init__(self, trainer: transformers.Trainer) -> None:
        self.steps: list[Step] = []
        self._trainer = trainer
        trainer.add_callback(self)

    def _parameters(self):
        return self._trainer.accelerator.unwrap_model(self._trainer.model).named_parameters()

    def on_step_begin(self, *_args, **_named):
        self.steps.append(Step({name: p.detach().clone() for name, p in self._parameters()}))

    def on_pre_optimizer_step(self, *_args, **_named):
        self.steps[-1].gradient = {name: p.grad.clone() for name, p in self._parameters()}


class Recorder(Gradients):
    """That, and what goes into the policy loss, before which it stands."""

    def __init__(self, trainer: transformers.Trainer) -> None:
        super().__init__(trainer)
        self._loss = trainer._optimizer_batch.loss
        trainer._optimizer_batch.loss = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loss, name)

    def __call__(self, batch, mask, reduction, metrics):
        given = {name: value for name, value in vars(batch).items() if value is not None}
        self.steps[-1].batches.append(
            rft.Batch(**{name: value.detach().clone() for name, value in given.items()})
        )
        self.steps[-1].masks.append(mask)
        return self._loss(batch, mask, reduction, metrics)


def logprob(model: torch.nn.Module, ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
    """[B, T - 1]: log-probs of all tokens but the first, by the model's own logits."""
    logits = model(input_ids=ids, attention_mask=attention).logits[:, :-1]
    return logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)


def model_with(weights: dict[str, torch.Tensor]) -> torch.nn.Module:
    model = tiny.model()
    model.load_state_dict(weights, strict=False)
    return model.train()


def gradient_of(loss: torch.Tensor, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    loss.backward()
    return {name: p.grad for name, p in model.named_parameters()}


def distance(ours: dict[str, torch.Tensor], written_out: dict[str, torch.Tensor]) -> float:
    """Of two gradients, relative to the largest entry."""
    assert ours.keys() == written_out.keys()
    largest = max(float(gradient.abs().max()) for gradient in written_out.values())
    assert largest > 0
    return max(float((ours[n] - written_out[n]).abs().max()) for n in ours) / largest


def keep_mask(batch: rft.Batch, tau: float = 0.04) -> torch.Tensor:
    """Algorithm 1, written out, of a batch [B, C] with advantages [B]."""
    advantages = batch.advantages[:, None].expand_as(batch.logprob)
    return literal.keep_mask(batch.logprob, batch.old_logprob, advantages, batch.mask, tau)
