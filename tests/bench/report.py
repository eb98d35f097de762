# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What was found, as text and as JSON."""

from __future__ import annotations

import json
import os
import pathlib
import platform
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from cases import FLOOR, OURS, PEER, Case, Row
from growth import Growth
from orders import TOKENS as ORDER_TOKENS
from timing import Contender

NAME_WIDTH = 30
NOISY_SPREAD = 0.1  # of repeated runs of the floor

HEADINGS = {
    OURS: "the plugin, in times the floor",
    PEER: "rules in torch, in times the plugin",
}


def size(tokens: int) -> str:
    """64 Ki, 8 Mi."""
    return f"{tokens >> 20} Mi" if tokens >= 1 << 20 else f"{tokens >> 10} Ki"


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


# ------------------------------------------------------------------------------------------- text


def _cell(case: Case, row: Row) -> str:
    contender = row.contender
    ratio = "" if row.kind == FLOOR else f"{case.ratio(row):.2f}"
    ratio = ratio if len(ratio) < 6 else f"{case.ratio(row):.0f}"
    return f"{1e3 * contender.seconds:10.3f} {100 * contender.spread:3.0f}% {ratio:>6}"


def table(cases: Sequence[Case], threads: int) -> Iterator[str]:
    """The lines for one size: a row a contender, three columns a regime."""
    heading = f"{size(cases[0].tokens)} tokens, {counted(threads, 'thread')}"
    regimes = "".join(f"{case.regime:>22}" for case in cases)
    yield f"{heading:{NAME_WIDTH}}{regimes}{'extra':>9}"
    yield " " * NAME_WIDTH + f"{'ms':>10} {'+-':>4} {'x':>6}" * len(cases) + f"{'MiB':>9}"
    kind = FLOOR
    for row in cases[0].rows:
        name = row.contender.name
        if row.contender.threads != threads:
            continue
        if row.kind != kind:
            kind = row.kind
            yield f"  {HEADINGS[kind]}"
        same = [case.find(name, threads) for case in cases]
        mebibytes = max(r.extra_bytes for r in same) / (1 << 20)
        cells = "".join(_cell(case, r) for case, r in zip(cases, same))
        yield name.ljust(NAME_WIDTH) + cells + f"{mebibytes:9.1f}"


def scaling(cases: Sequence[Case]) -> Iterator[str]:
    """How many times as fast the most threads are as one."""
    most = max(row.contender.threads for row in cases[0].rows)
    if most == 1:
        return
    yield f"{most} threads, times as fast as one:"
    for case in cases:
        floor, ours = (row.contender for row in case.rows[:2])
        gains = [one.seconds / case.find(one.name, most).contender.seconds for one in (floor, ours)]
        yield (
            f"{size(case.tokens):>5} tokens, {case.regime:10}  "
            f"floor {gains[0]:.2f}  {ours.name} {gains[1]:.2f}"
        )


def memory(cases: Sequence[Case]) -> tuple[str, bool]:
    """The row that comes nearest to what is allowed, and whether all are within it."""
    part, case, row = max(
        (
            (row.extra_bytes / row.allowed_bytes, case, row)
            for case in cases
            for row in case.rows
            if row.allowed_bytes is not None
        ),
        key=lambda found: found[0],
    )
    within = part <= 1
    where = f"{size(case.tokens)} tokens, {case.regime}, {counted(row.contender.threads, 'thread')}"
    lines = (
        f"Extra memory of the plugin: {'within' if within else 'ABOVE'} 4 bytes a trust-region "
        "token + 2 bits a position + 1 MiB.",
        f"Nearest to it: {row.extra_bytes} of {row.allowed_bytes} bytes, {100 * part:.0f} % "
        f"({row.contender.name}; {where}).",
    )
    return "\n".join(lines), within


def orders_table(orders: dict[str, Contender]) -> Iterator[str]:
    heading = f"{size(ORDER_TOKENS)} tokens, 1 thread"
    yield f"{heading:{NAME_WIDTH}}{'ns a token':>10} {'+-':>4}"
    for name, contender in orders.items():
        nanoseconds = 1e9 * contender.seconds / ORDER_TOKENS
        yield f"{name:{NAME_WIDTH}}{nanoseconds:10.3f} {100 * contender.spread:3.0f}%"


def noise(cases: Sequence[Case]) -> str | None:
    """A warning, where the floor itself is not the same from one turn to the next."""
    spreads = [row.contender.spread for case in cases for row in case.rows if row.kind == FLOOR]
    noisy = sum(spread > NOISY_SPREAD for spread in spreads)
    if noisy == 0:
        return None
    return (
        f"warning: this machine is noisy: in {noisy} of {len(spreads)} cases the quartiles of the "
        f"floor lie more than {100 * NOISY_SPREAD:.0f} % apart, at most "
        f"{100 * max(spreads):.0f} %. Run it again when nothing else runs."
    )


# ------------------------------------------------------------------------------------------- JSON


def processor() -> str:
    """Its name, as the kernel has it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def machine() -> dict[str, Any]:
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _timed(contender: Contender) -> dict[str, Any]:
    return {
        "name": contender.name,
        "threads": contender.threads,
        "seconds": contender.seconds,
        "quartiles": contender.quartiles,
        "turns": contender.turns,
    }


def _row(case: Case, row: Row) -> dict[str, Any]:
    record = {"kind": row.kind, **_timed(row.contender), "extra_bytes": row.extra_bytes}
    if row.kind != FLOOR:
        record["ratio"] = case.ratio(row)
        record["ratio_to"] = case.reference(row).contender.name
    if row.allowed_bytes is not None:
        record["allowed_bytes"] = row.allowed_bytes
    return record


def as_json(
    cases: Sequence[Case],
    orders: dict[str, Contender] | None,
    growth: Growth | None,
    full: Case | None,
) -> str:
    document: dict[str, Any] = {
        "machine": machine(),
        "noisy": noise(cases) is not None,
        "cases": [
            {
                "tokens": case.tokens,
                "regime": case.regime,
                "trust_region_tokens": case.trust_region_tokens,
                "rows": [_row(case, row) for row in case.rows],
            }
            for case in cases
        ],
    }
    if orders is not None:
        document["orders"] = [{"tokens": ORDER_TOKENS, **_timed(c)} for c in orders.values()]
    if growth is not None:
        document["growth"] = [
            {"tokens": tokens, "rows": [_timed(c) for c in contenders]}
            for tokens, contenders in growth.items()
        ]
    if full is not None:
        document["fullest"] = {
            "tokens": full.tokens,
            "regime": full.regime,
            "rows": [
                {
                    "name": row.contender.name,
                    "threads": row.contender.threads,
                    "extra_bytes": row.extra_bytes,
                    "allowed_bytes": row.allowed_bytes,
                }
                for row in full.rows
            ],
        }
    return json.dumps(document, indent=1) + "\n"
