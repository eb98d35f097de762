# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""In place of flash-attn, which needs a GPU: the functions of its module bert_padding that verl 0.8
packs batches with, in plain torch."""
