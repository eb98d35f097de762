# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Whether the mask does for training what the paper says, by many runs of rft-train.

usage: study.py BUILD [STUDY]     STUDY: all, quick, report or the name of an experiment; `make study` calls it

Makes the runs that BUILD/study lacks, and reports on all that are there. README.md beside this says more.
"""

from __future__ import annotations

import fcntl
import pathlib
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import experiments
import report
from runs import Failure, Runs
from trainer import Trainer

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def _terminated(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _study(build: pathlib.Path, name: str) -> None:
    runs = experiments.runs_of(experiments.chosen(name))
    quick = name == "quick"
    directory = build / "study" / ("quick" if quick else "")
    directory.mkdir(parents=True, exist_ok=True)
    if runs:
        _make(runs, build, directory)
    print(report.make(experiments.QUICK if quick else experiments.FULL, directory), end="")


def _make(runs: Sequence[experiments.Run], build: pathlib.Path, directory: pathlib.Path) -> None:
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"{directory}: another study is at work in it") from None
        Runs(directory, Trainer(build, directory / "trainer")).make(runs)


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return EXIT_USAGE
    signal.signal(signal.SIGTERM, _terminated)
    try:
        _study(pathlib.Path(arguments[0]), *(arguments[1:] or ["all"]))
    except (Failure, OSError, ValueError) as error:
        print(f"study: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("study: interrupted; the same command goes on", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
