# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Optimizer steps of verl's TrainingWorker on a tiny model: one process of them.

usage: steps.py MODEL BATCH OUT, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set

Takes every case of CASES on this rank's rows of the batch, and writes what each step did.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import sys

import torch
import torch.distributed as dist
import verl  # noqa: F401 - loads cpu_platform and the adapter
from tensordict import TensorDict
from verl.trainer.config import CheckpointConfig
from verl.utils import tensordict_utils as tu
from verl.workers.config import (
    ActorConfig,
    FSDPEngineConfig,
    FSDPOptimizerConfig,
    HFModelConfig,
    TrainingWorkerConfig,
)
from verl.workers.engine import EngineRegistry
from verl.workers.engine_workers import TrainingWorker
from verl.workers.utils.losses import ppo_loss
from verl.workers.utils.padding import left_right_2_no_padding, response_to_nested

from rft import RftError
from rft.hosts.verl import Engine, PolicyLossConfig
from rft.hosts.verl_engine import padded


@dataclasses.dataclass(frozen=True)
class Case:
    """How the optimizer batch is cut and laid out."""

    name: str
    micro_batch: int = 2  #: sequences
    jagged: bool = True
    remove_padding: bool = True
    dynamic: bool = False  #: micro-batches by tokens
    mini_batches: int = 1
    epochs: int = 1
    scope: str = "optimizer_batch"
    preset: str = "m2po"
    learning_rate: float = 0.01
    dtype: str = "fp32"  #: of the forward pass
    masked: bool = False  #: the second half of the batch has no valid token


CASES = [
    Case("of 1", 1),
    Case("of 2", 2, remove_padding=False),
    Case("of 4", 4),
    Case("of 2, padded", 2, jagged=False),
    Case("by tokens", dynamic=True),
    Case("two mini-batches, two epochs", 2, mini_batches=2, epochs=2),
    Case("two epochs", 4, epochs=2),
    Case("micro_batch scope", 2, scope="micro_batch"),
    Case("grpo", 2, preset="grpo"),
    Case("bf16", 2, dtype="bf16"),
    Case("half masked", 2, masked=True),
    Case("half masked, micro_batch scope", 4, masked=True, scope="micro_batch"),
]


@EngineRegistry.register("language_model", "fsdp2", device="cpu")
class Recording(Engine):
    """Keeps what a step saw and made."""

    def train_batch(self, data, loss_function):
        self.steps = getattr(self, "steps", [])
        self.steps.append({"response_mask": padded(data["response_mask"])})
        return super().train_batch(data, loss_function)

    def current_logprob(self, data):
        logprob = super().current_logprob(data)
        self.steps[-1].update(logprob=logprob, old_logprob=padded(data["old_log_probs"]))
        self.steps[-1].update(advantages=padded(data["advantages"]))
        return logprob

    def send(self, data, keep):
        self.steps[-1]["keep"] = keep
        super().send(data, keep)

    def optimizer_step(self):
        self.steps[-1]["gradient"] = {
            name: parameter.grad.full_tensor().clone()
            for name, parameter in self.module.named_parameters()
        }
        return super().optimizer_step()


def rows(batch: dict, rank: int, world: int, case: Case) -> TensorDict:
    """This rank's part, as verl's trainer hands it to a worker: jagged, or with padded responses,
    as its older trainer does."""
    count = len(batch["prompts"]) // world
    if case.masked:
        batch = masked(batch)
    part = {key: value[rank * count : (rank + 1) * count] for key, value in batch.items()}
    part["input_ids"] = [torch.cat(both) for both in zip(part["prompts"], part["responses"])]
    part["position_ids"] = [torch.arange(len(ids)) for ids in part["input_ids"]]
    if case.jagged:
        tensors = {
            key: torch.nested.as_nested_tensor(part[key], layout=torch.jagged) for key in part
        }
        data = TensorDict(tensors | {"loss_mask": tensors["response_mask"]}, batch_size=count)
    else:
        data = left_right_2_no_padding(TensorDict(both_sides_padded(part), batch_size=count))
    data["rollout_log_probs"] = data["old_log_probs"].clone()
    size = len(batch["prompts"]) // case.mini_batches
    tu.assign_non_tensor(
        data,
        temperature=1.0,
        calculate_entropy=True,
        global_batch_size=size,
        mini_batch_size=size,
        epochs=case.epochs,
        seed=1,
        dataloader_kwargs={"shuffle": False},
        use_dynamic_bsz=case.dynamic,
        micro_batch_size_per_gpu=case.micro_batch,
        max_token_len_per_gpu=24,
    )
    return data


def masked(batch: dict) -> dict:
    """Without a valid token in the second half, which is the last one of two ranks."""
    masks = batch["response_mask"]
    half = len(masks) // 2
    return batch | {"response_mask": masks[:half] + [mask * 0 for mask in masks[half:]]}


