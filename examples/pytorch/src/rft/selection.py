# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The selection of one optimizer batch: which tokens stay."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from ctypes import byref, c_int64, c_void_p
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import call
from .batch import Array, Batch, Borrowed
from .collectives import Collectives
from .errors import Code, RftError
from .metrics import Metrics, Values, new_values
from .tensors import library_of

if TYPE_CHECKING:
    from .loss import PolicyLoss


class Alone:
    """The type of ALONE."""

    def __repr__(self) -> str:
        return "rft.ALONE"


#: For `select`: this process's batches are the whole optimizer batch, whoever else is running.
ALONE = Alone()


@dataclass(frozen=True)
class Reduction:
    """What a mean over the optimizer batch divides by: counts over all its micro-batches and ranks.

    0: the call of the loss counts its own micro-batch. `scale` is a factor on loss and gradient:
    whoever averages gradients over data-parallel ranks gives their number.
    """

    valid_tokens: int = 0  #: tokens whose mask is set, before any selection
    kept_tokens: int = 0  #: of these, tokens that the selection keeps
    sequences: int = 0  #: sequences with at least one valid token
    scale: float = 1.0


@dataclass(frozen=True)
class Report:
    """What a selection says of the optimizer batch, over all ranks."""

    valid_tokens: int
    kept_tokens: int
    sequences: int
    metrics: dict[str, float]  #: of the selection, and rft.copied_bytes, which is this rank's
    values: tuple[float, ...] = field(repr=False)  #: the same, as the library orders them

    def reduction(self, scale: float = 1.0) -> Reduction:
        """What to call the loss with."""
        return Reduction(self.valid_tokens, self.kept_tokens, self.sequences, scale)


class Selection(NamedTuple):
    """`masks[k]`: bool, True for a kept token; shape and place of the k-th micro-batch's logprob."""

    masks: list[Array]
    report: Report


def group_of(group: Any) -> Collectives | None:
    """The collectives for an argument of `select`; None: this process alone."""
    if isinstance(group, Collectives):
        return group
    if group is ALONE:
        return None
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available():
        if group is not None:
            raise RftError(
                Code.INVALID_ARGUMENT, f"group: torch.distributed is not here for {group!r}"
            )
        return None
    from . import process_group

    if group is not None:
        return process_group.collectives_of(group)
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    if ranks > 1:
        # A selection of each rank for itself is another one, and no number would show it (H10).
        raise RftError(
            Code.INVALID_ARGUMENT,
            f"group: {ranks} ranks are at work: expected the process group of the data-parallel "
            "ranks whose tokens form the optimizer batch, or rft.ALONE, found None",
        )
    return None


def collectives_of(loss: PolicyLoss, group: Any) -> Collectives | None:
    """The collectives for a call of a loss, which has to be able to use them."""
    collectives = group_of(group)
    if (
        collectives is not None
        and collectives.size > 1
        and loss.table.selection_begin
        and not loss.table.capabilities & _abi.LOSS_COLLECTIVES
    ):
        raise RftError(
            Code.UNIMPLEMENTED,
            f"policy loss {loss.name} selects in one process only: expected a group of 1 rank, "
            f"found {collectives.size}",
        )
    return collectives


class _Running:
    """A selection between begin and end."""

    def __init__(self, loss: PolicyLoss) -> None:
        self._table = loss.table
        self._handle = c_void_p()
        self._likes: list[Array] = []
        self._copied_bytes = 0
        call(self._table.selection_begin, loss.handle, byref(self._handle))

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *_problem: object) -> None:
        self._table.selection_end(self._handle)

    def add(self, batch: Batch) -> None:
        borrowed = Borrowed(batch)
        call(self._table.selection_add, self._handle, byref(borrowed.struct))
        self._likes.append(batch.logprob)
        self._copied_bytes += borrowed.copied_bytes

    def fail(self) -> None:
        """Makes the selection one that has failed, whose finish tells the other ranks (P17)."""
        empty = _abi.sized(_abi.Batch)
        self._table.selection_add(self._handle, byref(empty), None)

    def finish(self, collectives: Collectives | None) -> Selection:
        values = new_values(self._table)
        report = _abi.sized(
            _abi.SelectionReport, metrics=values, metric_count=self._table.metric_count
        )
        struct = None if collectives is None else byref(collectives.struct)
        call(self._table.selection_finish, self._handle, struct, byref(report))
        masks = [self._mask(k) for k in range(len(self._likes))]
        return Selection(masks, report_of(self._table, report, values, self._copied_bytes))

    def _mask(self, index: int) -> Array:
        like = self._likes[index]
        arrays = library_of(like, "logprob")
        mask = arrays.new_mask(like)
        view = arrays.view(mask, "mask")
        call(self._table.selection_mask, self._handle, c_int64(index), view.pointer)
        placed = arrays.from_host(mask, like)
        self._copied_bytes += arrays.copied_bytes(placed)
        return placed


def report_of(table: _abi.PolicyLoss, counts: Any, values: Values, copied_bytes: int) -> Report:
    """The report of a selection: its counts, and the values of its metrics."""
    metrics = Metrics(table)
    metrics.add(_abi.METRIC_SELECTION, values, copied_bytes)
    return Report(
        valid_tokens=counts.valid_tokens,
        kept_tokens=counts.kept_tokens,
        sequences=counts.sequences,
        metrics=metrics.as_dict(_abi.METRIC_SELECTION),
        values=tuple(values),
    )


def select(
    loss: PolicyLoss, batches: Iterable[Batch], collectives: Collectives | None
) -> Selection:
    """The selection of a loss that has one; `PolicyLoss.select` says what it does."""
    with _Running(loss) as running:
        problem: Exception | None = None
        try:
            for batch in batches:
                running.add(batch)
        except Exception as found:
            problem = found
            running.fail()
        if problem is not None and collectives is None:
            raise problem
        try:
            selection = running.finish(collectives)
        except RftError as failure:
            if problem is None:
                raise failure if collectives is None else collectives.explain(failure)
        if problem is not None:
            raise problem
        return selection


def keep_all(
    loss: PolicyLoss, batches: Iterable[Batch], collectives: Collectives | None
) -> Selection:
    """For a loss that selects nothing: every valid token stays, and the host counts."""
    masks: list[Array] = []
    counts = _abi.SelectionReport()
    problem: Exception | None = None
    try:
        for batch in batches:
            masks.append(batch.mask != 0)
            counts.valid_tokens += int(masks[-1].sum())
            counts.sequences += _sequences(masks[-1], batch.cu_seqlens)
    except Exception as found:
        problem = found
    if collectives is not None:
        failed, counts.valid_tokens, counts.sequences = collectives.sum(
            [int(problem is not None), counts.valid_tokens, counts.sequences]
        )
        if failed and problem is None:
            raise RftError(
                Code.ABORTED,
                f"select: a micro-batch could not be read on {failed} of {collectives.size} ranks; "
                "their errors say why",
            )
    if problem is not None:
        raise problem
    counts.kept_tokens = counts.valid_tokens
    return Selection(masks, report_of(loss.table, counts, new_values(loss.table), 0))


def _sequences(valid: Array, cu_seqlens: Array | None) -> int:
    """Sequences with a valid token."""
    if valid.ndim == 2:
        return int(valid.any(1).sum())
    if cu_seqlens is None:
        return int(valid.any())
    before = [0, *valid.cumsum(0).tolist()]
    ends = [before[end] for end in cu_seqlens.tolist()]
    return sum(left < right for left, right in zip(ends, ends[1:]))
