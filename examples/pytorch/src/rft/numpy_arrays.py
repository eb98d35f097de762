# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""NumPy's arrays."""

from __future__ import annotations

import numpy

from . import _abi
from .tensors import View, unusable

_CODES = {
    "b": _abi.DTYPE_BOOL,
    "i": _abi.DTYPE_INT,
    "u": _abi.DTYPE_UINT,
    "f": _abi.DTYPE_FLOAT,
}


def _dtype(array: numpy.ndarray, name: str) -> tuple[int, int]:
    bits = 8 * array.dtype.itemsize
    if array.dtype.name == "bfloat16":  # of ml_dtypes, whose kind is V
        return _abi.DTYPE_BFLOAT, bits
    if array.dtype.kind not in _CODES or not array.dtype.isnative:
        raise unusable(name, "bool, integers or floats in the machine's byte order", array.dtype)
    return _CODES[array.dtype.kind], bits


def view(array: numpy.ndarray, name: str) -> View:
    """The array as the library sees it. Strides of any sign."""
    size = array.dtype.itemsize
    dtype = _dtype(array, name)
    if any(stride % size for stride in array.strides):
        raise unusable(name, f"strides that are multiples of {size} bytes", array.strides)
    strides = tuple(stride // size for stride in array.strides)
    return View(array, array.__array_interface__["data"][0], dtype, array.shape, strides)


def to_host(array: numpy.ndarray) -> numpy.ndarray:
    """The array in the CPU's memory: itself."""
    return array


def wait_for(_arrays: list[numpy.ndarray]) -> None:
    """Returns when the copies of to_host are complete."""


def from_host(array: numpy.ndarray, _like: numpy.ndarray) -> numpy.ndarray:
    """An array made by new_mask or new_gradient, where `like` is."""
    return array


def copied_bytes(_array: numpy.ndarray) -> int:
    """What to_host or from_host copies."""
    return 0


def new_mask(like: numpy.ndarray) -> numpy.ndarray:
    """Memory for a mask of the shape of `like`: bool."""
    return numpy.empty(like.shape, dtype=bool)


def new_gradient(like: numpy.ndarray) -> numpy.ndarray:
    """Memory for the gradient of `like`: float64 for float64, else float32."""
    wide = like.dtype == numpy.float64
    return numpy.empty(like.shape, dtype=numpy.float64 if wide else numpy.float32)
