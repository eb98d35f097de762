# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Trains a small policy from rollouts that are many updates old, alone or on torchrun's ranks.

The task: say the prompt, one of ten symbols, eight times. A reward is the share of right symbols.
"""

from __future__ import annotations

import argparse
import collections
import os

import torch
import torch.distributed as dist

import rft

SYMBOLS, LENGTH = 10, 8
PROMPTS, SAMPLES = 16, 8  # of a rank and update
MICRO_BATCH = 32


class Policy(torch.nn.Module):
    """Logits [B, LENGTH, SYMBOLS] of prompts [B]."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = torch.nn.Embedding(SYMBOLS, 32)
        self.position = torch.nn.Embedding(LENGTH, 32)
        self.out = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(32, SYMBOLS))

    def forward(self, prompts: torch.Tensor) -> torch.Tensor:
        positions = self.position(torch.arange(LENGTH))
        return self.out(self.prompt(prompts).unsqueeze(1) + positions)

    def logprob(self, prompts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Of the tokens [B, LENGTH]."""
        every = torch.log_softmax(self(prompts), -1)
        return every.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def roll_out(behavior: Policy) -> tuple[torch.Tensor, ...]:
    """Prompts, tokens, their log-probs, advantages (within a group, as GRPO's) and rewards."""
    prompts = torch.randint(SYMBOLS, (PROMPTS,)).repeat_interleave(SAMPLES)
    tokens = torch.distributions.Categorical(logits=behavior(prompts)).sample()
    rewards = (tokens == prompts.unsqueeze(1)).float().mean(1)
    groups = rewards.view(PROMPTS, SAMPLES)
    spread = groups.std(1, keepdim=True) + 1e-6
    advantages = ((groups - groups.mean(1, keepdim=True)) / spread).flatten()
    return prompts, tokens, behavior.logprob(prompts, tokens), advantages, rewards


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    loss: rft.PolicyLoss,
    rollout: tuple[torch.Tensor, ...],
    group: dist.ProcessGroup | None,
) -> dict[str, float]:
    """One optimizer step. Gives the metrics of the loss."""
    prompts, tokens, old_logprob, advantages, _ = rollout
    parts = [slice(first, first + MICRO_BATCH) for first in range(0, len(prompts), MICRO_BATCH)]

    def batch(part: slice) -> rft.Batch:
        logprob = policy.logprob(prompts[part], tokens[part])
        mask = torch.ones_like(tokens[part])
        return rft.Batch(logprob, old_logprob[part], advantages[part], mask)

    with torch.no_grad():
        masks, report = loss.select((batch(part) for part in parts), group)
    metrics = loss.metrics(report)
    optimizer.zero_grad()
    for part, mask in zip(parts, masks):
        loss(batch(part), mask, report.reduction(), metrics).backward()
    if group is not None:
        for parameter in policy.parameters():
            dist.all_reduce(parameter.grad, group=group)
        metrics.all_reduce(group)
    optimizer.step()
    return metrics.as_dict()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="m2po", help="of the plugin (%(default)s)")
    parser.add_argument("--staleness", type=int, default=16, help="in updates (%(default)s)")
    parser.add_argument("--updates", type=int, default=300, help="(%(default)s)")
    arguments = parser.parse_args()

    group = None
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        group = dist.group.WORLD
    rank = 0 if group is None else dist.get_rank()
    torch.manual_seed(0)
    policy = Policy()
    torch.manual_seed(1 + rank)
    loss = rft.PolicyLoss.from_preset(arguments.preset)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    waiting = collections.deque([roll_out(policy) for _ in range(arguments.staleness)])
    for number in range(1, arguments.updates + 1):
        waiting.append(roll_out(policy))
        rollout = waiting.popleft()
        metrics = update(policy, optimizer, loss, rollout, group)
        if rank == 0 and (number == 1 or number % 50 == 0):
            reward = float(rollout[-1].mean())
            dropped = metrics["masked_tokens"] / metrics["valid_tokens"]
            m2 = f"m2 {metrics['m2_before']:.3f} -> {metrics['m2_after']:.3f}"
            print(
                f"update {number:3}  reward {reward:.2f}  {m2}  dropped {dropped:.1%}", flush=True
            )
    if group is not None:
        dist.destroy_process_group()  # its threads must not outlive the process


if __name__ == "__main__":
    main()
