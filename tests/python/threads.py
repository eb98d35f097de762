# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Ranks in one process."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import rft


class Threads:
    """A group whose ranks are threads; counts what it carries."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.words = 0
        self.reductions = 0
        self._barrier = threading.Barrier(size, timeout=30)
        self._given: list[list[int]] = [[] for _ in range(size)]

    def rank(self, rank: int) -> rft.Collectives:
        def all_reduce_sum(values: ctypes.Array[ctypes.c_int64]) -> None:
            self._given[rank] = list(values)
            self._barrier.wait()
            sums = [sum(column) for column in zip(*self._given)]
            self._barrier.wait()
            values[:] = [(value + 2**63) % 2**64 - 2**63 for value in sums]
            if rank == 0:
                self.words += len(values)
                self.reductions += 1

        return rft.Collectives(rank, self.size, all_reduce_sum)

    def run(self, work: Callable[[int, rft.Collectives], object]) -> list:
        """What each rank gives: a result, or the error that it raised."""

        def guarded(rank: int) -> object:
            try:
                return work(rank, self.rank(rank))
            except rft.RftError as problem:
                return problem

        with ThreadPoolExecutor(self.size) as threads:
            return list(threads.map(guarded, range(self.size)))
