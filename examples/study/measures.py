# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What a run came to, in a few numbers, and how far the seeds of a cell spread."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments import Cell, Experiment
from logs import Log, read
from store import Store

EVALUATIONS = 5  # whose mean is the accuracy at a time: a single one is noisy
REACHED = 0.8
FALL = 0.1  # an unstable run falls this far below its best, or ends


@dataclass(frozen=True)
class Measures:
    """Accuracies are held-out ones."""

    final: float  #: mean of the last evaluations; 0 where the run ended early
    fall: float  #: to it from the best such mean, or from the first evaluation
    over_run: float  #: mean of all evaluations: how fast it learns
    reached: int | None  #: first update with REACHED
    clipped: float  #: mean fraction of valid tokens
    masked: float  #: likewise
    ratio: float  #: the largest
    ended: int | None  #: after this update, by numbers that overflow
    seconds: float

    @property
    def dropped(self) -> float:
        return self.clipped + self.masked

    @property
    def unstable(self) -> bool:
        return self.ended is not None or self.fall > FALL


@dataclass(frozen=True)
class Result:
    """A cell with those of its runs that are there, by seed."""

    cell: Cell
    logs: dict[int, Log]
    measures: dict[int, Measures]

    @property
    def missing(self) -> list[str]:
        return [run.name for seed, run in enumerate(self.cell.runs) if seed not in self.logs]

    def values(self, name: str) -> list[float]:
        return [getattr(measures, name) for measures in self.measures.values()]


@dataclass(frozen=True)
class Spread:
    mean: float
    deviation: float | None  #: standard deviation; None of a single value
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), deviation, min(values), max(values))


def results(experiment: Experiment, store: Store) -> list[Result]:
    return [_result(cell, store) for cell in experiment.cells()]


def _result(cell: Cell, store: Store) -> Result:
    found = {seed: read(store, run) for seed, run in enumerate(cell.runs)}
    logs = {seed: log for seed, log in found.items() if log is not None}
    return Result(cell, logs, {seed: measure(log) for seed, log in logs.items()})


def measure(log: Log) -> Measures:
    accuracy = [value for _, value in log.curves["accuracy"]]
    ends = range(min(EVALUATIONS, len(accuracy)), len(accuracy) + 1)
    recent = [statistics.fmean(accuracy[max(0, end - EVALUATIONS) : end]) for end in ends]
    best = max(accuracy[0], *recent)
    final = 0.0 if log.ended else recent[-1]
    return Measures(
        final=final,
        fall=best - final,
        over_run=statistics.fmean(accuracy),
        reached=next((update for update, value in log.curves["accuracy"] if value >= REACHED), None),
        clipped=_mean_of(log, "clipped"),
        masked=_mean_of(log, "masked"),
        ratio=max(_values(log, "ratio"), default=0.0),
        ended=log.updates if log.ended else None,
        seconds=log.seconds,
    )


def _values(log: Log, curve: str) -> Iterable[float]:
    return (value for _, value in log.curves[curve])


def _mean_of(log: Log, curve: str) -> float:
    return statistics.fmean(_values(log, curve))
