# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""rft-train and the plugin, as they were when the study began: a build meanwhile changes nothing."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

from experiments import Run, Settings, Value
from store import digest

CONFIGS = pathlib.Path(__file__).parent.parent / "trainer"

#: Of the messages that end a run, those that its numbers are to blame for: a log-prob that is not finite, or so
#: far from the behavior policy's that a square or a sum overflows. The exit code is that of every failure.
_OVERFLOW = re.compile(r"(logprob|advantages) at index \d+|loss: expected a finite sum")


class Trainer:
    """A copy in `directory` of what `build` has."""

    def __init__(self, build: pathlib.Path, directory: pathlib.Path) -> None:
        self._program = directory / "rft-train"
        self._plugins = directory / "plugins"
        self._plugins.mkdir(parents=True, exist_ok=True)
        files = {
            build / "rft-train": self._program,
            build / "librft_host.so.1": directory / "librft_host.so.1",
            build / "plugins" / "libm2po_plugin.so": self._plugins / "libm2po_plugin.so",
        }
        for source, copy in files.items():
            if not source.is_file():
                raise FileNotFoundError(f"{source}: expected what `make` builds, found nothing")
            # A copy that a killed study left may still run: it can't be written to.
            partial = copy.with_suffix(".partial")
            shutil.copy2(source, partial)
            os.replace(partial, copy)
        self._build = {copy.name: digest(copy) for copy in files.values()}
        self._build["version"] = _output(self._program, "--version")

    def made_with(self, task: str, settings: Settings) -> dict[str, Any]:
        """All that the result of a run depends on, the kind of processor apart."""
        return {"config": digest(_config(task)), "build": self._build, "settings": settings}

    def run_command(self, run: Run, base: pathlib.Path, log: pathlib.Path) -> list[str]:
        return [*self._command(run.task, run.settings, base), "--log", str(log)]

    def base_command(self, run: Run, base: pathlib.Path) -> list[str]:
        """Trains nothing but the base policy of the run."""
        return self._command(run.task, {**run.base, "trainer.updates": 1, "trainer.threads": 1}, base)

    def _command(self, task: str, settings: Settings, base: pathlib.Path) -> list[str]:
        flags = ["--quiet", "--plugins", str(self._plugins), "--warm-start", str(base)]
        for key, value in settings.items():
            flags += ["--set", f"{key}={_yaml(value)}"]
        return [str(self._program), str(_config(task)), *flags]


def is_overflow(message: str) -> bool:
    return _OVERFLOW.search(message) is not None


def _config(task: str) -> pathlib.Path:
    return CONFIGS / f"{task}.yaml"


def _output(*command: str | pathlib.Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _yaml(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)
