# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""tests/vectors, as tensors."""

from __future__ import annotations

import functools
import json
import math
import pathlib
import struct
from typing import Any

import torch

import rft

VECTORS = pathlib.Path(__file__).resolve().parent.parent / "vectors"


@functools.cache
def read_json(name: str) -> dict[str, Any]:
    return json.loads((VECTORS / name).read_text())


def golden_cases(*, error: bool) -> list[dict[str, Any]]:
    """Those that expect an error, or those that expect an answer."""
    cases = read_json("m2po_cases.json")["cases"]
    return [case for case in cases if ("error" in case["expect"]) == error]


def golden_values(case: dict[str, Any], name: str) -> list[float]:
    """JSON has neither NaN nor infinity: the file writes them as strings."""
    return [float(value) for value in case[name]]


@functools.cache
def recorded(file: str) -> dict[str, torch.Tensor]:
    """The tensors of a recorded batch: float32 or bool [128, 32]."""
    content = (VECTORS / file).read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    dtypes = {"F32": torch.float32, "BOOL": torch.bool}
    tensors = {}
    for name in ("logprob", "old_logprob", "advantages", "mask"):
        entry = header[name]
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        data = torch.frombuffer(bytearray(content[start:end]), dtype=dtypes[entry["dtype"]])
        tensors[name] = data.reshape(entry["shape"])
    return tensors


def rows(tensors: dict[str, torch.Tensor], first: int, last: int) -> rft.Batch:
    """Rows [first, last) as a micro-batch: views, no copies."""
    return rft.Batch(**{name: tensor[first:last] for name, tensor in tensors.items()})


def split(tensors: dict[str, torch.Tensor], size: int) -> list[rft.Batch]:
    """Micro-batches of `size` rows."""
    count = len(tensors["logprob"])
    return [rows(tensors, first, min(first + size, count)) for first in range(0, count, size)]


def close(value: float, expected: float, relative: float = 1e-6) -> bool:
    """An expected zero must be exactly zero."""
    return math.isfinite(value) and abs(value - expected) <= relative * abs(expected)
