# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""How far it is: a bar on a terminal, elsewhere a line for each part. On standard error."""

from __future__ import annotations

import sys
import time

WIDTH = 30


class Progress:
    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._start = time.monotonic()
        self._part = ""
        self._terminal = sys.stderr.isatty()

    def begin(self, part: str) -> None:
        """What follows."""
        self._part = part
        if not self._terminal:
            print(f"# {time.monotonic() - self._start:5.0f} s  {part}", file=sys.stderr, flush=True)

    def step(self) -> None:
        self._done += 1
        if self._terminal:
            filled = WIDTH * self._done // self._steps
            bar = "#" * filled + "-" * (WIDTH - filled)
            seconds = time.monotonic() - self._start
            line = f"[{bar}] {self._done}/{self._steps} {seconds:4.0f} s  {self._part}"
            print(f"\r\033[K{line:.100}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
