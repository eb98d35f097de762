# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What is run: the table of experiments. Nothing else in the study knows a setting's value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Union

Value = Union[str, int, float, None]
Settings = dict[str, Value]  # of rft-train: config key to value

TAU = "algorithm.policy_loss_fn_args.m2_threshold"
CLIP = "algorithm.policy_loss_fn_args.log_ratio_clip"
RATE = "trainer.learning_rate"
WARM = "warm_start.target_accuracy"
DIGITS = "task.digits"
EVALUATE_EVERY = 20  # updates

#: Over examples/trainer/TASK.yaml. What an experiment varies is said here too, so that equal runs of two
#: experiments have equal settings.
TASKS: dict[str, Settings] = {
    "addition": {DIGITS: 3, WARM: 0.35, RATE: 1e-3},
    "word_problems": {RATE: 1e-3},
}


def _algorithm(preset: str, **args: Value) -> Settings:
    prefix = "algorithm.policy_loss_fn_args."
    return {"algorithm.algorithm_type": preset, **{prefix + key: value for key, value in args.items()}}


ALGORITHMS: dict[str, Settings] = {
    "grpo": _algorithm("grpo"),
    "none": _algorithm("m2po", m2_threshold=None),
    "m2po": _algorithm("m2po", m2_threshold=0.04),
    "m2po_areal": _algorithm("m2po_areal", m2_threshold=0.04),
    "sapo": _algorithm("m2po", m2_threshold=None, surrogate="sapo"),
}
ON_POLICY = "on_policy"  # grpo at staleness 0, whatever that of the others


@dataclass(frozen=True)
class Run:
    name: str  #: tells it from all others of its plan
    task: str
    settings: Settings = field(hash=False)

    @property
    def updates(self) -> int:
        return int(self.settings["trainer.updates"] or 0)

    @property
    def base(self) -> Settings:
        """What its base policy depends on."""
        sections = ("task.", "model.", "warm_start.")
        return {
            key: value
            for key, value in self.settings.items()
            if key.startswith(sections) or key == "trainer.seed"
        }


@dataclass(frozen=True)
class Cell:
    """Runs that differ in their seed alone: one line in a panel of the plots, one row of the tables."""

    panel: str
    series: str
    algorithm: str
    staleness: int
    variant: str
    runs: tuple[Run, ...]

    @property
    def title(self) -> str:
        return f"{self.algorithm} at {self.staleness}" + (f", {self.variant}" if self.variant else "")


@dataclass(frozen=True)
class Experiment:
    """Every algorithm at every staleness with every variant, `seeds` times."""

    name: str
    question: str
    task: str
    staleness: Sequence[int]
    algorithms: Sequence[str]
    seeds: int
    updates: int = 2000
    settings: Settings = field(default_factory=dict)  #: over the task's, in every run
    variants: dict[str, Settings] = field(default_factory=lambda: {"": {}})
    series: str = "algorithm"  #: or "variant": what the lines of a panel are

    def cells(self) -> Iterator[Cell]:
        for variant, changes in self.variants.items():
            for staleness in self.staleness:
                for algorithm in self.algorithms:
                    age = 0 if algorithm == ON_POLICY else staleness
                    yield self._cell(variant, changes, age, algorithm)

    def runs(self) -> list[Run]:
        return [run for cell in self.cells() for run in cell.runs]

    def _cell(self, variant: str, changes: Settings, staleness: int, algorithm: str) -> Cell:
        age = f"staleness {staleness}"
        by_variant = self.series == "variant"
        panel = age if by_variant or not variant else variant
        runs = tuple(self._run(changes, staleness, algorithm, seed) for seed in range(self.seeds))
        series = variant if by_variant else algorithm
        return Cell(panel, series, algorithm, staleness, variant, runs)

    def _run(self, changes: Settings, staleness: int, algorithm: str, seed: int) -> Run:
        algorithm = "grpo" if algorithm == ON_POLICY else algorithm
        usual = {**TASKS[self.task], **self.settings, **ALGORITHMS[algorithm]}
        settings = {
            **usual,
            **changes,
            "rollout.staleness": staleness,
            "trainer.updates": self.updates,
            "trainer.seed": seed,
            "trainer.threads": 1,
            "output.evaluate_every": EVALUATE_EVERY,
        }
        parts = [self.task, algorithm, f"s{staleness}"]
        parts += [
            f"{key.rsplit('.', 1)[1]}={value}" for key, value in changes.items() if usual.get(key, ...) != value
        ]
        return Run("-".join([*parts, f"seed{seed}"]), self.task, settings)


