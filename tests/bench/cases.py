# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""One batch, and all that is compared on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

import native
import peers
from batches import REGIMES, Batch, Outputs, draw, packed_ends
from plugin import Plugin, Prepared
from timing import Contender, take_turns

FLOOR, OURS, PEER = "floor", "m2po", "peer"

# A position is dropped or kept by the last bits of a peer's float32 sums.
DIFFERING_POSITIONS = 1e-4


@dataclass
class Row:
    kind: str
    contender: Contender
    allowed_bytes: int | None = None  #: of extra memory
    extra_bytes: int = 0


@dataclass
class Case:
    tokens: int
    regime: str
    trust_region_tokens: int
    rows: list[Row]

    def find(self, name: str, threads: int) -> Row:
        for row in self.rows:
            if (row.contender.name, row.contender.threads) == (name, threads):
                return row
        raise KeyError((name, threads))

    def reference(self, row: Row) -> Row:
        """What a row is compared with: the floor, and for peers the plugin at its best."""
        threads = row.contender.threads
        ours = next(r for r in self.rows if r.kind == OURS and r.contender.threads == threads)
        return ours if row.kind == PEER else self.find(FLOOR, threads)

    def ratio(self, row: Row) -> float:
        return row.contender.seconds / self.reference(row).contender.seconds


def allowed_bytes(batch: Batch) -> int:
    """4 bytes a trust-region token, 2 bits a position, 1 MiB."""
    return 4 * batch.trust_region_tokens + batch.tokens // 4 + (1 << 20)


#: What the plugin is measured at besides float32 [B, T] in one call.
VARIANTS = ("with metrics", "separate calls", "bfloat16", "packed")


def row_count(plugin: Plugin) -> int:
    return 1 + len(plugin.losses) + len(VARIANTS) + len(peers.RULES)


class Comparison:
    """A batch in each of its forms, and buffers for the results."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.outputs = batch, Outputs.like(batch)
        self.half = batch.bfloat16()
        self.cu_seqlens = packed_ends(batch.tokens)

    def rows(self, plugin: Plugin) -> Iterator[Row]:
        def row(kind: str, name: str, call: Callable, allowed: int | None = None) -> Row:
            return Row(kind, Contender(name, plugin.threads, call), allowed)

        batch, outputs = self.batch, self.outputs
        yield row(FLOOR, FLOOR, native.floor(plugin.registry, batch, outputs))
        for name, call in self._ours(plugin):
            form = self.half if "bfloat16" in name else batch
            yield row(OURS, name, call, allowed_bytes(form))
        for name, rule in peers.RULES.items():
            yield row(PEER, name, peers.prepared(rule, batch))

    def _ours(self, plugin: Plugin) -> Iterator[tuple[str, Callable]]:
        batch, outputs, best = self.batch, self.outputs, plugin.best
        plain = Prepared(plugin, batch, outputs)
        for target in plugin.losses:
            yield f"m2po, {target}", plugin.one_pass(target, plain)
        with_metrics = Prepared(plugin, batch, outputs, metrics=True)
        half = Prepared(plugin, self.half, outputs)
        packed = Prepared(plugin, batch.flat(), outputs.flat(), self.cu_seqlens)
        variants = (
            plugin.one_pass(best, with_metrics),
            plugin.separate(best, plain),
            plugin.one_pass(best, half),
            plugin.one_pass(best, packed),
        )
        for name, call in zip(VARIANTS, variants):
            yield f"m2po, {best}, {name}", call

    def check(self, rows: Sequence[Row]) -> None:
        """Whoever is fast has to be right: all instruction sets, threads, layouts and calls give
        the same bits, and they are the positions that the paper's rule in torch keeps."""
        _, expected = peers.prepared(peers.trust_region, self.batch)()
        first: torch.Tensor | None = None
        for row in rows:
            if row.kind != OURS or "bfloat16" in row.contender.name:
                continue
            self.outputs.gradient.fill_(torch.nan)
            row.contender.call()
            found = self.outputs.gradient.clone()
            first = found if first is None else first
            if not torch.equal(found, first):
                raise SystemExit(
                    f"bench: {row.contender.name}, {self.batch.tokens} tokens: expected the "
                    "gradient of the plugin's first row, found another"
                )
        differing = int(((first != 0) != (expected != 0)).sum())
        if differing > DIFFERING_POSITIONS * self.batch.tokens:
            raise SystemExit(
                "bench: expected the plugin to keep what the trust-region rule in torch keeps, "
                f"found {differing} of {self.batch.tokens} positions to differ"
            )


def measure(
    plugins: Sequence[Plugin], tokens: int, regime: str, rounds: int, step: Callable[[], None]
) -> Case:
    """Every contender with every number of threads, in turns."""
    batch = draw(REGIMES[regime], tokens)
    comparison = Comparison(batch)
    rows = [row for plugin in plugins for row in comparison.rows(plugin)]
    comparison.check(rows)
    take_turns([row.contender for row in rows], rounds, step)
    for row in rows:
        row.extra_bytes = native.extra_memory(row.contender.call)
    return Case(tokens, regime, batch.trust_region_tokens, rows)
