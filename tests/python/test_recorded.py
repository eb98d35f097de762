# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Recorded batches: exact answers, whatever the split."""

from __future__ import annotations

import pytest
import torch

import rft
from vectors import close, read_json, recorded, split

BATCHES = read_json("recorded_batches.json")["batches"]
AREAL = read_json("areal_masks.json")["batches"]


def name_of(entry: dict) -> str:
    return f"{entry['file'].split('.')[0]}, tau {entry['m2_threshold']}"


def dropped(batches: list[rft.Batch], masks: list[torch.Tensor]) -> list[int]:
    valid = torch.cat([batch.mask for batch in batches])
    kept = torch.cat(masks)
    assert not bool((kept & ~valid).any())
    return (valid & ~kept).flatten().nonzero().flatten().tolist()


@pytest.mark.parametrize("entry", BATCHES, ids=name_of)
def test_answers_are_exact_whatever_the_split(entry) -> None:
    loss = rft.PolicyLoss.from_preset("m2po", {"m2_threshold": entry["m2_threshold"]})
    gradients = []
    for size in (128, 50, 7):
        batches = split(recorded(entry["file"]), size)
        masks, report = loss.select(batches)
        assert dropped(batches, masks) == entry["masked_positions"]
        for name in (
            "valid_tokens",
            "trust_region_tokens",
            "masked_tokens",
            "m2_before",
            "m2_after",
        ):
            assert report.metrics[name] == entry[name], name
        results = [loss.evaluate(b, m, report.reduction()) for b, m in zip(batches, masks)]
        assert close(sum(result.loss for result in results), entry["loss"])
        gradients.append(torch.cat([result.gradient for result in results]))
        assert close(float(gradients[-1].double().abs().sum()), entry["gradient_abs_sum"])
    assert all(torch.equal(gradient, gradients[0]) for gradient in gradients)


@pytest.mark.parametrize("entry", AREAL, ids=name_of)
def test_preset_m2po_areal_drops_what_areal_drops(entry) -> None:
    loss = rft.PolicyLoss.from_preset("m2po_areal", {"m2_threshold": entry["m2_threshold"]})
    tensors = recorded(entry["file"])
    batch = rft.Batch(**tensors, proximal_logprob=tensors["logprob"])
    masks, _ = loss.select([batch])
    assert dropped([batch], masks) == entry["masked_positions"]