def _one_at_a_time(key: str, label: str, values: Sequence[Value]) -> dict[str, Settings]:
    return {f"{label} {value}": {key: value} for value in values}


FULL = (
    Experiment(
        name="addition",
        question="Does m2po learn from old rollouts as if they were new, where the others do not?",
        task="addition",
        staleness=(0, 16, 64, 256),
        algorithms=("grpo", "none", "m2po", "m2po_areal", "sapo"),
        seeds=5,
    ),
    Experiment(
        name="word_problems",
        question="Is it so on another task?",
        task="word_problems",
        staleness=(0, 256),
        algorithms=("grpo", "none", "m2po"),
        seeds=5,
    ),
    Experiment(
        name="bound",
        question="Does it help to bound the ratios of the tokens that Algorithm 1 leaves alone?",
        task="word_problems",
        staleness=(256,),
        algorithms=("m2po",),
        seeds=5,
        variants=_one_at_a_time(CLIP, "log_ratio_clip", (20, 2, 1)),
        series="variant",
    ),
    Experiment(
        name="threshold",
        question="Does the threshold need tuning?",
        task="addition",
        staleness=(256,),
        algorithms=("m2po",),
        seeds=5,
        variants=_one_at_a_time(TAU, "tau", (0.01, 0.02, 0.04, 0.08, 0.16)),
        series="variant",
    ),
    Experiment(
        name="learning_rate",
        question="Where do the algorithms come apart, and where does training without a trust region collapse?",
        task="addition",
        staleness=(256,),
        algorithms=("grpo", "none", "m2po", ON_POLICY),
        seeds=3,
        variants=_one_at_a_time(RATE, "learning rate", (3e-4, 1e-3, 2e-3, 3e-3)),
    ),
    Experiment(
        name="difficulty",
        question="Does it depend on where the policy starts, and on the length of the answers?",
        task="addition",
        staleness=(256,),
        algorithms=("grpo", "none", "m2po", ON_POLICY),
        seeds=2,
        variants={
            **_one_at_a_time(WARM, "warm start", (0.1, 0.6)),
            **_one_at_a_time(DIGITS, "digits", (2, 4)),
        },
    ),
)

_SMALL: Settings = {
    DIGITS: 2,
    WARM: 0.2,
    RATE: 3e-3,
    "task.held_out": 200,
    "model.embedding": 8,
    "model.hidden": 32,
    "warm_start.batch": 256,
    "warm_start.learning_rate": 3e-3,
    "trainer.prompts": 16,
    "trainer.samples": 4,
}

#: A minute's worth that goes through everything; its numbers mean nothing.
QUICK = (
    Experiment(
        name="addition",
        question="Does the study run?",
        task="addition",
        staleness=(0, 256),
        algorithms=("grpo", "none", "m2po"),
        seeds=2,
        updates=100,
        settings=_SMALL,
    ),
    Experiment(
        name="threshold",
        question="Does a sweep run?",
        task="addition",
        staleness=(256,),
        algorithms=("m2po",),
        seeds=2,
        updates=100,
        settings=_SMALL,
        variants=_one_at_a_time(TAU, "tau", (0.01, 0.04)),
        series="variant",
    ),
)


def runs_of(experiments: Sequence[Experiment]) -> list[Run]:
    """Each once, whichever of them want it."""
    runs: dict[str, Run] = {}
    for experiment in experiments:
        for run in experiment.runs():
            first = runs.setdefault(run.name, run)
            if first.settings != run.settings:
                raise ValueError(f"experiment {experiment.name}: {run.name} has other settings elsewhere")
    return list(runs.values())


def chosen(name: str) -> tuple[Experiment, ...]:
    """Those that STUDY names: all, quick, one, or with report none."""
    named = {"all": FULL, "quick": QUICK, "report": (), **{experiment.name: (experiment,) for experiment in FULL}}
    if name not in named:
        raise ValueError(f"STUDY: expected one of {', '.join(named)}, found \"{name}\"")
    return named[name]
