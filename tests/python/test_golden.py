# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The golden cases, through torch and through NumPy."""

from __future__ import annotations

import numpy
import pytest
import torch

import rft
from vectors import close, golden_cases, golden_values

ANSWERS = golden_cases(error=False)
NUMPY_ANSWERS = [case for case in ANSWERS if case["dtype"] != "bfloat16"]
ERRORS = golden_cases(error=True)


def name_of(case: dict) -> str:
    return case["name"]


def torch_arrays(case: dict) -> dict[str, torch.Tensor]:
    dtype = getattr(torch, case["dtype"])
    made = {
        name: torch.tensor(golden_values(case, name), dtype=torch.float64)
        .to(dtype)
        .reshape(case["shape"])
        for name in ("logprob", "old_logprob", "advantages")
    }
    made["mask"] = torch.tensor(case["mask"]).reshape(case["shape"]) != 0
    return made


def numpy_arrays(case: dict) -> dict[str, numpy.ndarray]:
    made = {
        name: numpy.array(golden_values(case, name)).astype(case["dtype"]).reshape(case["shape"])
        for name in ("logprob", "old_logprob", "advantages")
    }
    made["mask"] = numpy.array(case["mask"]).reshape(case["shape"]) != 0
    return made


def parts(arrays: dict, sizes: list[int]) -> list[rft.Batch]:
    """Micro-batches of so many rows, or of so many tokens where there is one sequence."""
    ends = numpy.cumsum([0, *sizes])
    return [
        rft.Batch(**{name: array[first:last] for name, array in arrays.items()})
        for first, last in zip(ends, ends[1:])
    ]


def run(loss: rft.PolicyLoss, batches: list[rft.Batch], case: dict) -> dict:
    masks, report = loss.select(batches)
    valid = case.get("token_count") or report.valid_tokens
    counts = rft.Reduction(valid, report.kept_tokens, report.sequences, case.get("scale", 1.0))
    results = [loss.evaluate(batch, mask, counts) for batch, mask in zip(batches, masks)]
    return {
        "keep": [int(kept) for mask in masks for kept in mask.reshape(-1).tolist()],
        "loss": sum(result.loss for result in results),
        "grad": [g for result in results for g in result.gradient.reshape(-1).tolist()],
        "report": report,
    }


def check(case: dict, found: dict) -> None:
    expect, report = case["expect"], found["report"]
    assert found["keep"] == expect["keep"]
    for name in ("valid_tokens", "trust_region_tokens", "masked_tokens", "m2_before", "m2_after"):
        assert report.metrics[name] == expect[name], name
    assert report.valid_tokens == expect["valid_tokens"]
    assert report.kept_tokens == sum(expect["keep"])
    assert close(found["loss"], expect["loss"])
    assert len(found["grad"]) == len(expect["grad"])
    assert all(close(value, wanted) for value, wanted in zip(found["grad"], expect["grad"]))


def check_with_splits(case: dict, arrays: dict) -> None:
    loss = rft.PolicyLoss.from_config("m2po", case["config"])
    whole = run(loss, [rft.Batch(**arrays)], case)
    check(case, whole)
    for sizes in case.get("also_as_micro_batches_of", ()):
        found = run(loss, parts(arrays, sizes), case)
        check(case, found)
        assert found["grad"] == whole["grad"]


@pytest.mark.parametrize("case", ANSWERS, ids=name_of)
def test_torch(case) -> None:
    check_with_splits(case, torch_arrays(case))


@pytest.mark.parametrize("case", NUMPY_ANSWERS, ids=name_of)
def test_numpy(case) -> None:
    check_with_splits(case, numpy_arrays(case))


@pytest.mark.parametrize("case", ERRORS, ids=name_of)
def test_error(case) -> None:
    loss = rft.PolicyLoss.from_config("m2po", case["config"])
    batch = rft.Batch(**torch_arrays(case))
    with pytest.raises(rft.RftError) as caught:
        masks, report = loss.select([batch])
        loss(batch, masks[0], report.reduction())
    assert caught.value.code == rft.Code.OUT_OF_RANGE
    assert all(word in str(caught.value) for word in case["expect"]["error"].split(", "))
