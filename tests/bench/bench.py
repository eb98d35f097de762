# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the plugin costs on this machine, beside the memory floor and other ways of doing the same.

usage: bench.py quick|full DIRECTORY     through bench.sh, which sets the environment up

Prints the tables, and writes results.json and, when full, growth.svg to DIRECTORY.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch

import fullest
import growth
import orders
import report
from batches import REGIMES
from cases import Case, measure, row_count
from plugin import Plugin
from progress import Progress


@dataclass(frozen=True)
class Plan:
    rounds: dict[int, int]  #: by number of tokens
    threads: tuple[int, ...]
    more: bool  #: orders, growth and the fullest batch

    def available_threads(self) -> list[int]:
        cores = len(os.sched_getaffinity(0))
        return [threads for threads in self.threads if threads <= cores]


PLANS = {
    "quick": Plan({1 << 20: 7}, (1,), False),
    "full": Plan({1 << 16: 15, 1 << 20: 9, 1 << 23: 5}, (1, 2), True),
}


def count_steps(plan: Plan, plugins: Sequence[Plugin]) -> int:
    rows = sum(row_count(plugin) for plugin in plugins)
    more = orders.steps() + growth.steps() if plan.more else 0
    return len(REGIMES) * sum(plan.rounds.values()) * rows + more


def main(mode: str, directory: pathlib.Path) -> int:
    plan = PLANS[mode]
    plugins = [Plugin(threads) for threads in plan.available_threads()]
    progress = Progress(count_steps(plan, plugins))
    print(report.processor(), *plugins[0].losses, f"torch {torch.__version__}", sep=", ")
    cases: list[Case] = []
    for tokens, rounds in plan.rounds.items():
        for regime in REGIMES:
            progress.begin(f"{report.size(tokens)} tokens, {regime}")
            cases.append(measure(plugins, tokens, regime, rounds, progress.step))
        progress.end()
        for plugin in plugins:
            print("", *report.table(cases[-len(REGIMES) :], plugin.threads), sep="\n", flush=True)

    in_orders = grown = full = None
    if plan.more:
        progress.begin("orders")
        in_orders = orders.measure(plugins[0], progress.step)
        progress.end()
        print("", *report.orders_table(in_orders), sep="\n", flush=True)
        grown = growth.measure(plugins[0], progress.begin, progress.step)
        progress.begin("memory")
        full = fullest.measure(plugins)
    progress.end()

    lines = list(report.scaling(cases))
    if lines:
        print("", *lines, sep="\n")
    line, within = report.memory(cases if full is None else [*cases, full])
    print("", line, sep="\n")
    results = directory / "results.json"
    results.write_text(report.as_json(cases, in_orders, grown, full))
    print(f"\n{os.path.relpath(results)}")
    if grown is not None:
        print(os.path.relpath(growth.plot(grown, directory)))
        if max(grown) < 1 << growth.EXPONENTS[-1]:
            print(f"It ends at {report.size(max(grown))} tokens: there is no memory for more.")
    warning = report.noise(cases)
    if warning is not None:
        print(f"\n{warning}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
