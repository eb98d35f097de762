# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""AReaL's actor over gloo on the CPU, a stale batch for it, and what one of its steps did."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from areal.api import FinetuneSpec
from areal.api.cli_args import MicroBatchSpec, OptimizerConfig, PPOActorConfig
from areal.engine import FSDPPPOActor
from areal.utils import stats_tracker
from rft.hosts.areal import RFTActor, RFTActorConfig
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

import tiny


def _packed_attention(module, query, key, value, mask, cu_seq_lens_q=None, **rest):
    """A stand-in for flash attention: under sdpa, packed sequences see each other."""
    ends = [0, query.shape[2]] if cu_seq_lens_q is None else cu_seq_lens_q.tolist()
    parts = [
        sdpa_attention_forward(
            module, *(tensor[:, :, first:end] for tensor in (query, key, value)), None, **rest
        )[0]
        for first, end in zip(ends, ends[1:])
    ]
    return torch.cat(parts, 1), None


AttentionInterface.register("sdpa", _packed_attention)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def enter(rank: int, size: int, port: int) -> None:
    """What AReaL's launcher sets for a process."""
    os.environ.update(
        AREAL_SPMD_MODE="1",
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )


def settings(model: str, size: int = 1, micro_batches: int = 1, **given: Any) -> dict[str, Any]:
    """Arguments of an actor's config: plain SGD without clipping, so that gradients can be read."""
    return {
        "experiment_name": "test",
        "trial_name": "test",
        "path": model,
        "backend": f"fsdp:d{size}",
        "dtype": "float32",
        "attn_impl": "sdpa",
        "optimizer": OptimizerConfig(type="sgd", lr=0.01, weight_decay=0.0, gradient_clipping=1e9),
        "mb_spec": MicroBatchSpec(n_mbs=micro_batches),
        "ppo_n_minibatches": 1,
        "kl_ctl": 0.0,
        **given,
    }


def start(config: PPOActorConfig, kind: type[FSDPPPOActor] | None = None) -> FSDPPPOActor:
    own = Watched if isinstance(config, RFTActorConfig) else FSDPPPOActor
    actor = (kind or own)(config)
    actor.create_process_group()
    actor.initialize(None, FinetuneSpec(1, 64, 8))
    actor.set_version(4)
    return actor


class Watched(RFTActor):
    """Remembers what was selected, and how many forward passes the selection took."""

    def __init__(self, config: RFTActorConfig) -> None:
        super().__init__(config)
        self.selections: list[tuple[dict[str, Any], torch.Tensor, torch.Tensor]] = []
        self.extra_passes = 0

    def _select(self, data, logprobs, group):
        keep, report = super()._select(data, logprobs, group)
        self.selections.append((data, logprobs.clone(), keep.clone()))
        return keep, report

    def forward(self, *args, **kwargs):
        self.extra_passes += not self._proximal_is_current
        return super().forward(*args, **kwargs)


def trajectories(count: int = 8, spread: float = 0.35) -> list[dict[str, torch.Tensor]]:
    """As workflows give them, [1, S] each: the behavior policy is the tiny model's, disturbed."""
    random = torch.Generator().manual_seed(5)
    model = tiny.model()
    made = []
    for number in range(count):
        length, prompt = 7 + number % 4, 3
        ids = torch.randint(3, 32, (1, length), generator=random)
        with torch.no_grad():
            every = torch.log_softmax(model(ids).logits, -1)
        logprobs = torch.zeros(1, length)
        logprobs[:, 1:] = every[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
        logprobs += spread * torch.randn(1, length, generator=random)
        answered = (torch.arange(length) >= prompt)[None]
        made.append(
            {
                "input_ids": ids.to(torch.int32),
                "attention_mask": torch.ones(1, length, dtype=torch.bool),
                "loss_mask": answered.to(torch.int32),
                "logprobs": torch.where(answered, logprobs, 0.0),
                "versions": torch.where(answered, 2, -1).to(torch.int32),
                "rewards": torch.tensor([1.0 if number % 3 else -0.5]),
            }
        )
    return made


def update(actor: FSDPPPOActor, batch: list[dict[str, torch.Tensor]]) -> dict[str, float]:
    """What the trainer does with a batch. Gives AReaL's statistics."""
    batch = [dict(trajectory) for trajectory in batch]
    if actor.config.should_compute_prox_logp():
        for trajectory, logprobs in zip(batch, actor.compute_logp(batch)):
            trajectory["prox_logp"] = logprobs
    actor.ppo_update(actor.compute_advantages(batch))
    return stats_tracker.export_all(reduce_group=actor.data_parallel_group)


def gradients(actor: FSDPPPOActor) -> dict[str, torch.Tensor]:
    """Of the last step, whole on every rank."""
    return {
        name: parameter.grad.full_tensor().clone()
        for name, parameter in actor.model.named_parameters()
        if parameter.grad is not None
    }


def weights(actor: FSDPPPOActor) -> dict[str, torch.Tensor]:
    return {name: p.detach().full_tensor().clone() for name, p in actor.model.named_parameters()}


@dataclass
class Hand:
    """The same batch without AReaL, [B, S], aligned as it does: position t is of token t + 1."""

    model: torch.nn.Module
    logprob: torch.Tensor  #: with its graph
    old_logprob: torch.Tensor
    advantages: torch.Tensor
    mask: torch.Tensor

    def gradients(self, loss: torch.Tensor) -> dict[str, torch.Tensor]:
        self.model.zero_grad()
        loss.backward(retain_graph=True)
        return {name: p.grad.clone() for name, p in self.model.named_parameters()}


def by_hand(batch: list[dict[str, torch.Tensor]]) -> Hand:
    """One sequence after the other, through transformers alone."""
    model = tiny.model()
    longest = max(trajectory["input_ids"].shape[1] for trajectory in batch)
    columns: dict[str, list[torch.Tensor]] = {
        "logprob": [],
        "old": [],
        "advantages": [],
        "mask": [],
    }
    for trajectory in batch:
        ids, answered = trajectory["input_ids"].long(), trajectory["loss_mask"][0, 1:].bool()
        every = torch.log_softmax(model(ids).logits[0, :-1], -1)
        row = {
            "logprob": every.gather(-1, ids[0, 1:, None])[:, 0],
            "old": trajectory["logprobs"][0, 1:],
            "advantages": torch.where(answered, trajectory["rewards"], 0.0),
            "mask": answered,
        }
        for name, values in row.items():
            columns[name].append(torch.nn.functional.pad(values, (0, longest - len(values))))
    return Hand(model, *(torch.stack(rows) for rows in columns.values()))


def assert_close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """Gradients of every parameter, within float32's rounding of the largest."""
    largest = max(float(tensor.abs().max()) for tensor in expected.values())
    assert largest > 1e-3 and found.keys() == expected.keys()
    for name, tensor in expected.items():
        difference = float((found[name] - tensor).abs().max())
        assert difference < 2e-6 * max(largest, 1.0), (name, difference, largest)


def leave(actor: FSDPPPOActor) -> None:
    actor.destroy()
    if dist.is_initialized():
        dist.destroy_process_group()
