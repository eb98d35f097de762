# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Which runs there are."""

from __future__ import annotations

from settings import Settings

STALENESS = 16
LEARNING_RATE = 3e-5
SEEDS = (1, 2)

#: Where does training without a mask become unstable? And where it never learns, does it with one?
SEARCH = [
    Settings(algorithm, STALENESS, learning_rate, seed=1)
    for algorithm, learning_rate in (("no_mask", 3e-5), ("no_mask", 1e-4), ("m2po", 1e-4))
]

#: What do the algorithms make of that place?
COMPARISON = [
    Settings(algorithm, 0 if algorithm == "on_policy" else STALENESS, LEARNING_RATE, seed)
    for seed in SEEDS
    for algorithm in ("m2po", "grpo", "no_mask", "on_policy")
]

#: Everything once, in a minute or two.
QUICK = [
    Settings(algorithm, staleness, LEARNING_RATE, 1, updates=2, tokens=4, evaluate_every=1, record_every=1)
    for algorithm, staleness in (("m2po", 1), ("on_policy", 0))
]
