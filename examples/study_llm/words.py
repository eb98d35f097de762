# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Which words the preset m2po drops from recorded batches."""

from __future__ import annotations

import collections
import json
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import rft
from safetensors import safe_open

TENSORS = ("logprob", "old_logprob", "advantages", "mask")


@dataclass
class Words:
    """Counts of tokens, by their text."""

    batches: int = 0
    valid: collections.Counter[str] = field(default_factory=collections.Counter)
    dropped: collections.Counter[str] = field(default_factory=collections.Counter)

    def most_dropped(self, count: int) -> list[str]:
        return [text for text, _ in sorted(self.dropped.items(), key=lambda item: (-item[1], item[0]))[:count]]


def count(paths: Iterable[pathlib.Path]) -> Words:
    loss = rft.PolicyLoss.from_preset("m2po")
    words = Words()
    for path in paths:
        with safe_open(path, "numpy") as file:
            batch = rft.Batch(*(file.get_tensor(name) for name in TENSORS))
            text = json.loads(file.metadata()["token_text"])
        kept = loss.select_evaluate(batch).mask
        words.batches += 1
        for row, column in zip(*batch.mask.nonzero()):
            words.valid[text[row][column]] += 1
            words.dropped[text[row][column]] += not kept[row, column]
    words.dropped = +words.dropped
    return words
