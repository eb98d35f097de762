# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Train steps of Trinity's VERLTrainer, with Ray workers, on the tiny model.

usage: train.py MODEL OUT, with RFT_TEST_STEPS set: where the workers keep what they did

Takes two steps of every case of CASES. OUT/CASE has their metrics, what the workers kept, and a
checkpoint.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pathlib
import sys

import ray
import rollouts
import tiny
import torch
from trinity.buffer.operators import create_operators
from trinity.common.config import Config, ExperienceBufferConfig, load_config
from trinity.trainer import get_trainer_wrapper

STEPS = 2


@dataclasses.dataclass(frozen=True)
class Case:
    workers: int = 1
    micro_batch: int = 2  #: sequences
    tokens: int = 0  #: of a micro-batch, instead
    scope: str = "optimizer_batch"
    preset: str = "m2po"
    experiences: int = 8


CASES = {
    "one worker": Case(micro_batch=4),
    "two workers": Case(workers=2, micro_batch=1),
    "by tokens, of micro_batch scope": Case(tokens=24, scope="micro_batch"),
}


def config_of(model: str, out: pathlib.Path, case: Case) -> Config:
    """The example's trainer.yaml for a tiny model on the CPU."""
    example = pathlib.Path(__file__).parents[3] / "examples/trinity_rft/trainer.yaml"
    config = load_config(str(example))
    config.name = out.name
    config.model.model_path, config.checkpoint_root_dir = model, str(out)
    config.model.max_prompt_tokens = config.model.max_response_tokens = 16
    config.algorithm.policy_loss_fn_args |= {"preset": case.preset, "selection_scope": case.scope}
    config.algorithm.optimizer.lr = 0.01
    config.cluster.gpu_per_node = case.workers
    config.buffer.train_batch_size = case.experiences
    config.buffer.trainer_input.experience_buffer = ExperienceBufferConfig(
        name="rollouts", storage_type="queue"
    )
    config.trainer.use_dynamic_bsz = bool(case.tokens)
    config.trainer.max_token_len_per_gpu = case.tokens or 64
    config.trainer.use_remove_padding = False
    config.trainer.save_hf_checkpoint = "never"
    fp32 = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
    config.trainer.trainer_config = {
        "model": {
            "external_lib": "cpu_engine",
            "override_config": {"attn_implementation": "sdpa"},
            "enable_gradient_checkpointing": False,
        },
        "actor": {
            "ppo_micro_batch_size_per_gpu": case.micro_batch,
            "fsdp_config": {"dtype": "float32", "mixed_precision": fp32},
        },
        "rollout": {"log_prob_micro_batch_size_per_gpu": case.micro_batch},
    }
    return config.check_and_update()


async def take(model: str, out: pathlib.Path, case: Case) -> None:
    config = config_of(model, out, case)
    (operator,) = create_operators(config.data_processor.experience_pipeline.operators)
    trainer, metrics = get_trainer_wrapper(config), []
    await trainer.prepare()
    for step in range(STEPS):
        made = rollouts.stale(tiny.model(), case.experiences // 4, seed=1 + step)
        experiences, _ = await operator.process(made)
        metrics.append(await trainer.train_step(experiences))
    await trainer.save_checkpoint(block_until_saved=True)
    torch.save(metrics, out / "metrics.pt")
    for pool in trainer.resource_pool_manager.resource_pool_dict.values():
        for group in pool.pgs:  # and with them, the workers
            ray.util.remove_placement_group(group)


async def main(model: str, out: pathlib.Path) -> None:
    ray.init(num_gpus=4, num_cpus=16, include_dashboard=False, namespace="test")
    for name, case in CASES.items():
        (out / name).mkdir(parents=True)
        await take(model, out / name, case)
        pathlib.Path(os.environ["RFT_TEST_STEPS"]).rename(out / name / "steps")
    ray.shutdown()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], pathlib.Path(sys.argv[2])))
