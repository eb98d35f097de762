# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Measuring: everything that is compared takes turns, so that a slow moment hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

TURN_SECONDS = 0.02


@dataclass
class Contender:
    """Something to measure. A turn calls it until TURN_SECONDS are over; the turn's time is the
    median of its calls, less the first, which warms caches, where there are more."""

    name: str
    threads: int
    call: Callable[[], object]
    turns: list[float] = field(default_factory=list)  #: seconds

    def take_turn(self) -> None:
        torch.set_num_threads(self.threads)
        times: list[float] = []
        end = time.perf_counter() + TURN_SECONDS
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            self.call()
            times.append(time.perf_counter() - start)
        self.turns.append(statistics.median(times[1:] or times))

    @property
    def seconds(self) -> float:
        """The median turn."""
        return statistics.median(self.turns)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.turns) < 2:
            return self.seconds, self.seconds
        first, _, third = statistics.quantiles(self.turns, n=4, method="inclusive")
        return first, third

    @property
    def spread(self) -> float:
        """Distance of the quartiles from each other, as part of the median."""
        first, third = self.quartiles
        return (third - first) / self.seconds


def take_turns(contenders: Sequence[Contender], rounds: int, step: Callable[[], None]) -> None:
    """`step` is called after each turn."""
    for _ in range(rounds):
        for contender in contenders:
            contender.take_turn()
            step()
