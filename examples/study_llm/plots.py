# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The data that gnuplot draws, and the calls of it."""

from __future__ import annotations

import pathlib
import statistics
import subprocess
from collections.abc import Mapping, Sequence

from run import Line
from settings import Settings
from words import Words

#: A batch's accuracy jumps by the luck of its few questions.
SMOOTHED = 5


def draw_curves(runs: Mapping[Settings, Sequence[Line]], path: pathlib.Path) -> None:
    """PATH.svg and PATH.png: a colour for each algorithm and setting, a line for each seed."""
    if not runs:
        return
    titles = list(dict.fromkeys(map(_title, runs)))
    blocks = ["\n".join("\t".join(row) for row in _rows(log)) for log in runs.values()]
    path.with_suffix(".tsv").write_text("\n\n\n".join(blocks) + "\n")
    styles = [str(titles.index(_title(settings)) + 1) for settings in runs]
    _gnuplot("curves", path, titles=" ".join(f'"{title}"' for title in titles), styles=" ".join(styles))


def _title(settings: Settings) -> str:
    return f"{settings.algorithm}, staleness {settings.staleness}, lr {settings.learning_rate:g}"


def smoothed(updates: Sequence[Line]) -> list[float]:
    """Accuracy of fresh rollouts, after each update the mean of the last ones."""
    rewards = [line["fresh_reward"] for line in updates]
    return [statistics.fmean(rewards[max(0, end - SMOOTHED) : end]) for end in range(1, len(rewards) + 1)]


def _rows(log: Sequence[Line]) -> list[list[str]]:
    base, *updates = log
    rows = [[str(base["update"]), f"{base['accuracy']:.4g}", "nan", "nan", "nan"]]
    for line, reward in zip(updates, smoothed(updates)):
        accuracy = line.get("accuracy", float("nan"))
        lost = line["masked_fraction"] + line["clip_fraction"]
        rows.append([str(line["update"]), *(f"{value:.4g}" for value in (accuracy, reward, line["m2_before"], lost))])
    return rows


def draw_words(words: Words, most: int, path: pathlib.Path) -> None:
    """PATH.svg and PATH.png: how often each of the most dropped tokens stays and goes."""
    rows = []
    for text in words.most_dropped(most):
        lost = words.dropped[text]
        rows.append(f"{_label(text)}\t{lost}\t{words.valid[text] - lost}")
    path.with_suffix(".tsv").write_text("\n".join(rows) + "\n")
    _gnuplot("words", path)


def _label(text: str) -> str:
    """A space that begins a token, and the end of a line, in sight."""
    return '"' + text.replace(" ", "␣").replace("\n", "⏎").replace('"', "'").replace("<|im_end|>", "end") + '"'


def _gnuplot(script: str, plot_to: pathlib.Path, **variables: str) -> None:
    given = {"data": str(plot_to.with_suffix(".tsv")), "plot_to": str(plot_to), **variables}
    assignments = "; ".join(f"{name}='{value}'" for name, value in given.items())
    path = pathlib.Path(__file__).with_name(f"{script}.gp")
    done = subprocess.run(["gnuplot", "-e", assignments, path], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{plot_to}: gnuplot failed: {done.stderr.strip()}")
