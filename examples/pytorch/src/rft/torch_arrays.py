# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""torch's tensors. Those on a device go through page-locked memory, one copy each way."""

from __future__ import annotations

import torch

from . import _abi
from .tensors import View, unusable

_DTYPES = {
    torch.bool: (_abi.DTYPE_BOOL, 8),
    torch.uint8: (_abi.DTYPE_UINT, 8),
    torch.int8: (_abi.DTYPE_INT, 8),
    torch.int16: (_abi.DTYPE_INT, 16),
    torch.int32: (_abi.DTYPE_INT, 32),
    torch.int64: (_abi.DTYPE_INT, 64),
    torch.float16: (_abi.DTYPE_FLOAT, 16),
    torch.bfloat16: (_abi.DTYPE_BFLOAT, 16),
    torch.float32: (_abi.DTYPE_FLOAT, 32),
    torch.float64: (_abi.DTYPE_FLOAT, 64),
}


def _check(tensor: torch.Tensor, name: str) -> None:
    if tensor.dtype not in _DTYPES:
        raise unusable(name, "bool, integers or floats", tensor.dtype)
    if tensor.layout != torch.strided or tensor.is_nested:
        found = "a nested one" if tensor.is_nested else tensor.layout
        raise unusable(name, "a dense tensor", found)
    if tensor.device.type == "meta":
        raise unusable(name, "a tensor with data", "one on the meta device")


def view(tensor: torch.Tensor, name: str) -> View:
    """The tensor as the library sees it. It has to be in the CPU's memory."""
    _check(tensor, name)
    # A conjugate's imaginary part is a view whose numbers are stored with the other sign.
    tensor = tensor.detach().resolve_neg()
    return View(
        tensor, tensor.data_ptr(), _DTYPES[tensor.dtype], tuple(tensor.shape), tensor.stride()
    )


def _host_memory(like: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(tuple(like.shape), dtype=dtype, device="cpu", pin_memory=like.is_cuda)


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in the CPU's memory: itself, or a copy under way (wait_for)."""
    if tensor.device.type in ("cpu", "meta"):
        return tensor
    return _host_memory(tensor, tensor.dtype).copy_(tensor.detach(), non_blocking=tensor.is_cuda)


def wait_for(tensors: list[torch.Tensor]) -> None:
    """Returns when the copies of these tensors by to_host are complete."""
    for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
        torch.cuda.current_stream(device).synchronize()


def from_host(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A tensor made by new_mask or new_gradient, where `like` is."""
    return tensor.to(like.device, non_blocking=like.is_cuda)


def copied_bytes(tensor: torch.Tensor) -> int:
    """What to_host or from_host copies."""
    on_host = tensor.device.type in ("cpu", "meta")
    return 0 if on_host else tensor.numel() * tensor.element_size()


def new_mask(like: torch.Tensor) -> torch.Tensor:
    """Memory for a mask of the shape of `like`: bool."""
    return _host_memory(like, torch.bool)


def new_gradient(like: torch.Tensor) -> torch.Tensor:
    """Memory for the gradient of `like`: float64 for float64, else float32.

    Not of 16 bits: a gradient divided by many tokens would underflow before a loss scale is on it.
    """
    return _host_memory(like, torch.float64 if like.dtype == torch.float64 else torch.float32)
