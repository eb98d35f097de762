# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""librft_host, opened once, with the signatures of rft/host.h."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_void_p

from . import _abi
from .errors import Code, RftError

NATIVE = pathlib.Path(__file__).parent / "native"
PLUGINS = NATIVE / "plugins"

_ERROR = POINTER(_abi.Error)
_LOSS = POINTER(_abi.PolicyLoss)

# Functions that can fail; the error comes last and is left out.
_FALLIBLE: dict[str, tuple] = {
    "rft_registry_create": (POINTER(_abi.RegistryOptions), POINTER(c_void_p)),
    "rft_registry_scan": (c_void_p, c_char_p),
    "rft_registry_scan_default": (c_void_p,),
    "rft_registry_load": (c_void_p, c_char_p),
    "rft_registry_find_policy_loss": (c_void_p, c_char_p, POINTER(_LOSS)),
    "rft_config_resolve": (_LOSS, c_char_p, c_int64, POINTER(c_void_p)),
    "rft_preset_resolve": (c_void_p, c_char_p, c_char_p, POINTER(c_void_p)),
    "rft_instance_create": (c_void_p, _LOSS, c_char_p, c_int64, POINTER(c_void_p)),
}

_INFALLIBLE: dict[str, tuple] = {
    "rft_registry_destroy": (None, c_void_p),
    "rft_registry_plugin_count": (c_int64, c_void_p),
    "rft_registry_plugin": (POINTER(_abi.Plugin), c_void_p, c_int64),
    "rft_registry_plugin_path": (c_char_p, c_void_p, c_int64),
    "rft_registry_refusal_count": (c_int64, c_void_p),
    "rft_registry_refusal": (POINTER(_abi.RefusalStruct), c_void_p, c_int64),
    "rft_registry_one_pass": (POINTER(_abi.OnePass), c_void_p, _LOSS),
    "rft_string_free": (None, c_void_p),
    "rft_metrics_reset": (None, _LOSS, POINTER(c_double)),
    "rft_metrics_combine": (None, _LOSS, c_int32, POINTER(c_double), POINTER(c_double)),
    "rft_metrics_finish": (None, _LOSS, POINTER(c_double)),
    "rft_code_name": (c_char_p, c_int32),
}


def _open() -> ctypes.CDLL:
    # The variable is for source trees. It names a file, so that nothing is searched for.
    path = os.environ.get("RFT_HOST_LIBRARY") or str(NATIVE / "librft_host.so.1")
    if not os.path.isabs(path):
        raise RftError(
            Code.INVALID_ARGUMENT, f"RFT_HOST_LIBRARY: expected an absolute path, found {path!r}"
        )
    try:
        return ctypes.CDLL(path)
    except OSError as problem:
        raise RftError(
            Code.NOT_FOUND,
            f"librft_host cannot be loaded: {problem}. `pip install ./examples/pytorch` builds it; "
            "in a source tree RFT_HOST_LIBRARY names it",
        ) from problem


@functools.cache
def library() -> ctypes.CDLL:
    """The library. Raises RftError where it can't be loaded."""
    opened = _open()
    for name, arguments in _FALLIBLE.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = c_int32, (*arguments, _ERROR)
    for name, (result, *taken) in _INFALLIBLE.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, taken
    return opened


def call(function: Callable[..., int], *arguments: object) -> None:
    """Calls a C function that takes an rft_error last; raises RftError where it fails."""
    error = _abi.sized(_abi.Error)
    code = function(*arguments, byref(error))
    if code != Code.OK:
        raise RftError(code, text(error.message))


def text(value: bytes | None) -> str:
    """Text of the library's."""
    return (value or b"").decode("utf-8", "replace")


def take_text(pointer: c_void_p) -> str:
    """Text that is the caller's to free."""
    try:
        return text(ctypes.cast(pointer, c_char_p).value)
    finally:
        library().rft_string_free(pointer)
