# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""How far the study is, with the time left: a bar on a terminal, elsewhere a line for each update. On standard
error."""

from __future__ import annotations

import sys
import time

WIDTH = 30


class Progress:
    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._measured = 0
        self._start = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def skip(self, steps: int) -> None:
        """These were done before."""
        self._done += steps

    def step(self, part: str) -> None:
        self._done += 1
        self._measured += 1
        pace = (time.monotonic() - self._start) / self._measured
        left = f"{pace * (self._steps - self._done) / 60:.0f} min left"
        counts = f"{self._done}/{self._steps}"
        if self._terminal:
            filled = WIDTH * self._done // self._steps
            bar = "#" * filled + "-" * (WIDTH - filled)
            print(f"\r\033[K{f'[{bar}] {counts} {left}  {part}':.118}", end="", file=sys.stderr, flush=True)
        else:
            print(f"# {counts} updates, {left}: {part}", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
