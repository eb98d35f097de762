# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""A batch as the policy loss saw it, a file for `rft evaluate` and `rft inspect`."""

from __future__ import annotations

import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import PreTrainedTokenizerBase

from rollouts import Rollout


def record(
    path: pathlib.Path,
    rollout: Rollout,
    logprob: torch.Tensor,
    staleness: int,
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    text = [[tokenizer.decode([token]) for token in row] for row in rollout.answers.tolist()]
    tensors = {
        "logprob": logprob,
        "old_logprob": rollout.logprob,
        "advantages": rollout.advantages().unsqueeze(1).expand_as(logprob).contiguous(),
        "mask": rollout.mask,
        "rewards": rollout.rewards,
        "token_ids": rollout.answers.int(),
    }
    metadata = {
        "model": "SmolLM2-135M-Instruct (Apache-2.0), Q4_1 weights dequantised",
        "task": "one-digit addition asked in words, answer graded",
        "staleness": str(staleness),
        "token_text": json.dumps(text),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, metadata)
    partial.replace(path)
