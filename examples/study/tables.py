# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The results as text, in Markdown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence

from claims import Verdict
from experiments import Experiment
from measures import EVALUATIONS, FALL, REACHED, Measures, Result, spread
from progress import duration

_COLUMNS = (
    "",
    "runs",
    "final accuracy",
    "least .. most",
    "over the run",
    "fall",
    f"updates to {REACHED}",
    "clipped",
    "masked",
    "unstable",
)

_LEGEND = f"""\
Final accuracy: the mean of the last {EVALUATIONS} evaluations of a run; here its mean over the seeds +- the standard
deviation, and the least and most of a seed. Over the run: the mean of all evaluations. Fall: to the final
accuracy from the first evaluation, after one update, or the best mean of {EVALUATIONS}. Updates to {REACHED}: the median of the
seeds. Clipped, masked: part of the valid tokens. Unstable: runs that fell by more than {FALL} or ended early,
because numbers overflowed; such an end counts as accuracy 0 from then on."""


def document(
    experiments: Sequence[Experiment], results: Mapping[str, Sequence[Result]], verdicts: Sequence[Verdict]
) -> Iterator[str]:
    yield "# Results"
    yield ""
    yield _made([result for each in results.values() for result in each])
    yield ""
    yield _LEGEND
    for experiment in experiments:
        yield ""
        yield f"## {experiment.name}"
        yield ""
        yield f"{experiment.question} Task {experiment.task}, {experiment.updates} updates a run."
        yield ""
        yield from _table([result for result in results[experiment.name] if result.logs])
        yield from _missing(results[experiment.name])
    yield ""
    yield "## Claims"
    yield ""
    yield from _claims(verdicts)


def _made(results: Sequence[Result]) -> str:
    logs = {log.run.name: log for result in results for log in result.logs.values()}
    builds = {json.dumps(log.build) for log in logs.values()}
    versions = sorted({log.build["version"] for log in logs.values()})
    seconds = sum(log.seconds for log in logs.values())
    what = ", ".join(versions) or "rft-train"
    several = f", {len(builds)} builds" if len(builds) > 1 else ""
    return f"{len(logs)} runs of {what}{several}: {duration(seconds)} in all, one core each."


def _table(results: Sequence[Result]) -> Iterator[str]:
    if not results:
        yield "No runs."
        return
    yield _row(*_COLUMNS)
    yield _row("---", *["---:"] * (len(_COLUMNS) - 1))
    for result in results:
        yield _row(result.cell.title, f"{len(result.logs)} of {len(result.cell.runs)}", *_numbers(result))


def _numbers(result: Result) -> list[str]:
    final = spread(result.values("final"))
    return [
        f"{final.mean:.3f}" + (f" +- {final.deviation:.3f}" if final.deviation is not None else ""),
        f"{final.least:.3f} .. {final.most:.3f}",
        *(f"{statistics.fmean(result.values(name)):.3f}" for name in ("over_run", "fall")),
        _reached([result.measures[seed].reached for seed in result.measures], result.cell.runs[0].updates),
        *(f"{statistics.fmean(result.values(name)):.4f}" for name in ("clipped", "masked")),
        _unstable(list(result.measures.values())),
    ]


def _reached(updates: Sequence[int | None], most: int) -> str:
    median = statistics.median(most + 1 if update is None else update for update in updates)
    return f"{median:.0f}" if median <= most else f"> {most}"


def _unstable(measures: Sequence[Measures]) -> str:
    count = sum(each.unstable for each in measures)
    ended = [str(each.ended) for each in measures if each.ended is not None]
    return f"{count}" + (f", ended at {', '.join(ended)}" if ended else "")


def _missing(results: Sequence[Result]) -> Iterator[str]:
    cells = [f"{len(each.missing)} of {each.cell.title}" for each in results if each.missing]
    if cells:
        yield ""
        yield f"Missing runs: {'; '.join(cells)}."


def _claims(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield _row("experiment", "claim", "", "numbers")
    yield _row(*["---"] * 4)
    for verdict in verdicts:
        claim = verdict.claim
        yield _row(claim.experiment, claim.text, verdict.word, "; ".join(verdict.numbers))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
