# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The service rft.host.collectives/1: a sum over the ranks that share an optimizer batch."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

from . import _abi
from .errors import Code, RftError

#: Adds, in place, over the ranks. The array holds int64: sums modulo 2^64 are the same bits for
#: signed and unsigned numbers.
AllReduceSum = Callable[["ctypes.Array[ctypes.c_int64]"], None]


class Collectives:
    """A group of ranks. `select` makes one of a torch.distributed process group; another transport
    gives `rank`, `size` and `all_reduce_sum`, which every rank calls with arrays of one length."""

    def __init__(self, rank: int, size: int, all_reduce_sum: AllReduceSum) -> None:
        self.rank = rank
        self.size = size
        self._all_reduce_sum = all_reduce_sum
        self._failure: BaseException | None = None
        # Part of the object: the library calls it as long as the struct is used. It does not keep the
        # object, so that a group's threads end with the last use of it, not when garbage is
        # collected: at the end of a process that is too late.
        weak = weakref.WeakMethod(self._call)
        self._callback = _abi.AllReduceSum(lambda *arguments: weak()(*arguments))
        self.struct = _abi.sized(
            _abi.Collectives, rank=rank, size=size, all_reduce_sum=self._callback
        )

    def sum(self, values: list[int]) -> list[int]:
        """The sums over the ranks, each below 2^63."""
        array = (ctypes.c_int64 * len(values))(*values)
        try:
            self._all_reduce_sum(array)
        except Exception as problem:
            raise self._error(problem) from problem
        return list(array)

    def explain(self, problem: RftError) -> BaseException:
        """What to raise where the library failed with `problem`: a transport that has failed is the
        cause, and what is no error (KeyboardInterrupt) goes its way."""
        failure, self._failure = self._failure, None
        if failure is None:
            return problem
        if not isinstance(failure, Exception):
            return failure
        problem.__cause__ = failure
        return problem

    def _call(self, _struct: Any, values: Any, count: int, error: Any) -> int:
        # An exception can't cross C: its text goes as an error, itself waits for `explain`.
        try:
            address = ctypes.addressof(values.contents)
            self._all_reduce_sum((ctypes.c_int64 * count).from_address(address))
        except BaseException as problem:
            self._failure = problem
            if error:
                error.contents.code = Code.UNAVAILABLE
                error.contents.message = _fit(self._error(problem).message)
            return Code.UNAVAILABLE
        return Code.OK

    def _error(self, problem: BaseException) -> RftError:
        where = f"all_reduce_sum on rank {self.rank} of {self.size}"
        return RftError(Code.UNAVAILABLE, f"{where}: {type(problem).__name__}: {problem}")


def _fit(message: str) -> bytes:
    """As much of it as an rft_error holds, in whole characters."""
    room = _abi.ERROR_MESSAGE_SIZE - 1
    return message.encode()[:room].decode("utf-8", "ignore").encode()
