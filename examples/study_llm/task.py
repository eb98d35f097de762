# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""One-digit addition asked in words, and graded. Some pairs of numbers are never trained on."""

from __future__ import annotations

import itertools
import random
import re

import torch
from transformers import PreTrainedTokenizerBase

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
# The model's chat format, without its long system prompt: the question is read for every update.
PROMPT = "<|im_start|>user\nWhat is {} plus {}? Answer in digits.<|im_end|>\n<|im_start|>assistant\n"
HELD_OUT_PAIRS = 10  # of two different numbers, each asked in both orders

Question = tuple[int, int]


def _split() -> tuple[list[Question], list[Question]]:
    pairs = list(itertools.combinations(range(len(WORDS)), 2))
    chosen = set(random.Random(0).sample(pairs, HELD_OUT_PAIRS))
    training, held_out = [], []
    for question in itertools.product(range(len(WORDS)), repeat=2):
        (held_out if tuple(sorted(question)) in chosen else training).append(question)
    return training, held_out


TRAINING, HELD_OUT = _split()


def draw(count: int, generator: torch.Generator) -> list[Question]:
    """Different questions to train on."""
    return [TRAINING[i] for i in torch.randperm(len(TRAINING), generator=generator)[:count].tolist()]


def prompts(tokenizer: PreTrainedTokenizerBase, questions: list[Question]) -> torch.Tensor:
    """[Q, P]. Every number is one token, so all prompts are of one length."""
    texts = [PROMPT.format(WORDS[a], WORDS[b]) for a, b in questions]
    return torch.tensor([tokenizer(text)["input_ids"] for text in texts])


def grade(question: Question, answer: str) -> float:
    """1 where the last number of the answer is the sum, else 0."""
    numbers = re.findall(r"\d+", answer)
    return float(bool(numbers) and int(numbers[-1]) == sum(question))
