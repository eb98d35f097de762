# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The paper's claims, each as a test on the numbers. The margins were chosen before the runs.

Runs of equal seed start from the same base policy, so that cells are compared seed by seed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from measures import FALL, Result

MARGIN = 0.02  # of accuracy: less is about the same
AGREEING = 0.8  # part of the seeds that have to show a difference


class Missing(Exception):
    """A run that a claim is about is not there."""


class Cells:
    """The results of an experiment, by the titles of their cells."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._results: Mapping[str, Result] = {result.cell.title: result for result in results}

    def __getitem__(self, title: str) -> Result:
        if title not in self._results or self._results[title].missing:
            raise Missing(title)
        return self._results[title]


@dataclass(frozen=True)
class Difference:
    """Of a measure in two cells, first - second, by seed."""

    first: str
    second: str
    values: list[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def above(self) -> int:
        return sum(value > 0 for value in self.values)

    def __str__(self) -> str:
        each = " ".join(f"{value:+.3f}" for value in self.values)
        count = f"above 0 in {self.above} of {len(self.values)} seeds"
        return f"{self.first} less {self.second}: {self.mean:+.3f} ({each}), {count}"


def _difference(measure: str, cells: Cells, first: str, second: str) -> Difference:
    pairs = zip(cells[first].values(measure), cells[second].values(measure), strict=True)
    return Difference(first, second, [a - b for a, b in pairs])


#: Holds or not, and the numbers.
Test = Callable[[Cells], "tuple[bool, list[str]]"]


def _not_below(measure: str, *pairs: tuple[str, str]) -> Test:
    """In the mean over seeds, no first one is more than MARGIN below its second."""

    def test(cells: Cells) -> tuple[bool, list[str]]:
        found = [_difference(measure, cells, *pair) for pair in pairs]
        return all(each.mean >= -MARGIN for each in found), [str(each) for each in found]

    return test


def _above(measure: str, first: str, second: str, margin: float = MARGIN) -> Test:
    """By more than the margin in the mean, and at all in most seeds."""

    def test(cells: Cells) -> tuple[bool, list[str]]:
        found = _difference(measure, cells, first, second)
        most = found.above >= AGREEING * len(found.values)
        return found.mean > margin and most, [str(found)]

    return test


def _unstable_runs(cells: Cells, title: str) -> tuple[int, int, str]:
    measures = list(cells[title].measures.values())
    count = sum(each.unstable for each in measures)
    falls = " ".join(f"{each.fall:.3f}" if each.ended is None else f"ended at {each.ended}" for each in measures)
    return count, len(measures), f"{title}: unstable in {count} of {len(measures)} seeds (falls {falls})"


def _stable(title: str) -> Test:
    def test(cells: Cells) -> tuple[bool, list[str]]:
        count, _, numbers = _unstable_runs(cells, title)
        return count == 0, [numbers]

    return test


def _unstable(title: str) -> Test:
    """In more than half of the seeds."""

    def test(cells: Cells) -> tuple[bool, list[str]]:
        count, runs, numbers = _unstable_runs(cells, title)
        return 2 * count > runs, [numbers]

    return test


@dataclass(frozen=True)
class Claim:
    experiment: str
    text: str
    test: Test


def _of_training(experiment: str) -> list[Claim]:
    claims: list[tuple[str, Test]] = [
        (
            f"m2po ends from rollouts 256 updates old no more than {MARGIN} below on-policy training",
            _not_below("final", ("m2po at 256", "grpo at 0")),
        ),
        (
            f"and its mean accuracy over the run is no more than {MARGIN} below",
            _not_below("over_run", ("m2po at 256", "grpo at 0")),
        ),
        (f"grpo ends more than {MARGIN} below m2po", _above("final", "m2po at 256", "grpo at 256")),
        (
            f"and its mean accuracy over the run is more than {MARGIN} below",
            _above("over_run", "m2po at 256", "grpo at 256"),
        ),
        (
            f"without a trust region most runs fall more than {FALL} below their best, or end",
            _unstable("none at 256"),
        ),
        ("m2po does so in no seed", _stable("m2po at 256")),
        (
            "m2po masks fewer tokens than grpo clips",
            _above("dropped", "grpo at 256", "m2po at 256", margin=0),
        ),
        (
            f"on-policy, m2po and none end no more than {MARGIN} below grpo",
            _not_below("final", ("m2po at 0", "grpo at 0"), ("none at 0", "grpo at 0")),
        ),
    ]
    return [Claim(experiment, *claim) for claim in claims]


def _of_rate(rate: float) -> list[Claim]:
    def at(algorithm: str) -> str:
        return f"{algorithm} at 256, learning rate {rate}"

    claims: list[tuple[str, Test]] = [
        (
            f"at learning rate {rate} most runs without a trust region fall more than {FALL}, or end",
            _unstable(at("none")),
        ),
        ("m2po does so in no seed", _stable(at("m2po"))),
        (f"grpo ends more than {MARGIN} below m2po", _above("final", at("m2po"), at("grpo"))),
    ]
    return [Claim("learning_rate", *claim) for claim in claims]


def _tau(value: float) -> str:
    return f"m2po at 256, tau {value}"


CLAIMS = [
    *_of_training("addition"),
    *_of_training("word_problems"),
    *(claim for rate in (0.0003, 0.001, 0.002, 0.003) for claim in _of_rate(rate)),
    Claim(
        "threshold",
        f"no other threshold ends more than {MARGIN} above 0.04",
        _not_below("final", *((_tau(0.04), _tau(other)) for other in (0.01, 0.02, 0.08, 0.16))),
    ),
    Claim(
        "threshold",
        f"half and twice of 0.04 end no more than {MARGIN} below it",
        _not_below("final", (_tau(0.02), _tau(0.04)), (_tau(0.08), _tau(0.04))),
    ),
    Claim(
        "threshold",
        "a quarter and four times of it do so, too",
        _not_below("final", (_tau(0.01), _tau(0.04)), (_tau(0.16), _tau(0.04))),
    ),
]


@dataclass(frozen=True)
class Verdict:
    claim: Claim
    holds: bool | None  #: None where runs are missing
    numbers: list[str]

    @property
    def word(self) -> str:
        return {True: "holds", False: "does not hold", None: "not measured"}[self.holds]


def judge(results: Mapping[str, Sequence[Result]]) -> list[Verdict]:
    """The claims about these experiments."""
    return [_verdict(claim, Cells(results[claim.experiment])) for claim in CLAIMS if claim.experiment in results]


def _verdict(claim: Claim, cells: Cells) -> Verdict:
    try:
        return Verdict(claim, *claim.test(cells))
    except Missing as missing:
        return Verdict(claim, None, [f"runs of {missing} are missing"])
