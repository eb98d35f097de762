# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Optimizer steps of verl 0.9's TrainingWorker with Trinity's loss and our engine: one process.

usage: engine_steps.py TRINITY MODEL OUT, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set

Runs in verl's environment. TRINITY is the packages' folder of Trinity's, searched after it. Takes
every case of CASES on this rank's half of the batch, and writes what the first step of each did.
"""

from __future__ import annotations

import os
import sys

sys.path.append(sys.argv[1])
import batches  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import transformers  # noqa: E402
import verl  # noqa: E402
from trinity.common.config import Config  # noqa: E402
from trinity.trainer.verl.monkey_patch import left_right_2_no_padding  # noqa: E402
from verl.trainer.config import CheckpointConfig  # noqa: E402
from verl.utils import tensordict_utils as tu  # noqa: E402
from verl.workers.config import (  # noqa: E402
    FSDPEngineConfig,
    FSDPOptimizerConfig,
    HFModelConfig,
    TrainingWorkerConfig,
)
from verl.workers.engine import EngineRegistry  # noqa: E402
from verl.workers.engine_workers import TrainingWorker  # noqa: E402

from rft.hosts import trinity_rft  # noqa: E402
from rft.hosts.trinity_rft_engine import TrinityEngine  # noqa: E402

# Sequences of a micro-batch, epochs and selection_scope.
CASES = [(4, 1, "optimizer_batch"), (1, 2, "optimizer_batch"), (2, 1, "micro_batch")]


@EngineRegistry.register("language_model", "fsdp2", device="cpu")
class Recording(TrinityEngine):
    steps: list[dict]

    def train_batch(self, data, loss_function):
        outputs = super().train_batch(data, loss_function)
        self.steps[-1]["keep"] = data["rft_keep"]
        return outputs

    def optimizer_step(self):
        gradient = {
            name: parameter.grad.full_tensor().clone()
            for name, parameter in self.module.named_parameters()
        }
        self.steps.append({"gradient": gradient})
        return super().optimizer_step()


def worker_of(model: str, scope: str) -> TrainingWorker:
    fp32 = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
    config = TrainingWorkerConfig(
        model_type="language_model",
        model_config=HFModelConfig(
            path=model,
            use_remove_padding=False,
            override_config={"attn_implementation": "sdpa"},
        ),
        engine_config=FSDPEngineConfig(
            strategy="fsdp2",
            model_dtype="fp32",
            dtype="float32",
            mixed_precision=fp32,
            use_torch_compile=False,
        ),
        optimizer_config=FSDPOptimizerConfig(lr=0.01, total_training_steps=10),
        checkpoint_config=CheckpointConfig(),
    )
    worker = TrainingWorker(config)
    worker.reset()
    worker.engine.steps = []
    worker.set_loss_fn(batches.policy(selection_scope=scope))
    return worker


def main(model: str, out: str) -> None:
    assert verl.__version__.startswith("0.9") and trinity_rft.HOOK is trinity_rft.Hook.ENGINE
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    reference, results = transformers.AutoModelForCausalLM.from_pretrained(model), []
    for micro_batch, epochs, scope in CASES:
        batch, experiences = batches.of(reference, batches.advantage(), bypass=True)
        rows = len(experiences) // world
        data = left_right_2_no_padding(batch[rank * rows : (rank + 1) * rows].to_tensordict())
        tu.assign_non_tensor(
            data,
            temperature=1.0,
            calculate_entropy=False,
            global_batch_size=len(experiences),
            mini_batch_size=len(experiences),
            epochs=epochs,
            seed=1,
            dataloader_kwargs={"shuffle": False},
            use_dynamic_bsz=False,
            micro_batch_size_per_gpu=micro_batch,
        )
        worker = worker_of(model, scope)
        output = worker.train_mini_batch(data)
        results.append({"steps": worker.engine.steps, "metrics": tu.get(output, "metrics")})
    config = Config()
    trinity_rft.PluginAlgorithm.check_config(config)
    torch.save({"cases": results, "config": config}, f"{out}.{rank}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[2:])
