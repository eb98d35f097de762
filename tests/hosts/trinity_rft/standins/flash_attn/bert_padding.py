# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Rows of a padded batch, packed and unpacked."""

import torch

rearrange = None  # verl takes it from here, and does not call it


def index_first_axis(tensor, indices):
    """The rows of [n, ...] at indices."""
    return tensor[indices]


def unpad_input(tensor, mask):
    """[B, T, ...] and a mask [B, T]: the packed rows, where they were, int32 cu_seqlens, the longest."""
    lengths = mask.sum(-1, dtype=torch.int32)
    indices = mask.flatten().nonzero().flatten()
    cu_seqlens = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    packed = tensor.flatten(0, 1)[indices]
    return packed, indices, cu_seqlens, int(lengths.max()), lengths


def pad_input(packed, indices, batch, length):
    """The other way around: [B, T, ...]."""
    padded = packed.new_zeros(batch * length, *packed.shape[1:])
    padded[indices] = packed
    return padded.unflatten(0, (batch, length))
