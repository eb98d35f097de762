# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Two gloo ranks that share an optimizer batch: the mask and the gradient are those of one."""

from __future__ import annotations

import pathlib
from typing import Any

import literal
import pytest
import torch
import world
from rft.hosts.areal import RFTActorConfig

CASES: dict[str, dict[str, Any]] = {
    "areal_s_loss": {"micro_batches": 2, "eps_clip": 1e9},
    "the_plugin_s_loss": {"micro_batches": 4, "policy_loss": "plugin"},
    # AReaL's own loss fails there, with and without us: its statistics differ between the ranks.
    "no_valid_token_on_one": {"micro_batches": 2, "policy_loss": "plugin"},
}


def trajectories(case: str) -> list[dict[str, torch.Tensor]]:
    batch = world.trajectories()
    for trajectory in batch[4:] if case == "no_valid_token_on_one" else []:
        trajectory["loss_mask"] = torch.zeros_like(trajectory["loss_mask"])
    return batch


def rank_of_two(rank: int, ports: list[int], model: str, folder: str) -> None:
    for port, (name, given) in zip(ports, CASES.items()):
        world.enter(rank, 2, port)
        actor = world.start(RFTActorConfig(**world.settings(model, 2, m2_threshold=0.04, **given)))
        statistics = world.update(actor, trajectories(name)[rank * 4 : rank * 4 + 4])
        ((data, _, keep),) = actor.selections
        found = {
            "keep": keep & data["loss_mask"].bool(),
            "gradients": world.gradients(actor),
            "statistics": statistics,
        }
        torch.save(found, pathlib.Path(folder) / f"{name}-{rank}")
        world.leave(actor)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("ranks")
    ports = [world.free_port() for _ in CASES]
    torch.multiprocessing.spawn(rank_of_two, (ports, model, str(made)), nprocs=2)
    return made


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_drop_the_tokens_and_take_the_step_of_the_whole_batch(folder, case):
    ranks = [torch.load(folder / f"{case}-{rank}") for rank in range(2)]
    hand = world.by_hand(trajectories(case))
    whole = hand.logprob.detach(), hand.old_logprob, hand.advantages, hand.mask
    kept, n = literal.keep_mask(*whole), int(hand.mask.sum())
    width = kept.shape[1]
    found = [torch.nn.functional.pad(r["keep"], (0, 1))[:, :width] for r in ranks]
    assert torch.equal(torch.cat(found), kept)
    expected = hand.gradients(literal.loss(hand.logprob, *whole[1:3], kept, n))
    for rank in ranks:
        world.assert_close(rank["gradients"], expected)
        assert rank["statistics"]["ppo_actor/update/m2po/valid_tokens"] == n
