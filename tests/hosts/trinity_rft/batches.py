# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""A train step's batch as Trinity's trainer makes it, and the loss of it without Ray."""

from __future__ import annotations

import logging

import rollouts
import torch
from trinity.common.config import AlgorithmConfig
from trinity.trainer.verl.losses import TrinityPolicyLoss
from trinity.trainer.verl.monkey_patch import left_right_2_no_padding
from trinity.trainer.verl.utils import to_data_proto
from verl.utils import tensordict_utils

from rft.hosts.trinity_rft import SelectingAdvantage


def advantage(**args) -> SelectingAdvantage:
    """The advantage function, with these policy_loss_fn_args."""
    return SelectingAdvantage(policy_loss_fn_args=args)


def current(model, experiences) -> torch.Tensor:
    """[B, R]: log-probs of the responses, 0 where padded."""
    rows = [rollouts.logprobs(model, experience) for experience in experiences]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def of(model, function: SelectingAdvantage, bypass: bool = False, seed: int = 1):
    """A batch with advantages and the log-probs that the trainer recomputes; its experiences."""
    experiences, _ = function.process(rollouts.stale(model, seed=seed))
    batch = to_data_proto(experiences, 0, model, logging.getLogger("trinity"))
    with torch.no_grad():
        recomputed = current(model, experiences)
    tensors = batch.batch
    tensors["old_log_probs"] = tensors["rollout_log_probs"] if bypass else recomputed
    return batch, experiences


def policy(**args) -> TrinityPolicyLoss:
    """Trinity's loss, with these policy_loss_fn_args."""
    return TrinityPolicyLoss(
        AlgorithmConfig(
            policy_loss_fn="rft.hosts.trinity_rft.PluginPolicyLoss",
            policy_loss_fn_args=args,
            kl_loss_fn="none",
            kl_loss_fn_args={},
            entropy_loss_fn="none",
            entropy_loss_fn_args={"entropy_coef": 0.0},
        )
    )


def losses(model, batch, experiences, micro_batch: int, ranks: int = 1, **args):
    """What the loss gives for every micro-batch of every rank: (loss, metrics) each."""
    function = policy(**args)
    data = left_right_2_no_padding(batch.to_tensordict())
    tensordict_utils.assign_non_tensor(
        data, dp_size=ranks, batch_num_tokens=int(data["response_mask"].sum())
    )
    found, first = [], 0
    for part in tensordict_utils.chunk_tensordict(data, len(experiences) // micro_batch):
        rows = [
            scores(model, experience) for experience in experiences[first : first + micro_batch]
        ]
        output = {"log_probs": torch.nested.as_nested_tensor(rows, layout=torch.jagged)}
        found.append(function(output, part))
        first += micro_batch
    return found


def scores(model, experience) -> torch.Tensor:
    """[sequence]: of each token's successor, as verl's engine gives them; the last one is junk."""
    tokens = experience.tokens
    given = model(input_ids=tokens[None]).logits[0].log_softmax(-1)
    return given.gather(-1, tokens.roll(-1)[:, None])[:, 0]
