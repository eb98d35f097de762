# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""How far it is: one line on a terminal, elsewhere a line for each finished run. On standard error."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence


class Progress:
    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._done = 0
        self._start = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def show(self, part: float, running: Sequence[str]) -> None:
        """`part` of the work is done, and these run."""
        if self._terminal:
            line = f"{self._count()}, {self._left(part)}: {', '.join(running)}"
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{line[:width]}", end="", file=sys.stderr, flush=True)

    def finished(self, what: str, part: float) -> None:
        self._done += 1
        if not self._terminal:
            print(f"{self._count()}, {self._left(part)}: {what}", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _count(self) -> str:
        return f"{self._what} {self._done}/{self._total}"

    def _left(self, part: float) -> str:
        """By the time that the rest of the work took."""
        if part <= 0:
            return "time left unknown"
        return f"{duration((time.monotonic() - self._start) * (1 - part) / part)} left"


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
