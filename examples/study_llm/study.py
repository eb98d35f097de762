# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Reinforcement learning of a small language model from old rollouts, with and without a mask.

usage: study.py all|search|report|quick DIRECTORY     through study.sh, which sets the environment up

Makes the runs that DIRECTORY/runs does not have yet, then tables and plots in DIRECTORY/report.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence

import torch
from transformers.utils import logging

import experiments
import model
import report
from progress import Progress
from run import Line, Run
from settings import Settings

THREADS = 2  # the same bits wherever there are as many

MODES = {
    "all": {"Comparison": experiments.COMPARISON, "Search": experiments.SEARCH},
    "search": {"Search": experiments.SEARCH},
    "quick": {"Quick": experiments.QUICK},
}


def describe(settings: Settings, line: Line) -> str:
    accuracy = f", held-out {line['accuracy']:.2f}" if "accuracy" in line else ""
    lost = line["masked_fraction"] + line["clip_fraction"]
    return (
        f"{settings.name()} update {line['update']}, reward {line['fresh_reward']:.2f}{accuracy}, "
        f"m2 {line['m2_before']:.3f}, without gradient {lost:.1%}"
    )


def train(runs: Sequence[Settings], directory: pathlib.Path) -> None:
    """Those that are not finished yet, one after the other."""
    done = report.finished(runs, directory)
    missing = [settings for settings in runs if settings not in done]
    if not missing:
        return
    (directory / "runs").mkdir(parents=True, exist_ok=True)
    progress = Progress(sum(settings.updates for settings in missing))
    base, tokenizer = model.load_policy(), model.load_tokenizer()
    for settings in missing:
        run = Run(settings, directory / "runs", base, tokenizer)
        progress.skip(run.updates_done())
        run.train(lambda line: progress.step(describe(settings, line)))
    progress.end()


def main(mode: str, directory: pathlib.Path) -> int:
    torch.set_num_threads(THREADS)
    logging.disable_progress_bar()
    parts = MODES["all" if mode == "report" else mode]
    if mode != "report":
        train(list(dict.fromkeys(settings for runs in parts.values() for settings in runs)), directory)
    print(report.make(parts, directory), end="")
    print(f"\n{os.path.relpath(directory / 'report')}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
