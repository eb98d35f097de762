# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Log-probs of a batch in one forward pass over one sequence, in which every prompt stands once.

    prompt 0 | answer 0 | answer 1 | ... | prompt 1 | ...

An answer sees its prompt and itself, at the positions that it would have on its own. Nothing is padded,
and only positions that predict a token of an answer meet the output layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import LlamaForCausalLM

from rollouts import Rollout


@dataclass
class Packed:
    tokens: torch.Tensor  #: [N]
    positions: torch.Tensor  #: [N]
    visible: torch.Tensor  #: [N, N], whether the row's token sees the column's
    predictors: torch.Tensor  #: [A], where each token of the answers is predicted


def pack(rollout: Rollout) -> Packed:
    samples = len(rollout.answers) // len(rollout.prompts)
    prompt_length = rollout.prompts.shape[1]
    tokens, positions, groups, answers, predictors = [], [], [], [], []
    count = 0

    def append(part: torch.Tensor, first_position: int, group: int, answer: int) -> None:
        nonlocal count
        tokens.append(part)
        positions.append(torch.arange(first_position, first_position + len(part)))
        groups.append(torch.full((len(part),), group))
        answers.append(torch.full((len(part),), answer))
        count += len(part)

    for group, prompt in enumerate(rollout.prompts):
        append(prompt, 0, group, -1)
        last_of_prompt = count - 1
        for row in range(group * samples, (group + 1) * samples):
            answer = rollout.answers[row, rollout.mask[row]]
            predictors += [last_of_prompt, *range(count, count + len(answer) - 1)]
            append(answer[:-1], prompt_length, group, row)

    group, answer = torch.cat(groups), torch.cat(answers)
    related = (answer.unsqueeze(1) == answer) | (answer == -1)
    visible = (group.unsqueeze(1) == group) & related & torch.ones(count, count, dtype=torch.bool).tril()
    return Packed(torch.cat(tokens), torch.cat(positions), visible, torch.tensor(predictors))


def logprobs(policy: LlamaForCausalLM, rollout: Rollout) -> torch.Tensor:
    """[B, T], with gradient, 0 where the mask is not set."""
    packed = pack(rollout)
    hidden = policy.model(
        packed.tokens.unsqueeze(0),
        position_ids=packed.positions.unsqueeze(0),
        attention_mask=packed.visible[None, None],
        use_cache=False,
    ).last_hidden_state[0, packed.predictors]
    targets = rollout.answers[rollout.mask]
    valid = -torch.nn.functional.cross_entropy(policy.lm_head(hidden), targets, reduction="none")
    return torch.zeros_like(rollout.logprob).masked_scatter(rollout.mask, valid)
