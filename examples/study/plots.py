# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Plots of an experiment: curves against updates, and a final accuracy against the threshold."""

from __future__ import annotations

import pathlib
import statistics
import subprocess
from collections.abc import Iterator, Sequence

from experiments import TAU, Experiment
from measures import Result

#: Curve to what a plot of it is called, and where its axis begins; one that doesn't at 0 is logarithmic.
CURVES = {
    "accuracy": ("Held-out accuracy", 0),
    "dropped": ("Part of the valid tokens that is masked or clipped", 0),
    "ratio": ("Largest importance ratio", 1),
    "gradient": ("Largest norm of the gradient", 0.1),
}


def draw(experiment: Experiment, results: Sequence[Result], directory: pathlib.Path) -> None:
    """NAME-CURVE.svg and .png, and of a sweep of the threshold NAME.svg and .png; of no runs nothing."""
    results = [result for result in results if result.logs]
    if not results:
        return
    for curve, (title, least) in CURVES.items():
        _draw_panels(experiment, results, curve, title, least, directory)
    if any(TAU in changes for changes in experiment.variants.values()):
        _draw_threshold(experiment, results, directory)


def _draw_panels(
    experiment: Experiment,
    results: Sequence[Result],
    curve: str,
    title: str,
    least: float,
    directory: pathlib.Path,
) -> None:
    panels = list(dict.fromkeys(result.cell.panel for result in results))
    series = list(dict.fromkeys(result.cell.series for result in results))
    by_place = {(result.cell.panel, result.cell.series): result for result in results}
    places = [(panel, line) for panel in panels for line in series]
    blocks = ["\n".join(_rows(by_place.get(place), curve)) for place in places]
    _gnuplot(
        "panels",
        directory / f"{experiment.name}-{curve}",
        blocks,
        panels=_words(panels),
        series=_words(series),
        heading=f"{title}, {experiment.name}: mean and range of the seeds",
        updates=experiment.updates,
        least=least,
    )


def _rows(result: Result | None, curve: str) -> Iterator[str]:
    if result is None:
        yield "nan\tnan\tnan\tnan"
        return
    at: dict[int, list[float]] = {}
    for log in result.logs.values():
        for update, value in log.curves[curve]:
            at.setdefault(update, []).append(value)
    for update, values in sorted(at.items()):
        yield f"{update}\t{min(values):.6g}\t{statistics.fmean(values):.6g}\t{max(values):.6g}"


def _draw_threshold(experiment: Experiment, results: Sequence[Result], directory: pathlib.Path) -> None:
    rows = []
    means = []
    for result in results:
        tau, finals = result.cell.runs[0].settings[TAU], result.values("final")
        rows += [f"{tau}\t{value:.6g}" for value in finals]
        means.append(f"{tau}\t{statistics.fmean(finals):.6g}")
    _gnuplot("threshold", directory / experiment.name, ["\n".join(rows), "\n".join(means)])


def _words(names: Sequence[str]) -> str:
    return " ".join(f'"{name}"' for name in names)


def _gnuplot(script: str, plot_to: pathlib.Path, blocks: Sequence[str], **variables: str | float) -> None:
    data = plot_to.with_suffix(".tsv")
    data.write_text("\n\n\n".join(blocks) + "\n")
    given = {"data": str(data), "plot_to": str(plot_to), **variables}
    assignments = "; ".join(
        f"{name}='{value}'" if isinstance(value, str) else f"{name}={value}" for name, value in given.items()
    )
    path = pathlib.Path(__file__).with_name(f"{script}.gp")
    done = subprocess.run(["gnuplot", "-e", assignments, path], capture_output=True, text=True)
    # Else it only warns, of cells without runs.
    if done.returncode != 0:
        raise OSError(f"{plot_to}: gnuplot failed: {done.stderr.strip()}")
