# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Arrays as rft_tensor, without a copy. torch and NumPy each have a module that knows how.

An array library is a module with the functions of numpy_arrays.py.
"""

from __future__ import annotations

import sys
from ctypes import byref, c_int64
from types import ModuleType
from typing import Any

from . import _abi
from .errors import Code, RftError


class View:
    """An rft_tensor over the memory of `owner`, which it keeps alive.

    `strides` count elements. `tensor` goes into structs, by pointer.
    """

    def __init__(
        self,
        owner: object,
        address: int,
        dtype: tuple[int, int],
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        sizes = c_int64 * len(shape)
        code, bits = dtype
        self._owner = owner
        self.tensor = _abi.Tensor(
            data=address,
            device=_abi.Device(_abi.DEVICE_CPU, 0),
            ndim=len(shape),
            dtype=_abi.Dtype(code, bits, 1),
            shape=sizes(*shape),
            strides=sizes(*strides),
        )

    @property
    def pointer(self) -> Any:
        """For a call."""
        return byref(self.tensor)


def is_torch(array: object) -> bool:
    """Is it a torch.Tensor? Does not import torch: whoever has a tensor has done so."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def library_of(array: object, name: str) -> ModuleType:
    """The module that knows arrays of this kind; `name` is for the message."""
    if is_torch(array):
        from . import torch_arrays

        return torch_arrays
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ndarray):
        from . import numpy_arrays

        return numpy_arrays
    raise unusable(name, "a torch.Tensor or numpy.ndarray", type(array).__name__)


def unusable(name: str, expected: str, found: object) -> RftError:
    """The error for an array that can't be passed on."""
    return RftError(Code.INVALID_ARGUMENT, f"{name}: expected {expected}, found {found}")
