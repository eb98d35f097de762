# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""A stale batch for the tiny model, and its log-probs without any framework."""

from __future__ import annotations

import torch


def logprobs(model: torch.nn.Module, batch: dict[str, list[torch.Tensor]]) -> torch.Tensor:
    """[B, R]: of the responses, one sequence at a time, 0 where padded."""
    longest = max(len(response) for response in batch["responses"])
    found = []
    for prompt, response in zip(batch["prompts"], batch["responses"]):
        ids = torch.cat([prompt, response])
        scores = model(input_ids=ids[None]).logits[0].log_softmax(-1)
        row = scores[len(prompt) - 1 : -1].gather(-1, response[:, None])[:, 0]
        found.append(torch.nn.functional.pad(row, (0, longest - len(row))))
    return torch.stack(found)


def stale(
    model: torch.nn.Module, prompts: list[int], responses: list[int]
) -> dict[str, list[torch.Tensor]]:
    """For these lengths: prompts, responses, response_mask, old_log_probs, advantages."""
    torch.manual_seed(1)
    batch = {
        "prompts": [torch.randint(3, 22, (length,)) for length in prompts],
        "responses": [torch.randint(3, 22, (length,)) for length in responses],
    }
    with torch.no_grad():
        current = logprobs(model, batch)
    drift = 0.4 * torch.randn_like(current)
    batch["old_log_probs"] = [row[:n] for row, n in zip(current + drift, responses)]
    batch["advantages"] = [torch.randn(()).expand(n).clone() for n in responses]
    # A tool's tokens, in the middle of some responses, are not the policy's.
    batch["response_mask"] = [
        (torch.arange(n) != 2).long() if k % 3 == 0 else torch.ones(n, dtype=torch.long)
        for k, n in enumerate(responses)
    ]
    return batch


def padded(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
