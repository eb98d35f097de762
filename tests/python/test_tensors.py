# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors travel as they are: any strides, offsets and dtypes, no copy."""

from __future__ import annotations

import numpy
import pytest
import torch

import rft
from rft import _abi, numpy_arrays, torch_arrays
from vectors import recorded

FILE = "smollm2_k16.safetensors"


def outcome(batch: rft.Batch) -> tuple:
    """All that a loss says of one batch, as plain numbers."""
    loss = rft.PolicyLoss.from_preset("m2po")
    masks, report = loss.select([batch])
    result = loss.evaluate(batch, masks[0], report.reduction())
    return masks[0].tolist(), report.metrics, result.loss, result.gradient.tolist()


def plain() -> rft.Batch:
    return rft.Batch(**recorded(FILE))


def shifted(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in a slice of something larger."""
    room = torch.zeros(tensor.shape[0] + 3, tensor.shape[1] + 5, dtype=tensor.dtype)
    view = room[2:-1, 4:-1]
    view.copy_(tensor)
    return view


def apart(tensor: torch.Tensor) -> torch.Tensor:
    """The same values with others between them."""
    room = torch.zeros(tensor.shape[0], tensor.shape[1], 3, dtype=tensor.dtype)
    room[:, :, 1] = tensor
    return room[:, :, 1]


LAYOUTS = {
    "transposed": lambda tensor: tensor.t().contiguous().t(),
    "in a slice": shifted,
    "with others between": apart,
    "behind an odd offset": lambda tensor: torch.cat([tensor.new_zeros(1), tensor.flatten()])[
        1:
    ].view(tensor.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_torch_tensors_of_any_layout(layout) -> None:
    laid_out = rft.Batch(**{name: LAYOUTS[layout](t) for name, t in recorded(FILE).items()})
    assert outcome(laid_out) == outcome(plain())


def test_numpy_arrays_are_as_good() -> None:
    arrays = {name: tensor.numpy() for name, tensor in recorded(FILE).items()}
    assert outcome(rft.Batch(**arrays)) == outcome(plain())


def test_numpy_arrays_with_negative_strides() -> None:
    arrays = {
        name: tensor.numpy()[::-1, ::-1].copy()[::-1, ::-1]
        for name, tensor in recorded(FILE).items()
    }
    assert arrays["logprob"].strides[0] < 0
    assert outcome(rft.Batch(**arrays)) == outcome(plain())


def test_numpy_arrays_that_are_read_only() -> None:
    arrays = {name: tensor.numpy().copy() for name, tensor in recorded(FILE).items()}
    for array in arrays.values():
        array.flags.writeable = False
    assert outcome(rft.Batch(**arrays)) == outcome(plain())


def test_advantages_of_a_sequence_each() -> None:
    tensors = dict(recorded(FILE))
    each = tensors["advantages"][:, :1].contiguous()
    whole = outcome(rft.Batch(**{**tensors, "advantages": each.expand(-1, 32)}))
    assert outcome(rft.Batch(**{**tensors, "advantages": each})) == whole
    assert outcome(rft.Batch(**{**tensors, "advantages": each[:, 0]})) == whole


@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.uint8, torch.int32, torch.int64, torch.float32]
)
def test_masks_of_any_dtype(dtype) -> None:
    tensors = recorded(FILE)
    assert outcome(rft.Batch(**{**tensors, "mask": tensors["mask"].to(dtype)})) == outcome(plain())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numbers_of_16_bits_are_widened(dtype) -> None:
    tensors = dict(recorded(FILE))
    for name in ("logprob", "old_logprob", "advantages"):
        tensors[name] = tensors[name].to(dtype)
    narrow = outcome(rft.Batch(**tensors))
    assert narrow == outcome(
        rft.Batch(**{n: t.float() if n != "mask" else t for n, t in tensors.items()})
    )


def test_packed_sequences() -> None:
    tensors = recorded(FILE)
    lengths = tensors["mask"].shape[1]
    packed = {name: tensor.flatten() for name, tensor in tensors.items()}
    for dtype in (torch.int32, torch.int64):
        ends = torch.arange(0, 128 * lengths + 1, lengths, dtype=dtype)
        masks, metrics, loss, gradient = outcome(rft.Batch(**packed, cu_seqlens=ends))
        whole = outcome(plain())
        assert metrics == whole[1] and loss == whole[2]
        assert masks == [kept for row in whole[0] for kept in row]
        assert gradient == [value for row in whole[3] for value in row]


def test_the_library_reads_the_tensor_s_own_memory() -> None:
    tensor = torch.arange(12.0).reshape(3, 4)[1:, ::2]
    view = torch_arrays.view(tensor, "t").tensor
    assert view.data == tensor.data_ptr() and view.byte_offset == 0
    assert (list(view.shape[:2]), list(view.strides[:2])) == ([2, 2], [4, 2])
    assert (view.dtype.code, view.dtype.bits, view.dtype.lanes) == (_abi.DTYPE_FLOAT, 32, 1)
    array = numpy.arange(12.0).reshape(3, 4)[::-1]
    view = numpy_arrays.view(array, "a").tensor
    assert view.data == array.ctypes.data and list(view.strides[:2]) == [-4, 1]


def test_inputs_are_not_written() -> None:
    batch = plain()
    before = {name: tensor.clone() for name, tensor in recorded(FILE).items()}
    outcome(batch)
    assert all(torch.equal(before[name], getattr(batch, name)) for name in before)


def test_numbers_stored_with_the_other_sign() -> None:
    tensors = dict(recorded(FILE))
    stored = torch.complex(torch.zeros_like(tensors["logprob"]), -tensors["logprob"])
    tensors["logprob"] = stored.conj().imag
    assert tensors["logprob"].is_neg()
    assert outcome(rft.Batch(**tensors)) == outcome(plain())


REFUSED = {
    "complex": (
        torch.zeros(2, 3, dtype=torch.complex64),
        "logprob: expected bool, integers or floats",
    ),
    "sparse": (
        torch.zeros(2, 3).to_sparse(),
        "logprob: expected a dense tensor, found torch.sparse_coo",
    ),
    "meta": (torch.zeros(2, 3, device="meta"), "logprob: expected a tensor with data"),
    "list": ([[0.0] * 3] * 2, "logprob: expected a torch.Tensor or numpy.ndarray, found list"),
    "big-endian": (
        numpy.zeros((2, 3), ">f4"),
        "logprob: expected bool, integers or floats in the machine",
    ),
    "object": (numpy.zeros((2, 3), object), "logprob: expected bool, integers or floats"),
    "odd strides": (
        numpy.zeros((2, 3), [("a", "<f4"), ("b", "u1")])["a"],
        "logprob: expected strides that are multiples of 4 bytes",
    ),
    "wrong shape": (torch.zeros(2, 4), "expected the shape of logprob, [2, 4], found [2, 3]"),
    "integers": (torch.zeros(2, 3, dtype=torch.int64), "logprob"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_can_not_be_read_is_refused_by_name(kind) -> None:
    logprob, words = REFUSED[kind]
    ones = torch.ones(2, 3)
    loss = rft.PolicyLoss.from_preset("m2po")
    for attempt in (lambda b: loss.select([b]), loss.evaluate):
        with pytest.raises(rft.RftError) as caught:
            attempt(rft.Batch(logprob, ones, ones, ones))
        assert caught.value.code == rft.Code.INVALID_ARGUMENT
        assert words in str(caught.value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tensors_on_a_device_are_copied_once_each_way() -> None:
    tensors = recorded(FILE)
    batch = rft.Batch(**{name: tensor.cuda() for name, tensor in tensors.items()})
    loss = rft.PolicyLoss.from_preset("m2po")
    masks, report = loss.select([batch])
    numbers = 128 * 32
    assert masks[0].is_cuda
    assert report.metrics[rft.COPIED_BYTES] == numbers * (3 * 4 + 1) + numbers
    metrics = loss.metrics(report)
    result = loss.evaluate(batch, masks[0], report.reduction(), metrics)
    assert result.gradient.is_cuda
    assert (
        metrics.as_dict()[rft.COPIED_BYTES] == 2 * numbers * (3 * 4 + 1) + 2 * numbers + 4 * numbers
    )
    on_cpu = outcome(plain())
    assert (masks[0].tolist(), result.loss, result.gradient.tolist()) == (
        on_cpu[0],
        on_cpu[2],
        on_cpu[3],
    )
