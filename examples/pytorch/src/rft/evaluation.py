# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Loss and gradient of one micro-batch: alone, or with the selection in one call."""

from __future__ import annotations

from ctypes import byref, pointer
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _abi
from ._library import call
from .batch import Array, Batch, Borrowed
from .collectives import Collectives
from .errors import RftError
from .metrics import Metrics, new_values
from .selection import Reduction, Report, collectives_of, report_of
from .tensors import library_of

if TYPE_CHECKING:
    from .loss import PolicyLoss


@dataclass(frozen=True)
class Evaluation:
    """Loss and gradient of one micro-batch."""

    loss: float  #: this micro-batch's part: the parts add up to the optimizer batch's loss
    gradient: Array | None  #: d loss / d logprob, shape and place of logprob; float32 or float64


@dataclass(frozen=True)
class SelectedEvaluation:
    """What `PolicyLoss.select_evaluate` gives."""

    #: This rank's part. Of torch tensors the 0-D tensor that a call of the loss gives, to call
    #: backward() on; of NumPy arrays a float.
    loss: Any
    gradient: Array | None  #: as in Evaluation; None: logprob requires none, or autograd is off
    mask: Array  #: as in Selection
    report: Report  #: of the optimizer batch, over all ranks


class _Output:
    """Memory that the library writes an evaluation to. It is new for each call, and gone where the
    call fails, so that the call may leave anything there."""

    def __init__(self, loss: PolicyLoss, like: Array, gradient: bool, metrics: bool) -> None:
        self._arrays = library_of(like, "logprob")
        self._like = like
        self._gradient = self._arrays.new_gradient(like) if gradient else None
        self._view = None if not gradient else self._arrays.view(self._gradient, "gradient")
        self._values = new_values(loss.table) if metrics else None
        self.struct = _abi.sized(
            _abi.Output,
            gradient=None if self._view is None else pointer(self._view.tensor),
            metrics=self._values,
            metric_count=loss.table.metric_count if metrics else 0,
        )

    def take(self, metrics: Metrics | None, copied_bytes: int) -> Evaluation:
        """What was written. `copied_bytes`: what the inputs cost."""
        placed = None
        if self._gradient is not None:
            placed = self._arrays.from_host(self._gradient, self._like)
            copied_bytes += self._arrays.copied_bytes(placed)
        if metrics is not None:
            metrics.add(_abi.METRIC_EVALUATE, self._values, copied_bytes)
        return Evaluation(self.struct.loss, placed)


def evaluate(
    loss: PolicyLoss,
    batch: Batch,
    mask: Array | None,
    reduction: Reduction | None,
    metrics: Metrics | None,
    gradient: bool,
) -> Evaluation:
    """`PolicyLoss.evaluate`."""
    borrowed = Borrowed(batch, mask)
    output = _Output(loss, batch.logprob, gradient, metrics is not None)
    counts = _abi.sized(_abi.Reduction, **vars(reduction or Reduction()))
    call(
        loss.table.evaluate if loss.one_pass is None else loss.one_pass.evaluate,
        loss.handle,
        byref(borrowed.struct),
        borrowed.kept,
        byref(counts),
        byref(output.struct),
    )
    return output.take(metrics, borrowed.copied_bytes)


class _OnePass:
    """The arguments of the library's select_evaluate."""

    def __init__(self, loss: PolicyLoss, batch: Batch, gradient: bool, metrics: bool) -> None:
        self._loss = loss
        self._like = batch.logprob
        self._borrowed = Borrowed(batch)
        self._arrays = library_of(batch.logprob, "logprob")
        self._mask = self._arrays.new_mask(batch.logprob)
        self._output = _Output(loss, batch.logprob, gradient, metrics)

    def run(
        self, collectives: Collectives | None, scale: float, metrics: Metrics | None
    ) -> SelectedEvaluation:
        view = self._arrays.view(self._mask, "mask")
        values = new_values(self._loss.table)
        counts = _abi.sized(
            _abi.SelectionReport, metrics=values, metric_count=self._loss.table.metric_count
        )
        call(
            self._loss.one_pass.select_evaluate,
            self._loss.handle,
            byref(self._borrowed.struct),
            None if collectives is None else byref(collectives.struct),
            scale,
            view.pointer,
            byref(counts),
            byref(self._output.struct),
        )
        mask = self._arrays.from_host(self._mask, self._like)
        copied_bytes = self._borrowed.copied_bytes + self._arrays.copied_bytes(mask)
        report = report_of(self._loss.table, counts, values, copied_bytes)
        if metrics is not None:
            metrics.add_report(report)
        found = self._output.take(metrics, 0)
        return SelectedEvaluation(found.loss, found.gradient, mask, report)


def _fail(loss: PolicyLoss, collectives: Collectives) -> None:
    """Takes part in the call as a rank that has failed, so that the others hear of it (P17)."""
    batch, report = _abi.sized(_abi.Batch), _abi.sized(_abi.SelectionReport)
    output = _abi.sized(_abi.Output)
    loss.one_pass.select_evaluate(
        loss.handle,
        byref(batch),
        byref(collectives.struct),
        1.0,
        None,
        byref(report),
        byref(output),
        None,
    )


def _select_then_evaluate(
    loss: PolicyLoss,
    batch: Batch,
    group: Any,
    scale: float,
    metrics: Metrics | None,
    gradient: bool,
) -> SelectedEvaluation:
    """For a plugin or a loss that has no function for both."""
    (mask,), report = loss.select([batch], group)
    if metrics is not None:
        metrics.add_report(report)
    found = evaluate(loss, batch, mask, report.reduction(scale), metrics, gradient)
    return SelectedEvaluation(found.loss, found.gradient, mask, report)


def select_evaluate(
    loss: PolicyLoss,
    batch: Batch,
    group: Any,
    scale: float,
    metrics: Metrics | None,
    gradient: bool,
) -> SelectedEvaluation:
    """`PolicyLoss.select_evaluate`, with a float for the loss."""
    if loss.one_pass is None or not loss.table.selection_begin:
        return _select_then_evaluate(loss, batch, group, scale, metrics, gradient)
    collectives = collectives_of(loss, group)
    try:
        arguments = _OnePass(loss, batch, gradient, metrics is not None)
    except Exception:
        if collectives is not None:
            _fail(loss, collectives)
        raise
    try:
        return arguments.run(collectives, scale, metrics)
    except RftError as failure:
        raise failure if collectives is None else collectives.explain(failure)
