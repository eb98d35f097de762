# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Programs, as many at once as there are CPUs. Whatever ends the study ends them."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from progress import Progress

POLL_SECONDS = 0.1
SHOW_EVERY = 10  # polls
TAIL_BYTES = 4096  # a line of a log is shorter


@dataclass
class Job:
    name: str
    command: Sequence[str]
    work: int  #: in updates
    log: pathlib.Path | None  #: that grows by a line an update
    finish: Callable[[int, str, float], str]  #: takes exit status, standard error, seconds; says what came of it
    process: subprocess.Popen[str] = field(init=False)
    start: float = field(init=False)

    def begin(self) -> None:
        # A study that is killed takes its runs along.
        command = ["setpriv", "--pdeathsig", "KILL", "--", *self.command]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def done(self) -> int:
        """Updates so far."""
        return last_update(self.log) if self.log is not None else 0

    def end(self) -> str:
        _, errors = self.process.communicate()
        return self.finish(self.process.returncode, errors.strip(), time.monotonic() - self.start)


def last_update(log: pathlib.Path) -> int:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            found = re.findall(rb'"update": (\d+)', file.read())
    except FileNotFoundError:
        return 0
    return int(found[-1]) if found else 0


def run_all(jobs: Sequence[Job], progress: Progress) -> None:
    """In this order; raises what a job's `finish` raises."""
    total = sum(job.work for job in jobs)
    waiting = list(jobs)
    running: list[Job] = []
    done = polls = 0
    try:
        while waiting or running:
            while waiting and len(running) < len(os.sched_getaffinity(0)):
                running.append(waiting.pop(0))
                running[-1].begin()
            for job in [job for job in running if job.process.poll() is not None]:
                running.remove(job)
                done += job.work
                progress.finished(f"{job.name}: {job.end()}", _part(done, running, total))
            if polls % SHOW_EVERY == 0:
                progress.show(_part(done, running, total), [job.name for job in running])
            polls += 1
            time.sleep(POLL_SECONDS)
    finally:
        for job in running:
            job.process.kill()
        for job in running:
            job.process.communicate()
        progress.end()


def _part(done: int, running: Sequence[Job], total: int) -> float:
    return (done + sum(job.done() for job in running)) / total
