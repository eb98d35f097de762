# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""One rank of test_distributed.py: `torchrun ranks.py OUTPUT`. Writes what each scenario gave."""

from __future__ import annotations

import datetime
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

import rft
from vectors import recorded, rows

FILE = "smollm2_k16.safetensors"

#: Rows of the recorded batch that each rank has, for so many ranks.
SPREADS = {
    "unequal": {2: [0, 100, 128], 3: [0, 17, 90, 128]},
    "one rank without a row": {2: [0, 0, 128], 3: [0, 64, 64, 128]},
    "all rows on one rank": {2: [0, 128, 128], 3: [0, 0, 128, 128]},
}


def share(tensors: dict[str, torch.Tensor], spread: str, size: int) -> list[rft.Batch]:
    """This rank's micro-batches, of a size of its own."""
    bounds, step = SPREADS[spread][dist.get_world_size()], size
    first, last = bounds[dist.get_rank()], bounds[dist.get_rank() + 1]
    return [rows(tensors, k, min(k + step, last)) for k in range(first, last, step)]


def outcome(loss: rft.PolicyLoss, batches: list[rft.Batch], group: Any) -> dict[str, Any]:
    """Everything that a step gives."""
    masks, report = loss.select(batches, group)
    metrics = loss.metrics(report)
    results = [loss.evaluate(b, m, report.reduction(), metrics) for b, m in zip(batches, masks)]
    metrics.all_reduce(group)
    return {
        "masks": masks,
        "report": report,
        "loss": sum(result.loss for result in results),
        "gradients": [result.gradient for result in results],
        "metrics": metrics.as_dict(),
    }


def spread(name: str) -> Callable[[], dict[str, Any]]:
    return lambda: outcome(
        rft.PolicyLoss.from_preset("m2po"),
        share(recorded(FILE), name, 9 + dist.get_rank()),
        dist.group.WORLD,
    )


def no_valid_token() -> dict[str, Any]:
    tensors = dict(recorded(FILE))
    if dist.get_rank() == 0:
        tensors["mask"] = torch.zeros_like(tensors["mask"])
    batches = share(tensors, "unequal", 20)
    return outcome(rft.PolicyLoss.from_preset("m2po"), batches, dist.group.WORLD)


def one_rank_fails() -> dict[str, Any]:
    tensors = dict(recorded(FILE))
    if dist.get_rank() == 1:
        tensors["advantages"] = torch.full_like(tensors["advantages"], float("nan"))
    batches = share(tensors, "unequal", 20)
    return outcome(rft.PolicyLoss.from_preset("m2po"), batches, dist.group.WORLD)


def configs_differ() -> dict[str, Any]:
    loss = rft.PolicyLoss.from_config("m2po", {"m2_threshold": 0.04 + 0.01 * dist.get_rank()})
    return outcome(loss, share(recorded(FILE), "unequal", 20), dist.group.WORLD)


def no_group() -> dict[str, Any]:
    rft.PolicyLoss.from_preset("m2po").select(share(recorded(FILE), "unequal", 20))
    return {}


def alone() -> dict[str, Any]:
    batches = share(recorded(FILE), "unequal", 20)
    return {"report": rft.PolicyLoss.from_preset("m2po").select(batches, rft.ALONE).report}


def copies_in_the_group() -> dict[str, Any]:
    """Every rank has the same rows, as ranks of a tensor-parallel group have."""
    batch = rft.Batch(**recorded(FILE))
    return {"report": rft.PolicyLoss.from_preset("m2po").select([batch], dist.group.WORLD).report}


def subgroup() -> dict[str, Any]:
    """The group that a framework has made of the first and last rank; others are not in it."""
    group = dist.new_group([0, dist.get_world_size() - 1])
    half = 64 if dist.get_rank() else 0
    batches = [rows(recorded(FILE), half, half + 64)]
    return {"report": rft.PolicyLoss.from_preset("m2po").select(batches, group).report}


def another_rank_is_gone() -> dict[str, Any]:
    """The last scenario: nobody can reduce afterwards."""
    if dist.get_rank() == 1:
        os._exit(0)
    rft.PolicyLoss.from_preset("m2po").select([rft.Batch(**recorded(FILE))], dist.group.WORLD)
    return {}


SCENARIOS = {
    **{name: spread(name) for name in SPREADS},
    "no valid token": no_valid_token,
    "one rank fails": one_rank_fails,
    "configs differ": configs_differ,
    "no group": no_group,
    "alone": alone,
    "copies": copies_in_the_group,
    "subgroup": subgroup,
    "a rank is gone": another_rank_is_gone,
}


def main(output: pathlib.Path) -> None:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
    path = output / f"{dist.get_rank()}.pt"
    results: dict[str, Any] = {}
    for name, scenario in SCENARIOS.items():
        try:
            results[name] = scenario()
        except rft.RftError as problem:
            results[name] = {"code": int(problem.code), "message": str(problem)}
        torch.save(results, path)
    os._exit(0)  # the group is broken, and its destructor would wait for who is gone


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
