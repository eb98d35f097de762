# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The structs of rft/_abi.py are those of the headers."""

from __future__ import annotations

import ctypes
import os
import subprocess

import pytest

from rft import _abi
from rft._library import library
from rft.errors import Code

STRUCTS = {
    "rft_device": _abi.Device,
    "rft_dtype": _abi.Dtype,
    "rft_tensor": _abi.Tensor,
    "rft_error": _abi.Error,
    "rft_collectives": _abi.Collectives,
    "rft_batch": _abi.Batch,
    "rft_reduction": _abi.Reduction,
    "rft_output": _abi.Output,
    "rft_selection_report": _abi.SelectionReport,
    "rft_metric": _abi.Metric,
    "rft_policy_loss": _abi.PolicyLoss,
    "rft_one_pass": _abi.OnePass,
    "rft_algorithm_preset": _abi.AlgorithmPreset,
    "rft_plugin": _abi.Plugin,
    "rft_registry_options": _abi.RegistryOptions,
    "rft_refusal": _abi.RefusalStruct,
}

CONSTANTS = (
    "DEVICE_CPU",
    "DTYPE_INT",
    "DTYPE_UINT",
    "DTYPE_FLOAT",
    "DTYPE_BFLOAT",
    "DTYPE_BOOL",
    "LOSS_COLLECTIVES",
    "LOSS_PROXIMAL",
    "METRIC_SELECTION",
    "METRIC_EVALUATE",
    "COMBINE_NONE",
    "COMBINE_SUM",
    "COMBINE_MAX",
    "COMBINE_MIN",
    "COMBINE_RATIO",
    "ERROR_MESSAGE_SIZE",
)


def _probe() -> str:
    """A C program that prints what the headers say."""
    lines = [
        '#include "rft/host.h"',
        "#include <stdio.h>",
        "#include <stddef.h>",
        "int main(void) {",
    ]
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in struct._fields_:
            size = f"sizeof((({name} *)0)->{field})"
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), {size});')
    for name in CONSTANTS:
        lines.append(f'printf("{name} %llu\\n", (unsigned long long)RFT_{name});')
    return "\n".join([*lines, "return 0; }"])


@pytest.fixture(scope="module")
def headers(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("layout")
    (folder / "probe.c").write_text(_probe())
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-Iabi/include", "-o", folder / "probe", folder / "probe.c"]
    subprocess.run(command, check=True)
    return subprocess.run(
        [folder / "probe"], check=True, capture_output=True, text=True
    ).stdout.split("\n")


@pytest.mark.parametrize("name", STRUCTS)
def test_a_struct_has_the_size_and_offsets_of_the_header(headers, name) -> None:
    struct = STRUCTS[name]
    expected = [f"{name} {ctypes.sizeof(struct)}"]
    for field, *_ in struct._fields_:
        where = getattr(struct, field)
        expected.append(f"{name}.{field} {where.offset} {where.size}")
    found = [line for line in headers if line.split(" ")[0].split(".")[0] == name]
    assert found == expected


def test_constants_are_those_of_the_header(headers) -> None:
    for name in CONSTANTS:
        assert f"{name} {getattr(_abi, name)}" in headers


def test_codes_have_the_names_of_the_library() -> None:
    for code in Code:
        assert library().rft_code_name(code).decode() == code.name
    assert library().rft_code_name(max(Code) + 1) == b"UNKNOWN"
