# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The plugin as a C host calls it: structs prepared once, buffers kept, nothing else in a call."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_double, c_void_p

import rft
from rft import _abi
from rft._library import text
from rft.batch import Borrowed
from rft.errors import Code, RftError
from rft.torch_arrays import view

from batches import Batch, Outputs

#: Instruction sets that the plugin has kernels for, best first.
TARGETS = ("avx512", "avx2", "baseline")

Call = Callable[[], None]


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


class Plugin:
    """The loss m2po with its defaults, for each instruction set, with `threads` threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.registry = rft.Registry([os.environ["RFT_PLUGIN_PATH"]], threads=threads)
        self.losses = dict(self._losses())

    def _losses(self) -> Iterator[tuple[str, rft.PolicyLoss]]:
        for target in TARGETS:
            with _environment("M2PO_TARGET", target):
                try:
                    yield target, rft.PolicyLoss.from_preset("m2po", registry=self.registry)
                except RftError as problem:
                    if problem.code != Code.INVALID_ARGUMENT:  # not on this processor
                        raise

    @property
    def best(self) -> str:
        return next(iter(self.losses))

    def one_pass(self, target: str, batch: Prepared) -> Call:
        """Mask, loss and gradient by rft_one_pass.select_evaluate."""
        loss = self.losses[target]
        function, given = loss.one_pass.select_evaluate, (
            loss.handle,
            byref(batch.batch),
            None,
            0.0,
            byref(batch.mask),
            byref(batch.report),
            byref(batch.output),
            byref(batch.error),
        )
        return lambda: batch.check(function(*given))

    def separate(self, target: str, batch: Prepared) -> Call:
        """The same by the functions that take many micro-batches, with one."""
        loss = self.losses[target]
        table, selection, error = loss.table, c_void_p(), byref(batch.error)
        begin, add, finish = table.selection_begin, table.selection_add, table.selection_finish
        mask, end, evaluate = table.selection_mask, table.selection_end, table.evaluate
        counts = _abi.sized(_abi.Reduction)

        def call() -> None:
            batch.check(begin(loss.handle, byref(selection), error))
            batch.check(add(selection, byref(batch.batch), error))
            batch.check(finish(selection, None, byref(batch.report), error))
            batch.check(mask(selection, 0, byref(batch.mask), error))
            end(selection)
            for name in ("valid_tokens", "kept_tokens", "sequences"):
                setattr(counts, name, getattr(batch.report, name))
            given = (byref(batch.mask), byref(counts), byref(batch.output), error)
            batch.check(evaluate(loss.handle, byref(batch.batch), *given))

        return call


class Prepared:
    """A batch and the buffers for its results, as the ABI wants them."""

    def __init__(
        self,
        plugin: Plugin,
        batch: Batch,
        outputs: Outputs,
        cu_seqlens: object = None,
        metrics: bool = False,
    ) -> None:
        self._borrowed = Borrowed(rft.Batch(*batch.tensors(), cu_seqlens=cu_seqlens))
        self.batch = self._borrowed.struct
        self._mask, self._gradient = view(outputs.mask, "mask"), view(outputs.gradient, "gradient")
        self.mask = self._mask.tensor
        table = plugin.losses[plugin.best].table
        self.values = (c_double * table.metric_count)()
        wanted = {"metrics": self.values, "metric_count": table.metric_count} if metrics else {}
        self.report = _abi.sized(_abi.SelectionReport, **wanted)
        gradient = ctypes.pointer(self._gradient.tensor)
        self.output = _abi.sized(_abi.Output, gradient=gradient, **wanted)
        self.error = _abi.sized(_abi.Error)

    def check(self, code: int) -> None:
        if code != Code.OK:
            raise RftError(code, text(self.error.message))
