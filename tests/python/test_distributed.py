# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The selection over ranks of torch.distributed, started by plain torchrun, over gloo."""

from __future__ import annotations

import inspect
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import torch

import ranks
import rft
from vectors import recorded, split

RANKS = pathlib.Path(__file__).with_name("ranks.py")


def load(path: pathlib.Path) -> dict[str, Any]:
    """Of torch 2.6 on, objects are read on request only."""
    takes = "weights_only" in inspect.signature(torch.load).parameters
    return torch.load(path, **({"weights_only": False} if takes else {}))


@pytest.fixture(scope="module", params=[2, 3], ids=["2 ranks", "3 ranks"])
def results(request, tmp_path_factory) -> list[dict[str, Any]]:
    """What every rank wrote, by rank."""
    output = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    # The default of --redirects and --tee, 0, is nothing that torch 1.13 can read on Python 3.11.
    command += ["--redirects", "1", "--tee", "1", "--log_dir", str(output / "log")]
    command += ["--monitor_interval", "1"]
    command += ["--nproc_per_node", str(request.param), str(RANKS), str(output)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, env=os.environ)
    assert run.returncode == 0, run.stderr
    return [load(output / f"{rank}.pt") for rank in range(request.param)]


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """The step of one process over all rows."""
    loss, batches = rft.PolicyLoss.from_preset("m2po"), split(recorded(ranks.FILE), 33)
    masks, report = loss.select(batches)
    metrics = loss.metrics(report)
    found = [loss.evaluate(b, m, report.reduction(), metrics) for b, m in zip(batches, masks)]
    return {
        "masks": torch.cat(masks),
        "report": report,
        "loss": sum(result.loss for result in found),
        "gradients": torch.cat([result.gradient for result in found]),
        "metrics": metrics.as_dict(),
    }


@pytest.mark.parametrize("spread", ranks.SPREADS)
def test_ranks_select_what_one_process_does(results, expected, spread) -> None:
    found = [rank[spread] for rank in results]
    masks = torch.cat([mask for part in found for mask in part["masks"]])
    assert torch.equal(masks, expected["masks"])
    assert all(part["report"] == expected["report"] for part in found)
    assert 0 < expected["report"].kept_tokens < expected["report"].valid_tokens
    gradients = torch.cat([gradient for part in found for gradient in part["gradients"]])
    assert torch.equal(gradients, expected["gradients"])
    assert sum(part["loss"] for part in found) == pytest.approx(expected["loss"], rel=1e-12)


@pytest.mark.parametrize("spread", ranks.SPREADS)
def test_metrics_are_those_of_all_ranks(results, expected, spread) -> None:
    for part in (rank[spread] for rank in results):
        assert part["metrics"].keys() == expected["metrics"].keys()
        for name, value in expected["metrics"].items():
            assert part["metrics"][name] == pytest.approx(value, rel=1e-12), name


def test_a_rank_with_no_valid_token_takes_part(results) -> None:
    tensors = dict(recorded(ranks.FILE))
    bounds = ranks.SPREADS["unequal"][len(results)]
    tensors["mask"] = tensors["mask"].clone()
    tensors["mask"][: bounds[1]] = False
    masks, report = rft.PolicyLoss.from_preset("m2po").select([rft.Batch(**tensors)])
    found = [rank["no valid token"] for rank in results]
    assert all(part["report"] == report for part in found)
    assert torch.equal(torch.cat([mask for part in found for mask in part["masks"]]), masks[0])


def test_a_rank_that_fails_fails_every_rank(results) -> None:
    for rank, found in enumerate(part["one rank fails"] for part in results):
        if rank == 1:
            assert found["code"] == rft.Code.OUT_OF_RANGE and "advantages" in found["message"]
        else:
            assert found["code"] == rft.Code.ABORTED
            assert f"failed on 1 of {len(results)} ranks" in found["message"]


def test_configs_that_differ_fail_every_rank(results) -> None:
    for found in (part["configs differ"] for part in results):
        assert found["code"] == rft.Code.INVALID_ARGUMENT
        assert "found different ones" in found["message"]


def test_a_group_that_is_not_named_is_an_error(results) -> None:
    for found in (part["no group"] for part in results):
        assert found["code"] == rft.Code.INVALID_ARGUMENT
        assert f"group: {len(results)} ranks are at work" in found["message"]


def test_a_rank_may_ask_to_select_alone(results) -> None:
    reports = [part["alone"]["report"] for part in results]
    assert sum(report.valid_tokens for report in reports) == int(recorded(ranks.FILE)["mask"].sum())
    assert len({report.valid_tokens for report in reports}) == len(results)


def test_copies_count_twice_in_the_wrong_group(results, expected) -> None:
    for report in (part["copies"]["report"] for part in results):
        assert report.valid_tokens == len(results) * expected["report"].valid_tokens


def test_the_framework_s_own_group_is_taken(results, expected) -> None:
    for rank, found in enumerate(part["subgroup"] for part in results):
        if rank in (0, len(results) - 1):
            assert found["report"] == expected["report"]
        else:
            assert found["code"] == rft.Code.INVALID_ARGUMENT and "belongs to" in found["message"]


def test_a_rank_that_is_gone_is_an_error_on_the_others(results) -> None:
    found = results[0]["a rank is gone"]
    assert found["code"] == rft.Code.UNAVAILABLE and "all_reduce_sum on rank 0" in found["message"]
