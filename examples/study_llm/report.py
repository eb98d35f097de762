# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Tables, curves and plots, from the logs and recorded batches that there are."""

from __future__ import annotations

import itertools
import json
import pathlib
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import plots
import words
from run import Line, read_log
from settings import Settings

LAST_EVALUATIONS = 3
LAST_UPDATES = 10
MOST_WORDS = 16

#: Of each update, in runs.json. Rounded, as a plot needs no more.
CURVES = (
    "reward",
    "fresh_reward",
    "answer_tokens",
    "gradient_norm",
    "m2_before",
    "m2_after",
    "masked_fraction",
    "clip_fraction",
    "ratio_max",
)

_COLUMNS = (
    "",
    "seed",
    "held-out accuracy, last",
    "best",
    "over the run",
    "sampled accuracy, last",
    "over the run",
    "largest fall",
    "m2 before",
    "masked",
    "clipped",
    "largest ratio",
    "largest gradient norm",
    "s an update",
)

_LEGEND = f"""\
Held-out accuracy is of greedy answers to 20 questions that were never trained on: the mean of the last
{LAST_EVALUATIONS} evaluations, the best one, and the mean of all but the base policy's. Sampled accuracy is of fresh
answers to training questions: the mean of the last {LAST_UPDATES} updates, that of all, and the largest fall from an
earlier mean of {plots.SMOOTHED} batches to a later one. m2 before the selection, and the shares of valid tokens that are
masked and clipped, are means of the last {LAST_UPDATES} updates too. Largest ratio and gradient norm: of the whole run."""

Runs = dict[Settings, list[Line]]


def finished(settings: Sequence[Settings], directory: pathlib.Path) -> Runs:
    """The logs of the runs that are there."""
    paths = {each: directory / "runs" / f"{each.name()}.jsonl" for each in settings}
    return {each: read_log(path, each) for each, path in paths.items() if path.exists()}


def make(parts: dict[str, Sequence[Settings]], directory: pathlib.Path) -> str:
    """Writes DIRECTORY/report and gives its tables. `parts`: the runs, by heading; words are those of the first."""
    to = directory / "report"
    to.mkdir(exist_ok=True)
    every = {heading: finished(settings, directory) for heading, settings in parts.items()}
    lines = ["# Results", "", _LEGEND]
    for heading, runs in every.items():
        lines += ["", f"## {heading}", "", *_table(runs)]
        missing = [each.name() for each in parts[heading] if each not in runs]
        if missing:
            lines += ["", f"Missing: {', '.join(missing)}."]
        plots.draw_curves(runs, to / heading.lower().replace(" ", "-"))
    counted = words.count(_batches_of_m2po(next(iter(every.values())), directory))
    if counted.dropped:
        lines += ["", "## Dropped words", "", *_words_table(counted)]
        plots.draw_words(counted, MOST_WORDS, to / "words")
    tables = "\n".join(lines) + "\n"
    (to / "tables.md").write_text(tables)
    (to / "runs.json").write_text(_curves({run: log for runs in every.values() for run, log in runs.items()}))
    return tables


def _batches_of_m2po(runs: Runs, directory: pathlib.Path) -> list[pathlib.Path]:
    names = [settings.name() for settings in runs if settings.algorithm == "m2po"]
    return [
        path for name in names for path in sorted((directory / "runs" / "batches").glob(f"{name}-u*.safetensors"))
    ]


def evaluations(log: Sequence[Line]) -> list[tuple[int, float]]:
    return [(line["update"], line["accuracy"]) for line in log if "accuracy" in line]


def _table(runs: Runs) -> Iterator[str]:
    if not runs:
        yield "No runs."
        return
    yield _row(*_COLUMNS)
    yield _row("---", *["---:"] * (len(_COLUMNS) - 1))
    for settings, log in runs.items():
        yield _row(_title(settings), str(settings.seed), *_numbers(log))


def _title(settings: Settings) -> str:
    return f"{settings.algorithm}, staleness {settings.staleness}, learning rate {settings.learning_rate:g}"


def _numbers(log: Sequence[Line]) -> Iterator[str]:
    updates = log[1:]
    accuracy = [value for _, value in evaluations(log)]
    yield f"{statistics.fmean(accuracy[-LAST_EVALUATIONS:]):.3f}"
    yield f"{max(accuracy):.2f}"
    yield f"{statistics.fmean(accuracy[1:]):.3f}"
    yield f"{_late(log, 'fresh_reward'):.3f}"
    yield f"{statistics.fmean(line['fresh_reward'] for line in updates):.3f}"
    yield f"{_largest_fall(plots.smoothed(updates)):.3f}"
    for name in ("m2_before", "masked_fraction", "clip_fraction"):
        yield f"{_late(log, name):.3f}"
    for name in ("ratio_max", "gradient_norm"):
        yield f"{max(line[name] for line in updates):.3g}"
    yield f"{statistics.fmean(line['seconds'] for line in updates):.1f}"


def _largest_fall(curve: Sequence[float]) -> float:
    # The first means are of fewer batches.
    whole = curve[plots.SMOOTHED - 1 :]
    return max((best - value for best, value in zip(itertools.accumulate(whole, max), whole)), default=0.0)


def _late(log: Sequence[Line], name: str) -> float:
    return statistics.fmean(line[name] for line in log[1:][-LAST_UPDATES:])


def _words_table(counted: words.Words) -> Iterator[str]:
    dropped, valid = counted.dropped.total(), counted.valid.total()
    yield f"Of {counted.batches} recorded batches m2po drops {dropped} of {valid} tokens ({dropped / valid:.1%})."
    yield ""
    yield _row("token", "dropped", "of", "share")
    yield _row("---", "---:", "---:", "---:")
    for text in counted.most_dropped(MOST_WORDS):
        lost, of = counted.dropped[text], counted.valid[text]
        yield _row(f"`{json.dumps(text, ensure_ascii=False)}`", str(lost), str(of), f"{lost / of:.1%}")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _curves(runs: Runs) -> str:
    """A line for each curve."""
    documents = []
    for settings, log in runs.items():
        curves = {name: [float(f"{line[name]:.4g}") for line in log[1:]] for name in CURVES}
        fields = [f'"settings": {json.dumps(asdict(settings))}', f'"accuracy": {json.dumps(evaluations(log))}']
        fields += [f'"{name}": {json.dumps(values)}' for name, values in curves.items()]
        documents.append("{" + ",\n ".join(fields) + "}")
    return "[" + ",\n".join(documents) + "]\n"
