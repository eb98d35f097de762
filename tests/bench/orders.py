# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Orders of tokens that could cost more than others, beside the batch as drawn."""

from __future__ import annotations

from collections.abc import Callable

from batches import ORDERS, Outputs, draw
from plugin import Plugin, Prepared
from timing import Contender, take_turns

TOKENS = 1 << 20
ROUNDS = 11


def steps() -> int:
    return ROUNDS * len(ORDERS)


def measure(plugin: Plugin, step: Callable[[], None]) -> dict[str, Contender]:
    found = {}
    for name, order in ORDERS.items():
        batch = draw(order, TOKENS)
        prepared = Prepared(plugin, batch, Outputs.like(batch))
        call = plugin.one_pass(plugin.best, prepared)
        found[name] = Contender(name, plugin.threads, call)
    take_turns(list(found.values()), ROUNDS, step)
    return found
