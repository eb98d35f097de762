# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What goes wrong: one exception, which carries the code and the message of the library."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """RFT_* of rft/plugin.h."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15


def known(code: int) -> int:
    """The Code of that number, or the number where a newer library has more of them."""
    return Code(code) if code in Code._value2member_map_ else code


class RftError(RuntimeError):
    """A call failed: `code` (see `known`) and `message`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = known(code)
        self.message = message

    def __str__(self) -> str:
        return self.message
