# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""AReaL's own masking: preset m2po_areal has its numbers, preset m2po has not its defects."""

from __future__ import annotations

import json
import math
import pathlib

import pytest
import rft
import torch
import world
from areal.api.cli_args import OptimizerConfig, PPOActorConfig, RejectionSamplingConfig
from areal.trainer.ppo.actor import _apply_m2po_masking
from safetensors.torch import load_file

VECTORS = pathlib.Path(__file__).parents[2] / "vectors"
RECORDED = json.loads((VECTORS / "areal_masks.json").read_text())["batches"]
ADAM = {"optimizer": OptimizerConfig(lr=0.01)}
DECOUPLED = {"m2_threshold": 0.04, "use_decoupled_loss": True}
TIMES = ("timeperf", "m2po/")


def two_updates(actor, batch) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    world.update(actor, batch)
    statistics = world.update(actor, batch)
    mine = {key: value for key, value in statistics.items() if not any(t in key for t in TIMES)}
    return world.weights(actor), mine


def assert_the_same_bits(found, expected) -> None:
    for name, weight in expected[0].items():
        assert torch.equal(found[0][name], weight), name
    assert found[1] == expected[1]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"ppo_n_minibatches": 2},
        {"c_clip": 3.0, "eps_clip_higher": 0.28, "ppo_n_minibatches": 2},
        {"importance_sampling_level": "sequence", "ppo_n_minibatches": 2},
        {"rejection_sampling": RejectionSamplingConfig(upper=1.5)},
    ],
    ids=["ppo", "minibatches", "dual_clip", "gspo", "rejection_sampling"],
)
def test_preset_m2po_areal_is_the_built_in_bit_by_bit_on_one_micro_batch(start, batch, given):
    own = start(PPOActorConfig, **ADAM, **DECOUPLED, **given)
    expected = two_updates(own, batch)
    actor = start(preset="m2po_areal", **ADAM, **DECOUPLED, **given)
    found = two_updates(actor, batch)
    assert_the_same_bits(found, expected)
    dropped = sum(
        int((data["loss_mask"].bool() & ~keep).sum()) for data, _, keep in actor.selections
    )
    assert dropped > 0


def test_it_is_the_built_in_on_any_number_of_micro_batches_where_each_is_selected_alone(
    start, batch
):
    given = {**ADAM, **DECOUPLED, "micro_batches": 3}
    expected = two_updates(start(PPOActorConfig, **given), batch)
    actor = start(preset="m2po_areal", selection_scope="micro_batch", **given)
    assert_the_same_bits(two_updates(actor, batch), expected)


@pytest.mark.parametrize(
    "recorded", RECORDED, ids=lambda r: f"{r['file'][8:-12]}-{r['m2_threshold']}"
)
def test_on_a_recorded_batch_built_in_preset_and_record_drop_the_same_tokens(recorded):
    tensors = load_file(VECTORS / recorded["file"])
    dropped = tensors["mask"] & ~built_in(tensors, recorded["m2_threshold"])
    assert dropped.flatten().nonzero().flatten().tolist() == recorded["masked_positions"]
    loss = rft.PolicyLoss.from_preset("m2po_areal", {"m2_threshold": recorded["m2_threshold"]})
    names = "logprob", "old_logprob", "advantages", "mask"
    one = rft.Batch(*(tensors[name] for name in names), proximal_logprob=tensors["logprob"])
    (keep,), _ = loss.select([one])
    assert torch.equal(tensors["mask"] & ~keep, dropped)


def built_in(tensors: dict[str, torch.Tensor], threshold: float) -> torch.Tensor:
    old, proximal, mask = (tensors[name] for name in ("old_logprob", "logprob", "mask"))
    return _apply_m2po_masking(old, proximal, mask, threshold)


def test_the_built_in_drops_83_tokens_of_a_recorded_batch_whole_and_102_in_8_parts_33_differing():
    tensors = load_file(VECTORS / "smollm2_k8.safetensors")
    whole = tensors["mask"] & ~built_in(tensors, 0.04)
    parts = [dict(zip(tensors, rows)) for rows in zip(*(t.split(16) for t in tensors.values()))]
    split = torch.cat([part["mask"] & ~built_in(part, 0.04) for part in parts])
    assert (len(parts), int(whole.sum()), int(split.sum())) == (8, 83, 102)
    assert int((whole ^ split).sum()) == 33


@pytest.mark.parametrize("preset", ["m2po", "m2po_areal"])
def test_our_mask_of_that_batch_is_one_in_any_number_of_parts(preset):
    tensors = load_file(VECTORS / "smollm2_k8.safetensors")
    loss = rft.PolicyLoss.from_preset(preset)
    names = "logprob", "old_logprob", "advantages", "mask", "logprob"
    masks = []
    for rows in (128, 16):
        parts = zip(*(tensors[name].split(rows) for name in names))
        masks.append(torch.cat(loss.select([rft.Batch(*part) for part in parts]).masks))
    assert torch.equal(*masks)


def test_the_built_in_does_nothing_without_use_decoupled_loss_and_preset_m2po_selects(start, batch):
    plain = start(PPOActorConfig)
    world.update(plain, batch)
    expected = world.weights(plain)
    own = start(PPOActorConfig, m2_threshold=0.04)
    world.update(own, batch)
    assert all(torch.equal(expected[name], weight) for name, weight in world.weights(own).items())
    ours = start(m2_threshold=0.04)
    statistics = world.update(ours, batch)
    assert statistics["ppo_actor/update/m2po/masked_tokens"] > 0
    assert any(not torch.equal(expected[name], w) for name, w in world.weights(ours).items())


def test_the_built_in_s_mask_depends_on_the_micro_batches_and_ours_does_not(start, batch):
    found = {}
    for config, preset in ((PPOActorConfig, {}), (None, {"preset": "m2po_areal"})):
        for parts in (1, 4):
            given = {**DECOUPLED, **preset, "micro_batches": parts}
            actor = start(config, **given) if config else start(**given)
            statistics = world.update(actor, batch)
            found[bool(preset), parts] = statistics["ppo_actor/update/n_valid_tokens"]
    assert found[False, 1] != found[False, 4]
    assert found[False, 1] == found[True, 1] == found[True, 4]


def test_a_log_prob_that_is_not_a_number_is_an_error_where_the_built_in_drops_it():
    tensors = load_file(VECTORS / "smollm2_k8.safetensors")
    row, column = tensors["mask"].nonzero()[7].tolist()
    tensors["old_logprob"][row, column] = math.nan
    assert not built_in(tensors, 0.04)[row, column]
    loss = rft.PolicyLoss.from_preset("m2po_areal")
    names = "logprob", "old_logprob", "advantages", "mask", "logprob"
    with pytest.raises(rft.RftError, match=rf"old_logprob.*row {row}, column {column}.*nan"):
        loss.select([rft.Batch(*(tensors[name] for name in names))])
