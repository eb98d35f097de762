# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The structs of rft/tensor.h, rft/plugin.h and rft/host.h, which say what the fields mean."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)

DEVICE_CPU = 1

DTYPE_INT = 0
DTYPE_UINT = 1
DTYPE_FLOAT = 2
DTYPE_BFLOAT = 4
DTYPE_BOOL = 6

LOSS_COLLECTIVES = 1
LOSS_PROXIMAL = 2

METRIC_SELECTION = 1
METRIC_EVALUATE = 2

COMBINE_NONE = 0
COMBINE_SUM = 1
COMBINE_MAX = 2
COMBINE_MIN = 3
COMBINE_RATIO = 4

ERROR_MESSAGE_SIZE = 512


def sized(struct: type[ctypes.Structure], **fields: object) -> ctypes.Structure:
    """A zeroed struct that says its size (P1), with `fields` set."""
    made = struct(**fields)
    made.struct_size = end_of_last_field(struct)
    return made


def end_of_last_field(struct: type[ctypes.Structure]) -> int:
    """What struct_size holds: no padding at the end counts."""
    last = getattr(struct, struct._fields_[-1][0])
    return last.offset + last.size


class Device(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class Dtype(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", Device),
        ("ndim", c_int32),
        ("dtype", Dtype),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Error(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("code", c_int32),
        ("message", c_char * ERROR_MESSAGE_SIZE),
    ]


class Collectives(ctypes.Structure):
    pass


AllReduceSum = CFUNCTYPE(c_int32, POINTER(Collectives), POINTER(c_uint64), c_int64, POINTER(Error))

Collectives._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("rank", c_int64),
    ("size", c_int64),
    ("data", c_void_p),
    ("all_reduce_sum", AllReduceSum),
]


class Batch(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("logprob", POINTER(Tensor)),
        ("old_logprob", POINTER(Tensor)),
        ("proximal_logprob", POINTER(Tensor)),
        ("advantages", POINTER(Tensor)),
        ("mask", POINTER(Tensor)),
        ("cu_seqlens", POINTER(Tensor)),
        ("stream", c_void_p),
    ]


class Reduction(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("valid_tokens", c_int64),
        ("kept_tokens", c_int64),
        ("sequences", c_int64),
        ("scale", c_double),
    ]


class Output(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("loss", c_double),
        ("gradient", POINTER(Tensor)),
        ("metrics", POINTER(c_double)),
        ("metric_count", c_int64),
    ]


class SelectionReport(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("valid_tokens", c_int64),
        ("kept_tokens", c_int64),
        ("sequences", c_int64),
        ("metrics", POINTER(c_double)),
        ("metric_count", c_int64),
    ]


class Metric(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("phase", c_int32),
        ("name", c_char_p),
        ("description", c_char_p),
        ("numerator", c_int64),
        ("denominator", c_int64),
        ("combine", c_int32),
        ("reserved", c_uint32),
    ]


class PolicyLoss(ctypes.Structure):
    pass


Evaluate = CFUNCTYPE(
    c_int32,
    c_void_p,
    POINTER(Batch),
    POINTER(Tensor),
    POINTER(Reduction),
    POINTER(Output),
    POINTER(Error),
)

PolicyLoss._fields_ = [
    ("struct_size", c_uint32),
    ("reserved", c_uint32),
    ("capabilities", c_uint64),
    ("name", c_char_p),
    ("description", c_char_p),
    ("config_schema", c_char_p),
    ("metrics", POINTER(POINTER(Metric))),
    ("metric_count", c_int64),
    (
        "create",
        CFUNCTYPE(
            c_int32,
            POINTER(PolicyLoss),
            c_void_p,
            c_char_p,
            c_int64,
            POINTER(c_void_p),
            POINTER(Error),
        ),
    ),
    ("destroy", CFUNCTYPE(None, c_void_p)),
    ("selection_begin", CFUNCTYPE(c_int32, c_void_p, POINTER(c_void_p), POINTER(Error))),
    ("selection_add", CFUNCTYPE(c_int32, c_void_p, POINTER(Batch), POINTER(Error))),
    (
        "selection_finish",
        CFUNCTYPE(
            c_int32, c_void_p, POINTER(Collectives), POINTER(SelectionReport), POINTER(Error)
        ),
    ),
    ("selection_mask", CFUNCTYPE(c_int32, c_void_p, c_int64, POINTER(Tensor), POINTER(Error))),
    ("selection_end", CFUNCTYPE(None, c_void_p)),
    ("evaluate", Evaluate),
]


class OnePass(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("evaluate", Evaluate),
        (
            "select_evaluate",
            CFUNCTYPE(
                c_int32,
                c_void_p,
                POINTER(Batch),
                POINTER(Collectives),
                c_double,
                POINTER(Tensor),
                POINTER(SelectionReport),
                POINTER(Output),
                POINTER(Error),
            ),
        ),
    ]


class AlgorithmPreset(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char_p),
        ("description", c_char_p),
        ("document", c_char_p),
    ]


class Plugin(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi_minor", c_uint32),
        ("id", c_char_p),
        ("version", c_char_p),
        ("description", c_char_p),
        ("policy_losses", POINTER(POINTER(PolicyLoss))),
        ("policy_loss_count", c_int64),
        ("algorithm_presets", POINTER(POINTER(AlgorithmPreset))),
        ("algorithm_preset_count", c_int64),
        ("get_extension", CFUNCTYPE(c_void_p, c_char_p)),
    ]


LogSink = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class RegistryOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("threads", c_int32),
        ("name", c_char_p),
        ("version", c_char_p),
        ("log", LogSink),
        ("log_context", c_void_p),
        ("probe_timeout_ms", c_int32),
        ("reserved", c_uint32),
    ]


class RefusalStruct(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("reason", c_char_p), ("code", c_int32)]
