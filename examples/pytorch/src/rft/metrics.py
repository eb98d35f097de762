# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The numbers that a loss reports, combined over micro-batches and ranks as it says (H12)."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import byref, c_double
from typing import TYPE_CHECKING, Any

from . import _abi
from ._library import library, text

if TYPE_CHECKING:
    import torch

    from .selection import Report

#: Bytes that tensors on a device cost, to the CPU and back.
COPIED_BYTES = "rft.copied_bytes"

Values = Any  # a ctypes array of double, [metric_count]


def new_values(table: _abi.PolicyLoss) -> Values:
    """Memory for every metric of a loss, each at its neutral value."""
    values = (c_double * table.metric_count)()
    library().rft_metrics_reset(byref(table), values)
    return values


class Metrics:
    """Metrics of one optimizer batch. `report`, of `PolicyLoss.select`, gives the first part;
    calls of the loss that are handed the object add theirs."""

    def __init__(self, table: _abi.PolicyLoss) -> None:
        self._table = table
        self._total = new_values(table)
        self._copied_bytes = 0

    def add(self, phase: int, part: Iterable[float], copied_bytes: int) -> None:
        """Folds in what one call wrote: `phase` is METRIC_SELECTION or METRIC_EVALUATE."""
        values = type(self._total)(*part)
        library().rft_metrics_combine(byref(self._table), phase, self._total, values)
        self._copied_bytes += copied_bytes

    def add_report(self, report: Report) -> None:
        """Folds in the metrics of a selection."""
        self.add(_abi.METRIC_SELECTION, report.values, int(report.metrics[COPIED_BYTES]))

    def all_reduce(self, group: torch.distributed.ProcessGroup | None) -> None:
        """Combines over the ranks of a process group, on every one of them. Once, at the end."""
        from .process_group import combine

        descriptors = [self._table.metrics[i].contents for i in range(self._table.metric_count)]
        for kind in (_abi.COMBINE_SUM, _abi.COMBINE_MAX, _abi.COMBINE_MIN):
            indices = [
                i
                for i, metric in enumerate(descriptors)
                if metric.phase == _abi.METRIC_EVALUATE and metric.combine == kind
            ]
            values = [self._total[i] for i in indices]
            if kind == _abi.COMBINE_SUM:
                values.append(float(self._copied_bytes))
            combined = combine(values, kind, group) if values else []
            if kind == _abi.COMBINE_SUM:
                self._copied_bytes = int(combined.pop())
            for i, value in zip(indices, combined):
                self._total[i] = value

    def as_dict(self, phase: int | None = None) -> dict[str, float]:
        """Every metric by name, ratios divided; of one phase, or all."""
        finished = type(self._total)(*self._total)
        library().rft_metrics_finish(byref(self._table), finished)
        named = {}
        for i in range(self._table.metric_count):
            metric = self._table.metrics[i].contents
            if phase in (None, metric.phase):
                named[text(metric.name)] = finished[i]
        named[COPIED_BYTES] = float(self._copied_bytes)
        return named
