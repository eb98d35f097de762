# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Logs of rft-train as curves: a value for each EVALUATE_EVERY updates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from experiments import EVALUATE_EVERY, Run
from runs import UNSTABLE
from store import Store

Curve = list[tuple[int, float]]  # update, value


@dataclass(frozen=True)
class Log:
    run: Run
    updates: int
    seconds: float
    build: dict[str, str]
    ended: bool  #: by numbers that overflow
    curves: dict[str, Curve]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


#: Curve to the value at one update, and how those of EVALUATE_EVERY updates become one.
_CURVES: dict[str, tuple[Callable[[dict[str, Any]], Any], Callable[[Sequence[float]], float]]] = {
    "clipped": (lambda line: line["metrics"]["clip_fraction"], _mean),
    "masked": (lambda line: line["metrics"]["masked_fraction"], _mean),
    "ratio": (lambda line: line["metrics"]["ratio_max"], max),
    "gradient": (lambda line: line["gradient_norm"], max),
}


def read(store: Store, run: Run) -> Log | None:
    """None where the log is missing, or was made with other settings."""
    record = store.record(run.name)
    if record is None or record["made_with"]["settings"] != run.settings:
        return None
    with store.path(run.name).open() as file:
        lines = [json.loads(line) for line in file]
    ended = record["outcome"] == UNSTABLE
    curves = {name: _curve(lines, *how) for name, how in _CURVES.items()}
    curves["accuracy"] = list(_accuracy(lines, run.updates if ended else 0))
    curves["dropped"] = [(at, a + b) for (at, a), (_, b) in zip(curves["clipped"], curves["masked"])]
    return Log(run, record["updates"], record["seconds"], record["made_with"]["build"], ended, curves)


def _accuracy(lines: Iterable[dict[str, Any]], until: int) -> Iterator[tuple[int, float]]:
    """A policy that overflowed answers nothing right from then on."""
    last = 0
    for line in lines:
        last = line["update"]
        if "accuracy" in line:
            yield last, line["accuracy"]
    first_missing = (last // EVALUATE_EVERY + 1) * EVALUATE_EVERY
    for update in range(first_missing, until + 1, EVALUATE_EVERY):
        yield update, 0.0


def _curve(lines: Sequence[dict[str, Any]], value: Callable, combine: Callable) -> Curve:
    """rft-train writes null for what is not finite: no point then."""
    curve = []
    for begin in range(0, len(lines), EVALUATE_EVERY):
        part = lines[begin : begin + EVALUATE_EVERY]
        values = [found for found in map(value, part) if found is not None]
        if values:
            curve.append((part[-1]["update"], combine(values)))
    return curve
