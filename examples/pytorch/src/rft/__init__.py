# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Policy losses of RFT plugins, for PyTorch and NumPy.

loss = rft.PolicyLoss.from_preset("m2po")
masks, report = loss.select(batches, group)           # once per optimizer batch
for batch, mask in zip(batches, masks):
    loss(batch, mask, report.reduction()).backward()  # the parts add up
"""

from __future__ import annotations

from .batch import Batch
from .collectives import Collectives
from .errors import Code, RftError
from .evaluation import Evaluation, SelectedEvaluation
from .loss import PolicyLoss
from .metrics import COPIED_BYTES, Metrics
from .registry import Plugin, Refusal, Registry, default_registry
from .selection import ALONE, Reduction, Report, Selection

__all__ = [
    "ALONE",
    "COPIED_BYTES",
    "Batch",
    "Code",
    "Collectives",
    "Evaluation",
    "Metrics",
    "Plugin",
    "PolicyLoss",
    "Reduction",
    "Refusal",
    "Registry",
    "Report",
    "RftError",
    "SelectedEvaluation",
    "Selection",
    "default_registry",
]
