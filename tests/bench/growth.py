# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Time against tokens, and its plot."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Callable

import native
import peers
from batches import REGIMES, Batch, Outputs, draw
from plugin import Plugin, Prepared
from timing import Contender, take_turns

REGIME = "stale"
EXPONENTS = range(12, 28)
LAST_OF_PEERS = 22  # beyond, they need minutes
RULES = ("sort, trust-region tokens", "no mask")
ROUNDS = 5

# Of a token while the batch is drawn: float64 numbers, and the float32 batch twice.
BYTES_A_TOKEN = 48

Growth = dict[int, list[Contender]]  # by number of tokens


def exponents() -> list[int]:
    """Those for which the memory is there."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":") for line in lines)
    available = int(fields["MemAvailable"].split()[0]) << 10
    return [e for e in EXPONENTS if BYTES_A_TOKEN << e <= available]


def steps() -> int:
    return sum(ROUNDS * (2 + len(RULES) * (e <= LAST_OF_PEERS)) for e in exponents())


def _contenders(plugin: Plugin, batch: Batch, outputs: Outputs) -> list[Contender]:
    calls: dict[str, Callable] = {
        "floor": native.floor(plugin.registry, batch, outputs),
        "m2po": plugin.one_pass(plugin.best, Prepared(plugin, batch, outputs)),
    }
    if batch.tokens <= 1 << LAST_OF_PEERS:
        for name in RULES:
            calls[name] = peers.prepared(peers.RULES[name], batch)
    return [Contender(name, plugin.threads, call) for name, call in calls.items()]


def measure(plugin: Plugin, begin: Callable[[str], None], step: Callable[[], None]) -> Growth:
    """One batch, of which each size is the beginning."""
    sizes = exponents()
    begin(f"growth, drawing 2^{sizes[-1]} tokens")
    whole = draw(REGIMES[REGIME], 1 << sizes[-1])
    outputs = Outputs.like(whole)
    growth: Growth = {}
    for exponent in sizes:
        begin(f"growth, 2^{exponent} tokens")
        batch = whole.first(1 << exponent)
        growth[batch.tokens] = _contenders(plugin, batch, outputs.first(batch))
        take_turns(growth[batch.tokens], ROUNDS, step)
    return growth


def plot(growth: Growth, directory: pathlib.Path) -> pathlib.Path:
    """Draws growth.svg from growth.tsv: tokens, then nanoseconds a token for each contender."""
    names = [contender.name for contender in growth[min(growth)]]
    lines = ["\t".join(["tokens", *names])]
    for tokens, contenders in growth.items():
        values = {c.name: f"{1e9 * c.seconds / tokens:.4f}" for c in contenders}
        lines.append("\t".join([str(tokens), *(values.get(name, "nan") for name in names)]))
    (directory / "growth.tsv").write_text("\n".join(lines) + "\n")
    script = pathlib.Path(__file__).with_name("growth.gp")
    subprocess.run(["gnuplot", "-e", f"directory='{directory}'", script], check=True)
    return directory / "growth.svg"
