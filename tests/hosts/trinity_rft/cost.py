# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What selection and loss cost in a train step, against Trinity's ppo loss, which selects nothing.

CPU time on one thread. The variants take turns in one process, and the table gives medians. The
step is Trinity's: batch, recomputed log-probs where the selection takes them, advantage function,
losses of micro-batches with their backward passes, optimizer; without Ray, and with a model of 4
layers. RFT_COST_ROUNDS is how many turns (15).
"""

from __future__ import annotations

import logging
import os
import statistics
import time

import batches
import tiny
import torch
import transformers
from trinity.algorithm import POLICY_LOSS_FN
from trinity.common.experience import EID, Experience
from trinity.trainer.verl.utils import to_data_proto

ROUNDS = int(os.environ.get("RFT_COST_ROUNDS", "15"))
SEQUENCES, PROMPT, ANSWER, MICRO_BATCH = 16, 32, 64, 4
OURS = POLICY_LOSS_FN.get("rft.hosts.trinity_rft.PluginPolicyLoss")
PPO = POLICY_LOSS_FN.get("ppo")
VARIANTS = {
    "Trinity's ppo, no selection": None,
    "m2po, optimizer_batch": {},
    "m2po, micro_batch": {"selection_scope": "micro_batch"},
}


def experiences() -> list[Experience]:
    random = torch.Generator().manual_seed(1)
    return [
        Experience(
            eid=EID(batch=0, task=k // 4, run=k % 4),
            tokens=torch.randint(3, 1024, (PROMPT + ANSWER,), generator=random),
            prompt_length=PROMPT,
            reward=float(k % 2),
            action_mask=torch.ones(ANSWER, dtype=torch.bool),
            logprobs=-7 + 0.3 * torch.randn(ANSWER, generator=random),
        )
        for k in range(SEQUENCES)
    ]


def logprobs(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    scores = model(input_ids=ids).logits[:, PROMPT - 1 : -1].log_softmax(-1)
    return scores.gather(-1, ids[:, PROMPT:, None])[..., 0]


class Step:
    """A train step of one variant, and the time of it that is selection and loss."""

    def __init__(self, args: dict | None) -> None:
        config = tiny.model().config.to_dict() | {"layer_types": None, "initializer_range": 0.02}
        config |= {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4}
        self.model = transformers.Qwen2ForCausalLM(
            transformers.Qwen2Config(**config | {"vocab_size": 1024})
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.0)
        self.advantage = batches.advantage(**(args or {}))
        self.select, self.recompute = args is not None, args == {}
        self.loss = OURS(**args) if self.select else PPO(clip_range=0.2)
        self.given, _ = self.advantage.process(experiences())
        self.own = 0.0

    def timed(self, function, *args, **kwargs):
        start = time.process_time()
        result = function(*args, **kwargs)
        self.own += time.process_time() - start
        return result

    def __call__(self) -> None:
        batch = to_data_proto(self.given, 0, self.model, logging.getLogger("trinity"))
        tensors = batch.batch
        tensors["old_log_probs"] = tensors["rollout_log_probs"]
        if self.recompute:
            with torch.no_grad():
                parts = tensors["input_ids"].split(MICRO_BATCH)
                tensors["old_log_probs"] = torch.cat([logprobs(self.model, ids) for ids in parts])
        if self.select:
            self.timed(self.advantage, batch)
        counts = {"dp_size": 1, "batch_num_tokens": int(tensors["response_mask"].sum())}
        for part in tensors.split(MICRO_BATCH):
            logprob = logprobs(self.model, part["input_ids"])
            loss, _ = self.timed(self.loss, logprob=logprob, **dict(part.items()), **counts)
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def main() -> None:
    torch.set_num_threads(1)
    steps = {name: Step(args) for name, args in VARIANTS.items()}
    seconds, own = {name: [] for name in steps}, {name: [] for name in steps}
    for turn in range(ROUNDS + 1):
        for name, step in steps.items():
            step.own, start = 0.0, time.process_time()
            step()
            if turn:
                seconds[name].append(time.process_time() - start)
                own[name].append(step.own)
    plain = seconds["Trinity's ppo, no selection"]
    tokens, cut = SEQUENCES * ANSWER, SEQUENCES // MICRO_BATCH
    print(f"| a step of {tokens} tokens in {cut} micro-batches", end=" ")
    print("| ms | against ppo | selection and loss, ms |")
    print("| --- | ---: | ---: | ---: |")
    for name in steps:
        ratio = statistics.median(ours / theirs for ours, theirs in zip(seconds[name], plain))
        step, part = 1e3 * statistics.median(seconds[name]), 1e3 * statistics.median(own[name])
        print(f"| {name} | {step:.0f} | {ratio:.2f} | {part:.1f} |")


if __name__ == "__main__":
    main()