def both_sides_padded(part: dict[str, list[torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Prompts end, and responses begin, in one column."""
    pad = functools.partial(torch.nn.utils.rnn.pad_sequence, batch_first=True)
    left = functools.partial(pad, padding_side="left")
    prompts, responses = left(part["prompts"]), pad(part["responses"])
    ones = [[torch.ones_like(ids) for ids in part[key]] for key in ("prompts", "responses")]
    attention_mask = torch.cat([left(ones[0]), pad(ones[1])], dim=1)
    return {key: pad(part[key]) for key in ("response_mask", "old_log_probs", "advantages")} | {
        "prompts": prompts,
        "responses": responses,
        "input_ids": torch.cat([prompts, responses], dim=1),
        "attention_mask": attention_mask,
        "position_ids": (attention_mask.cumsum(1) - 1).clamp(min=0),
    }


def worker_of(model: str, case: Case) -> TrainingWorker:
    config = TrainingWorkerConfig(
        model_type="language_model",
        model_config=HFModelConfig(
            path=model,
            load_tokenizer=False,
            use_remove_padding=case.remove_padding,
            enable_gradient_checkpointing=case.micro_batch == 1,
            override_config={"attn_implementation": "sdpa"},
        ),
        engine_config=FSDPEngineConfig(
            strategy="fsdp2",
            model_dtype="fp32",
            mixed_precision={"param_dtype": case.dtype, "reduce_dtype": "fp32"},
            use_torch_compile=False,
        ),
        optimizer_config=FSDPOptimizerConfig(lr=case.learning_rate, total_training_steps=10),
        checkpoint_config=CheckpointConfig(),
    )
    worker = TrainingWorker(config)
    worker.reset()
    settings = PolicyLossConfig(preset=case.preset, selection_scope=case.scope)
    worker.set_loss_fn(loss_function(settings))
    return worker


def loss_function(policy_loss: verl.workers.config.PolicyLossConfig) -> functools.partial:
    actor = ActorConfig(
        strategy="fsdp2", rollout_n=1, ppo_micro_batch_size_per_gpu=1, policy_loss=policy_loss
    )
    return functools.partial(ppo_loss, config=actor)


def without(data: TensorDict, key: str) -> None:
    del data[key]


def with_copy(data: TensorDict, key: str) -> None:
    data[key] = data["advantages"].clone()


def recomputed(data: TensorDict, ranks: range) -> None:
    if dist.get_rank() in ranks:
        data["old_log_probs"] = data["old_log_probs"] * 1.01


#: What a batch holds where verl runs in a mode that can't be served.
UNSERVED = {
    "no rollout log-probs": functools.partial(without, key="rollout_log_probs"),
    "bypass off": functools.partial(recomputed, ranks=range(2)),
    "bypass off, last rank": functools.partial(recomputed, ranks=range(1, 2)),
    "importance weights": functools.partial(with_copy, key="rollout_is_weights"),
    "critic": functools.partial(with_copy, key="values"),
    "KL in the reward": functools.partial(with_copy, key="ref_log_prob"),
}


def step(worker: TrainingWorker, data: TensorDict) -> str:
    """The error of a step; empty where it went well."""
    try:
        worker.train_mini_batch(data)
    except RftError as error:
        return error.message
    return ""


def step_on_fresh(worker: TrainingWorker, data: TensorDict) -> list[str]:
    """The warnings of a step whose old log-probs are the current ones, bit for bit."""
    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("rft").addHandler(handler)
    with worker.engine.train_mode():
        current = Engine.current_logprob(worker.engine, data.copy())
    data["old_log_probs"] = response_to_nested(current, data["response_mask"])
    data["rollout_log_probs"] = data["old_log_probs"].clone()
    worker.train_mini_batch(data)
    return warnings


def main(model: str, batch_path: str, out: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    batch, results = torch.load(batch_path), {}
    for case in CASES:
        worker = worker_of(model, case)
        output = worker.train_mini_batch(rows(batch, rank, world, case))
        results[case.name] = {"steps": worker.engine.steps, "metrics": tu.get(output, "metrics")}
    worker = worker_of(model, CASES[0])
    for name, change in UNSERVED.items():
        data = rows(batch, rank, world, CASES[0])
        change(data)
        results[name] = step(worker, data)
    micro = worker_of(model, Case("micro", scope="micro_batch"))
    data = rows(batch, rank, world, CASES[0])
    recomputed(data, range(2))
    results["bypass off, micro_batch scope"] = step(micro, data)
    results["fresh"] = step_on_fresh(worker, rows(batch, rank, world, CASES[0]))
    torch.save(results, f"{out}.{rank}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
