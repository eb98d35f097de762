# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Compares what the study does fast with what it means, on a small random model.

Log-probs and gradient of the packed pass with those of one pass for each answer, and with the sampler's log-probs.
"""

from __future__ import annotations

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from packing import logprobs
from rollouts import Rollout, decode

MOST = 1e-4
PROMPTS, SAMPLES, PROMPT_TOKENS, TOKENS = 3, 4, 5, 9


def small_policy() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=13,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.5,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def one_by_one(policy: LlamaForCausalLM, rollout: Rollout) -> torch.Tensor:
    """`logprobs` as it reads: every answer behind its own prompt."""
    rows = []
    for row, (answer, mask) in enumerate(zip(rollout.answers, rollout.mask)):
        prompt = rollout.prompts[row // SAMPLES]
        logits = policy(torch.cat([prompt, answer]).unsqueeze(0)).logits[0, len(prompt) - 1 : -1]
        rows.append(torch.log_softmax(logits, -1).gather(1, answer.unsqueeze(1))[:, 0] * mask)
    return torch.stack(rows)


def gradient(policy: LlamaForCausalLM, values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    policy.zero_grad()
    (values * weights).sum().backward()
    return torch.cat([parameter.grad.flatten() for parameter in policy.parameters()])


def main() -> int:
    torch.manual_seed(0)
    policy = small_policy()
    prompts = torch.randint(3, policy.config.vocab_size, (PROMPTS, PROMPT_TOKENS))
    answers, mask, sampled = decode(policy, prompts, SAMPLES, TOKENS, torch.Generator().manual_seed(0))
    assert 0 < int(mask.sum()) < mask.numel(), "the check needs answers of different lengths"
    rollout = Rollout(prompts, answers, mask, sampled, torch.zeros(len(answers)), 0)
    weights = torch.randn_like(sampled)
    packed, plain = logprobs(policy, rollout), one_by_one(policy, rollout)
    packed_gradient, plain_gradient = gradient(policy, packed, weights), gradient(policy, plain, weights)
    with torch.no_grad():
        differences = {
            "log-probs, packed against one by one": (packed - plain).abs().max(),
            "log-probs, packed against the sampler's": (packed - sampled).abs().max(),
            "gradient, packed against one by one": (packed_gradient - plain_gradient).norm() / plain_gradient.norm(),
        }
    for name, difference in differences.items():
        print(f"{name}: {float(difference):.1e}, at most {MOST:.0e}")
    return int(max(differences.values()) > MOST)


if __name__ == "__main__":
    sys.exit(main())
