# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""torch.distributed: collectives over a framework's own process group."""

from __future__ import annotations

import ctypes

import torch
import torch.distributed as dist

from . import _abi
from .collectives import Collectives
from .errors import Code, RftError

_OPERATIONS = {
    _abi.COMBINE_SUM: dist.ReduceOp.SUM,
    _abi.COMBINE_MAX: dist.ReduceOp.MAX,
    _abi.COMBINE_MIN: dist.ReduceOp.MIN,
}


def _device(group: dist.ProcessGroup | None) -> torch.device:
    # nccl alone can't reduce what is in the CPU's memory; "cpu:gloo,cuda:nccl" can.
    if dist.get_backend(group) == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def collectives_of(group: dist.ProcessGroup) -> Collectives:
    """The sum over the ranks of a process group that this process belongs to."""
    # A rank that is not in a new group is given a placeholder for it.
    if not isinstance(group, dist.ProcessGroup):
        raise RftError(
            Code.INVALID_ARGUMENT,
            "group: expected a process group of torch.distributed that this process belongs to, "
            f"found {group!r}",
        )
    device = _device(group)

    def all_reduce_sum(values: ctypes.Array[ctypes.c_int64]) -> None:
        own = torch.frombuffer(values, dtype=torch.int64)
        sums = own.to(device)
        dist.all_reduce(sums, op=dist.ReduceOp.SUM, group=group)
        if sums is not own:
            own.copy_(sums)

    return Collectives(dist.get_rank(group), dist.get_world_size(group), all_reduce_sum)


def combine(values: list[float], kind: int, group: dist.ProcessGroup | None) -> list[float]:
    """Each value combined over the ranks: COMBINE_SUM, COMBINE_MAX or COMBINE_MIN."""
    combined = torch.tensor(values, dtype=torch.float64, device=_device(group))
    dist.all_reduce(combined, op=_OPERATIONS[kind], group=group)
    return combined.tolist()
