# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""AReaL's trainer from the example's YAML: asynchronous rollouts, its workflow, its executor.

Only the inference server is a stand-in: the tiny model in this process.
"""

from __future__ import annotations

import logging
import pathlib
from concurrent.futures import Future
from typing import Any

import pytest
import tiny
import torch
import world
from areal.api import ModelRequest, ModelResponse
from areal.api.cli_args import InferenceEngineConfig, load_expr_config
from areal.infra import WorkflowExecutor
from areal.infra.remote_inf_engine import RemoteInfEngine
from rft.hosts.areal import RFTActor, RFTConfig, RFTTrainer

CONFIG = pathlib.Path(__file__).parents[3] / "examples" / "areal" / "gsm8k.yaml"


class Server(RemoteInfEngine):
    """AReaL's client of an inference server, without the server."""

    def __init__(self, config: InferenceEngineConfig) -> None:
        super().__init__(config, backend=None)
        self.model, self.logger = tiny.model(), logging.getLogger("Server")
        self.workflow_executor = WorkflowExecutor(config, self)
        self.workflow_executor.initialize(train_data_parallel_size=1)

    async def agenerate(self, request: ModelRequest) -> ModelResponse:
        ids, logprobs = list(request.input_ids), []
        for _ in range(request.gconfig.max_new_tokens):
            with torch.no_grad():
                every = torch.log_softmax(self.model(torch.tensor([ids])).logits[0, -1], -1)
            ids.append(int(torch.multinomial(every.exp(), 1)))
            logprobs.append(float(every[ids[-1]]))
        new = ids[len(request.input_ids) :]
        return ModelResponse(list(request.input_ids), new, logprobs, [0] * len(new), "length")

    def update_weights_from_disk(self, meta: Any) -> Future[None]:
        """Keeps the first weights, so that rollouts are a step staler each step."""
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def pause_generation(self) -> None: ...

    def continue_generation(self) -> None: ...

    def export_stats(self) -> dict[str, float]:
        return {}


class Trainer(RFTTrainer):
    def __init__(self, config: RFTConfig, questions: list) -> None:
        super().__init__(config, train_dataset=questions)
        self.statistics: list[dict[str, float]] = []
        self.stats_logger.commit = lambda *step, **rest: self.statistics.append(step[-1])

    def _init_rollout(self, rollout_config, is_eval=False, lora_path=None):
        return Server(rollout_config)


def reward(prompt, completion, prompt_ids, completion_ids, **question) -> float:
    """The share of even tokens: a task that answers differ in."""
    return sum(token % 2 == 0 for token in completion_ids) / len(completion_ids)


def overrides(model: str, folder: pathlib.Path, *more: str) -> list[str]:
    return [
        f"--config={CONFIG}",
        f"cluster.fileroot={folder}",
        f"cluster.name_resolve.nfs_record_root={folder}/names",
        f"actor.path={model}",
        "actor.backend=fsdp:d1",
        "actor.dtype=float32",
        "actor.attn_impl=sdpa",
        "actor.gradient_checkpointing=false",
        "actor.weight_update_mode=disk",
        "actor.optimizer.lr=0.003",
        "gconfig.n_samples=4",
        "gconfig.max_new_tokens=8",
        "train_dataset.batch_size=4",
        "+total_train_steps=3",
        *more,
    ]


@pytest.mark.parametrize(
    "more",
    [
        ["actor.m2_threshold=0.0005"],
        ["actor.m2_threshold=0.0005", "actor.policy_loss=plugin", "actor.mb_spec.n_mbs=3"],
        ["actor.m2_threshold=0.0005", "actor.preset=m2po_areal", "actor.use_decoupled_loss=true"],
    ],
    ids=["preset_m2po", "the_plugin_s_loss", "preset_m2po_areal"],
)
def test_three_asynchronous_steps_run_from_the_example_s_yaml(model, tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    world.enter(0, 1, world.free_port())
    config, _ = load_expr_config(overrides(model, tmp_path, *more), RFTConfig)
    questions = [{"messages": [{"role": "user", "content": f"{n}+{n}="}]} for n in range(9)] * 2
    with Trainer(config, questions) as trainer:
        assert isinstance(trainer.actor, RFTActor)
        trainer.train(
            workflow="areal.workflow.rlvr.RLVRWorkflow",
            workflow_kwargs={
                "reward_fn": reward,
                "gconfig": config.gconfig,
                "tokenizer": trainer.tokenizer,
            },
        )
        name = "ppo_actor/update/m2po/"
        steps = [{k: v for k, v in step.items() if name in k} for step in trainer.statistics]
    assert len(steps) == 3 and all(step[name + "valid_tokens"] == 4 * 4 * 8 for step in steps)
    assert steps[0][name + "m2_before"] < 1e-9 < steps[1][name + "m2_before"]
    assert steps[1][name + "masked_tokens"] > 0
    assert steps[1][name + "m2_after"] <= 0.0005
