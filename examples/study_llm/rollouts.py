# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Answers sampled from the policy, with the log-probs that the sampler had; exactly k updates old."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import DynamicCache, LlamaForCausalLM, PreTrainedTokenizerBase

import task
from settings import Settings

EVALUATION_TOKENS = 12


@dataclass
class Rollout:
    """An optimizer batch: G prompts of P tokens, S answers to each, of at most T tokens."""

    prompts: torch.Tensor  #: [G, P]
    answers: torch.Tensor  #: [G * S, T], the samples of a prompt one after the other
    mask: torch.Tensor  #: [G * S, T], False behind the end of an answer
    logprob: torch.Tensor  #: [G * S, T], of the behavior policy
    rewards: torch.Tensor  #: [G * S]
    version: int  #: updates that the behavior policy had seen

    def advantages(self) -> torch.Tensor:
        """[G * S], normalised within a group, as GRPO's."""
        groups = self.rewards.view(len(self.prompts), -1)
        spread = groups.std(1, keepdim=True) + 1e-6
        return ((groups - groups.mean(1, keepdim=True)) / spread).flatten()


def _draw(probabilities: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """[B, 1], one token a row. torch.multinomial draws a number for each token of the vocabulary, and takes a
    seventh of the sampling to do so."""
    sums = probabilities.double().cumsum(1)
    chosen = torch.rand(len(sums), 1, dtype=sums.dtype, generator=generator) * sums[:, -1:]
    return torch.searchsorted(sums, chosen, right=True)


@torch.no_grad()
def decode(
    policy: LlamaForCausalLM,
    prompts: torch.Tensor,
    samples: int,
    length: int,
    generator: torch.Generator | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Answers, mask and log-probs; the likeliest tokens where there is no generator.

    Each prompt is read once, and its keys and values are repeated for its samples.
    """
    end = policy.config.eos_token_id
    cache = DynamicCache(config=policy.config)
    hidden = policy.model(prompts, cache=cache, use_cache=True).last_hidden_state[:, -1]
    cache.batch_repeat_interleave(samples)
    hidden = hidden.repeat_interleave(samples, 0)
    alive = torch.ones(len(hidden), dtype=torch.bool)
    answers, masks, logprobs = [], [], []
    while True:
        every = torch.log_softmax(policy.lm_head(hidden), -1)
        if generator is None:
            token = every.argmax(-1, keepdim=True)
        else:
            token = _draw(every.exp(), generator)
        token[~alive] = end
        answers.append(token)
        masks.append(alive.unsqueeze(1))
        logprobs.append(every.gather(1, token) * masks[-1])
        alive = alive & (token[:, 0] != end)
        if len(answers) == length or not alive.any():
            return torch.cat(answers, 1), torch.cat(masks, 1), torch.cat(logprobs, 1)
        hidden = policy.model(token, cache=cache, use_cache=True).last_hidden_state[:, -1]


def _grade(
    tokenizer: PreTrainedTokenizerBase,
    questions: list[task.Question],
    answers: torch.Tensor,
) -> torch.Tensor:
    texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
    samples = len(texts) // len(questions)
    return torch.tensor([task.grade(questions[i // samples], text) for i, text in enumerate(texts)])


def held_out_accuracy(policy: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase) -> float:
    """Of greedy answers."""
    prompts = task.prompts(tokenizer, task.HELD_OUT)
    answers, _, _ = decode(policy, prompts, 1, EVALUATION_TOKENS, None)
    return float(_grade(tokenizer, task.HELD_OUT, answers).mean())


class Sampler:
    """Which questions it asks depends on the seed and the batch alone, never on the algorithm."""

    def __init__(self, settings: Settings, tokenizer: PreTrainedTokenizerBase) -> None:
        self._settings = settings
        self._tokenizer = tokenizer

    def roll_out(self, policy: LlamaForCausalLM, first: int, count: int, version: int) -> list[Rollout]:
        """Batches `first` to `first + count - 1`, sampled together: many answers at once cost less each."""
        settings = self._settings
        generator = torch.Generator().manual_seed(1_000_000 * settings.seed + first)
        questions = [question for _ in range(count) for question in task.draw(settings.prompts, generator)]
        prompts = task.prompts(self._tokenizer, questions)
        answers, mask, logprob = decode(policy, prompts, settings.samples, settings.tokens, generator)
        rewards = _grade(self._tokenizer, questions, answers)
        rows = settings.prompts * settings.samples
        parts = zip(prompts.split(settings.prompts), *(t.split(rows) for t in (answers, mask, logprob, rewards)))
        return [Rollout(*(tensor.clone() for tensor in part), version) for part in parts]
