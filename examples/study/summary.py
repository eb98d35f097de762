# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The results as JSON."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from claims import Verdict
from experiments import Experiment
from measures import Result


def document(
    experiments: Sequence[Experiment], results: Mapping[str, Sequence[Result]], verdicts: Sequence[Verdict]
) -> str:
    found = {
        "machine": _machine(),
        "experiments": {each.name: _experiment(each, results[each.name]) for each in experiments},
        "claims": [_claim(verdict) for verdict in verdicts],
    }
    return json.dumps(found, indent=1) + "\n"


def _machine() -> dict[str, Any]:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return {"processor": next(names, platform.machine()), "cores": len(os.sched_getaffinity(0))}


def _experiment(experiment: Experiment, results: Sequence[Result]) -> dict[str, Any]:
    return {
        "question": experiment.question,
        "task": experiment.task,
        "cells": [_cell(result) for result in results],
    }


def _cell(result: Result) -> dict[str, Any]:
    runs = [
        {
            "name": log.run.name,
            "settings": log.run.settings,
            "build": log.build,
            **dataclasses.asdict(result.measures[seed]),
        }
        for seed, log in result.logs.items()
    ]
    return {"title": result.cell.title, "runs": runs, "missing": result.missing}


def _claim(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "experiment": claim.experiment,
        "claim": claim.text,
        "holds": verdict.holds,
        "numbers": verdict.numbers,
    }
