# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the plugin holds where it holds most: every token is of the trust region, and over tau."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import growth
import native
from batches import ORDERS, Outputs, draw
from cases import OURS, Case, Row, allowed_bytes
from plugin import Plugin, Prepared
from timing import Contender

REGIME = "all over tau"
TOKENS = 48_000 << 10  # no number that parts of lists fit, so that they have room to spare


def measure(plugins: Sequence[Plugin]) -> Case:
    """Not timed."""
    tokens = min(TOKENS, 1 << growth.exponents()[-1])
    drawn = draw(ORDERS[REGIME], tokens)
    batch = replace(drawn, advantages=drawn.logprob - drawn.old_logprob)
    outputs = Outputs.like(batch)
    case = Case(tokens, REGIME, batch.trust_region_tokens, [])
    for plugin in plugins:
        prepared = Prepared(plugin, batch, outputs)
        calls = {
            f"m2po, {plugin.best}": plugin.one_pass(plugin.best, prepared),
            f"m2po, {plugin.best}, separate calls": plugin.separate(plugin.best, prepared),
        }
        for name, call in calls.items():
            extra = native.extra_memory(call)
            contender = Contender(name, plugin.threads, call)
            case.rows.append(Row(OURS, contender, allowed_bytes(batch), extra))
    return case
