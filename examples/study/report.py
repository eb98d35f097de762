# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Tables, plots and verdicts, from the logs alone."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Sequence

import claims
import plots
import summary
import tables
from experiments import Experiment
from measures import results as results_of
from runs import logs_in


def make(experiments: Sequence[Experiment], directory: pathlib.Path) -> str:
    """tables.md, summary.json and plots in the directory; returns the tables."""
    logs = logs_in(directory)
    results = {experiment.name: results_of(experiment, logs) for experiment in experiments}
    verdicts = claims.judge(results)
    text = "\n".join(tables.document(experiments, results, verdicts)) + "\n"
    with tempfile.TemporaryDirectory(prefix="report-", dir=directory) as partial:
        place = pathlib.Path(partial)
        (place / "tables.md").write_text(text)
        (place / "summary.json").write_text(summary.document(experiments, results, verdicts))
        for experiment in experiments:
            plots.draw(experiment, results[experiment.name], place)
        for file in place.iterdir():
            os.replace(file, directory / file.name)
    return text
