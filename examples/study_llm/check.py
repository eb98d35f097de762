# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Compares what the study does fast with what it means, on a small random model.

Log-probs and gradient of the packed pass with those of one pass for each answer, and with the sampler's log-probs.
The log of a run that was stopped and resumed with that of one that was not.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
from unittest import mock

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import model
import task
from packing import logprobs
from rollouts import Rollout, decode
from run import CHECKPOINT_EVERY, Line, Run, read_log
from settings import Settings

MOST = 1e-4
PROMPTS, SAMPLES, PROMPT_TOKENS, TOKENS = 3, 4, 5, 9


def small_policy(vocabulary: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
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


def check_packing() -> bool:
    policy = small_policy(13)
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
    return max(differences.values()) <= MOST


class Stopped(Exception):
    pass


def check_resume() -> bool:
    tokenizer = model.load_tokenizer()
    base = small_policy(len(tokenizer))
    base.config.eos_token_id = tokenizer.eos_token_id
    settings = Settings("m2po", 3, 1e-3, 1, updates=2 * CHECKPOINT_EVERY, tokens=6)
    whole = _log(settings, base, tokenizer, None)
    resumed = _log(settings, base, tokenizer, CHECKPOINT_EVERY + 2)
    same = whole == resumed
    print(f"log of a resumed run: {'the same' if same else 'another'}")
    # Where nothing is learnt, any two logs are alike.
    return same and whole[-1]["m2_before"] > 0


def _log(settings: Settings, base: LlamaForCausalLM, tokenizer: object, stop_at: int | None) -> list[Line]:
    """Of a run that is stopped after an update, and then resumed."""

    def stop(line: Line) -> None:
        if line["update"] == stop_at:
            raise Stopped

    # A reward that random answers earn.
    with (
        tempfile.TemporaryDirectory() as name,
        mock.patch.object(task, "grade", lambda _, text: float(len(text) % 2)),
    ):
        directory = pathlib.Path(name)
        if stop_at is not None:
            try:
                Run(settings, directory, base, tokenizer).train(stop)
            except Stopped:
                pass
        Run(settings, directory, base, tokenizer).train(lambda line: None)
        lines = read_log(directory / f"{settings.name()}.jsonl", settings)
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def main() -> int:
    return int(not all([check_packing(), check_resume()]))


if __name__ == "__main__":
    sys.exit(main())
