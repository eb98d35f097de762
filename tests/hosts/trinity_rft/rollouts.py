# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Stale experiences for the tiny model, made by hand, and their log-probs without any framework."""

from __future__ import annotations

import torch
from trinity.common.experience import EID, Experience


def logprobs(model: torch.nn.Module, experience: Experience) -> torch.Tensor:
    """[response length]: of the response, under `model`."""
    tokens, start = experience.tokens, experience.prompt_length
    scores = model(input_ids=tokens[None]).logits[0].log_softmax(-1)
    return scores[start - 1 : -1].gather(-1, tokens[start:, None])[:, 0]


def stale(model: torch.nn.Module, tasks: int = 2, runs: int = 4, seed: int = 1) -> list[Experience]:
    """`runs` experiences of each task, as an explorer writes them: no advantages yet."""
    torch.manual_seed(seed)
    made = []
    for k in range(tasks * runs):
        prompt, response = 3 + k % 3, 4 + 3 * k % 7
        experience = Experience(
            eid=EID(batch=seed, task=k // runs, run=k % runs),
            tokens=torch.randint(3, 22, (prompt + response,)),
            prompt_length=prompt,
            reward=float(torch.randn(())),
            # A tool's token, in the middle of some responses, is not the policy's.
            action_mask=torch.arange(response) != (2 if k % 3 == 0 else -1),
            info={"model_version": 0},
        )
        with torch.no_grad():
            current = logprobs(model, experience)
        experience.logprobs = current + 0.4 * torch.randn_like(current)
        made.append(experience)
    return made
