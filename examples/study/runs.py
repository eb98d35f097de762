# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Makes the logs that are missing: base policies first, then the runs that start from them."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from experiments import Run
from progress import Progress
from schedule import Job, last_update, run_all
from store import Store
from trainer import Trainer, is_overflow

BASE_WORK = 200  # updates that take about as long as a warm start

FINISHED, UNSTABLE = "finished", "unstable"


class Failure(Exception):
    """A run failed, and not by its numbers."""


class Runs:
    def __init__(self, directory: pathlib.Path, trainer: Trainer) -> None:
        self._bases = Store(directory / "bases", ".safetensors")
        self._logs = logs_in(directory)
        self._trainer = trainer

    def make(self, runs: Sequence[Run]) -> None:
        try:
            self._discard_partial()  # of a study that was killed
            self._make(runs)
        finally:
            self._discard_partial()

    def _discard_partial(self) -> None:
        self._bases.discard_partial()
        self._logs.discard_partial()

    def _make(self, runs: Sequence[Run]) -> None:
        missing = [run for run in runs if not self._logs.has(run.name, self._made_with(run))]
        bases = {_base_name(run): run for run in missing}
        jobs = [
            self._base_job(name, run)
            for name, run in bases.items()
            if not self._bases.has(name, self._base_made_with(run))
        ]
        run_all(jobs, Progress("base policies", len(jobs)))
        run_all([self._run_job(run) for run in missing], Progress("runs", len(missing)))

    def _made_with(self, run: Run) -> dict[str, Any]:
        return self._trainer.made_with(run.task, run.settings)

    def _base_made_with(self, run: Run) -> dict[str, Any]:
        return self._trainer.made_with(run.task, run.base)

    def _base_job(self, name: str, run: Run) -> Job:
        store, made_with = self._bases, self._base_made_with(run)
        store.forget(name)

        def finish(status: int, errors: str, seconds: float) -> str:
            if status != 0:
                raise Failure(f"base policy {name}: {_told(status, errors)}")
            store.keep(name, made_with, seconds=seconds)
            return f"{seconds:.0f} s"

        return Job(name, self._trainer.base_command(run, store.partial(name)), BASE_WORK, None, finish)

    def _run_job(self, run: Run) -> Job:
        store, made_with = self._logs, self._made_with(run)
        store.forget(run.name)
        log = store.partial(run.name)

        def finish(status: int, errors: str, seconds: float) -> str:
            updates = last_update(log)
            outcome = _outcome(run, status, errors, updates)
            store.keep(run.name, made_with, outcome=outcome, updates=updates, message=errors, seconds=seconds)
            return f"{outcome} after {updates} updates, {seconds:.0f} s"

        base = self._bases.path(_base_name(run))
        return Job(run.name, self._trainer.run_command(run, base, log), run.updates, log, finish)


def logs_in(directory: pathlib.Path) -> Store:
    return Store(directory / "runs", ".jsonl")


def _outcome(run: Run, status: int, errors: str, updates: int) -> str:
    if status == 0 and updates == run.updates:
        return FINISHED
    if status == 1 and updates > 0 and is_overflow(errors):
        return UNSTABLE
    raise Failure(f"{run.name}: {_told(status, errors)}, after {updates} of {run.updates} updates")


def _told(status: int, errors: str) -> str:
    return f"exit status {status}: {errors or 'no message'}"


def _base_name(run: Run) -> str:
    text = json.dumps([run.task, run.base], sort_keys=True)
    return f"{run.task}-{hashlib.sha256(text.encode()).hexdigest()[:8]}-seed{run.settings['trainer.seed']}"
