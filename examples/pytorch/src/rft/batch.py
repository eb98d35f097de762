# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""One micro-batch, and what the library is given of it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from . import _abi
from .tensors import View, library_of

Array = Any  # torch.Tensor or numpy.ndarray


@dataclass(frozen=True)
class Batch:
    """One micro-batch: torch tensors or NumPy arrays, of any strides. They are read, never written.

    Padded: `logprob` is [B, T]. Packed: `logprob` is [n], with `cu_seqlens` [S + 1], int32 or
    int64, that starts at 0, never falls and ends with n. [n] without it is one sequence. The others
    have the shape of `logprob`; `advantages` too, or one value a sequence: [B] or [B, 1] ([S] or
    [S, 1] when packed).

    Log-probs and advantages: float16, bfloat16, float32, float64, mixed freely. Mask: bool, int8,
    uint8, int32, int64, where any non-zero is a valid token, or floats that are 0 or 1. Log-probs
    are natural logarithms of the sampled tokens' probabilities.
    """

    logprob: Array  #: under the current policy, before the step
    old_logprob: Array  #: under the behavior policy that generated the rollout
    advantages: Array
    mask: Array  #: response mask
    proximal_logprob: Array | None = None  #: under the proximal policy of decoupled PPO
    cu_seqlens: Array | None = None


class Borrowed:
    """A batch as the library reads it, and with it an optional mask of a selection.

    Tensors on a device are copied, to the CPU and once each; `copied_bytes` counts them.
    """

    def __init__(self, batch: Batch, kept: Array | None = None) -> None:
        given = {**vars(batch), "kept": kept}
        arrays = {name: array for name, array in given.items() if array is not None}
        libraries = {name: library_of(array, name) for name, array in arrays.items()}
        hosted = {name: libraries[name].to_host(array) for name, array in arrays.items()}
        for library in set(libraries.values()):
            library.wait_for([a for name, a in arrays.items() if libraries[name] is library])
        self.copied_bytes = sum(libraries[name].copied_bytes(a) for name, a in arrays.items())
        self._views: dict[str, View] = {
            name: libraries[name].view(array, name) for name, array in hosted.items()
        }
        self.struct = _abi.sized(
            _abi.Batch,
            **{
                name: ctypes.pointer(view.tensor)
                for name, view in self._views.items()
                if name != "kept"
            },
        )

    @property
    def kept(self) -> Any:
        """The mask, for a call; NULL where there is none."""
        view = self._views.get("kept")
        return None if view is None else view.pointer
