# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""libbench.so: the memory floor, and the heap at its highest. bench.sh preloads it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from ctypes import c_int64, c_void_p

from rft import Registry
from rft._library import library

from batches import Batch, Outputs

_bench = ctypes.CDLL(os.environ["RFT_BENCH_LIBRARY"])
_bench.bench_floor.restype = None
_bench.bench_floor.argtypes = (*[c_void_p] * 7, c_int64)
_bench.bench_heap_watch.restype = None
_bench.bench_heap_peak.restype = c_int64


def floor(registry: Registry, batch: Batch, outputs: Outputs) -> Callable[[], None]:
    """One read of each input and one write of each output, with the registry's threads."""
    host = library().rft_registry_host
    host.restype, host.argtypes = c_void_p, (c_void_p,)
    arrays = (*batch.tensors(), outputs.gradient, outputs.mask)
    assert all(array.data_ptr() % 64 == 0 for array in arrays) and batch.tokens % 64 == 0
    addresses = [array.data_ptr() for array in arrays]
    function, given = _bench.bench_floor, (host(registry.handle), *addresses, batch.tokens)
    return lambda: function(*given)


def extra_memory(call: Callable[[], object]) -> int:
    """Bytes that a call holds at its highest, beyond those that were held before it."""
    call()  # what is allocated once and for all
    _bench.bench_heap_watch()
    result = call()
    peak = _bench.bench_heap_peak()
    del result
    return peak

