# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Selection and loss in one call: what the separate calls give."""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Any

import pytest
import torch

import rft
from threads import Threads
from vectors import recorded, rows, split

FILE = "smollm2_k16.safetensors"


def attached(tensors: dict[str, Any]) -> rft.Batch:
    """The tensors with a logprob that requires its gradient."""
    return rft.Batch(**{**tensors, "logprob": tensors["logprob"].clone().requires_grad_()})


def separately(loss: rft.PolicyLoss, tensors: dict[str, Any], scale: float = 1.0) -> tuple:
    (mask,), report = loss.select([rft.Batch(**tensors)])
    return mask, report, loss.evaluate(rft.Batch(**tensors), mask, report.reduction(scale))


@pytest.fixture
def reinforce(tmp_path) -> rft.PolicyLoss:
    """A loss that selects nothing, of a plugin without the extension."""
    shutil.copy(pathlib.Path(os.environ["BUILD"]) / "fixtures" / "good.so", tmp_path)
    return rft.PolicyLoss.from_config("reinforce", registry=rft.Registry([tmp_path]))


@pytest.mark.parametrize("preset", ["m2po", "m2po_areal", "grpo"])
@pytest.mark.parametrize("file", [FILE, "smollm2_k0_bf16weights.safetensors"])
def test_one_call_gives_what_separate_calls_do(preset, file) -> None:
    loss, tensors = rft.PolicyLoss.from_preset(preset), recorded(file)
    if preset == "m2po_areal":
        tensors = {**tensors, "proximal_logprob": tensors["old_logprob"] + 0.01}
    mask, report, separate = separately(loss, tensors, 2.0)
    batch = attached(tensors)
    found = loss.select_evaluate(batch, scale=2.0)
    assert torch.equal(found.mask, mask) and found.mask.dtype == torch.bool
    assert found.report == report
    assert found.loss.shape == () and found.loss.dtype == torch.float32
    assert float(found.loss) == pytest.approx(separate.loss, rel=1e-6)
    assert torch.allclose(found.gradient, separate.gradient, rtol=1e-6, atol=0)
    (3 * found.loss).backward()
    assert torch.equal(batch.logprob.grad, 3 * found.gradient)


def test_the_plugin_has_the_functions_and_the_fixture_has_not(reinforce) -> None:
    assert rft.PolicyLoss.from_preset("m2po").one_pass is not None
    assert reinforce.one_pass is None


def test_numpy_arrays_give_numbers() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    found, expected = loss.select_evaluate(rft.Batch(**arrays)), separately(loss, tensors)
    assert (found.mask == expected[0].numpy()).all() and found.report == expected[1]
    assert isinstance(found.loss, float) and found.loss == pytest.approx(expected[2].loss, rel=1e-6)
    assert torch.allclose(
        torch.from_numpy(found.gradient), expected[2].gradient, rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_dtypes_that_no_fast_path_has(dtype) -> None:
    loss = rft.PolicyLoss.from_preset("m2po")
    tensors = {n: t if n == "mask" else t.to(dtype) for n, t in recorded(FILE).items()}
    mask, report, separate = separately(loss, tensors)
    found = loss.select_evaluate(attached(tensors))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert found.loss.dtype == found.gradient.dtype == wide
    assert torch.equal(found.mask, mask) and found.report == report
    assert torch.allclose(found.gradient, separate.gradient, rtol=1e-6, atol=0)


def test_without_gradients_there_is_only_the_value() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)
    with torch.no_grad():
        found = loss.select_evaluate(attached(tensors))
    assert found.gradient is None and not found.loss.requires_grad
    assert float(found.loss) == pytest.approx(separately(loss, tensors)[2].loss, rel=1e-6)


def test_metrics_hold_both_parts() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)
    batch = rft.Batch(**tensors)
    (mask,), report = loss.select([batch])
    expected, found = loss.metrics(report), loss.metrics()
    loss.evaluate(batch, mask, report.reduction(), expected)
    loss.select_evaluate(batch, metrics=found)
    for name, value in expected.as_dict().items():
        assert found.as_dict()[name] == pytest.approx(value, rel=1e-12), name


def test_a_plugin_without_the_function_is_called_twice() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)
    expected = separately(loss, tensors)
    loss.one_pass = None
    metrics = loss.metrics()
    found = loss.select_evaluate(attached(tensors), metrics=metrics)
    assert torch.equal(found.mask, expected[0]) and found.report == expected[1]
    assert torch.equal(found.gradient, expected[2].gradient) and found.loss.requires_grad
    assert metrics.as_dict()["masked_tokens"] == found.report.metrics["masked_tokens"]


def test_a_loss_that_selects_nothing_keeps_every_valid_token(reinforce) -> None:
    tensors = recorded(FILE)
    found = reinforce.select_evaluate(attached(tensors))
    assert torch.equal(found.mask, tensors["mask"])
    expected = -tensors["advantages"] * tensors["mask"] / int(tensors["mask"].sum())
    assert torch.allclose(found.gradient, expected, rtol=1e-6, atol=0)


# ------------------------------------------------------------------------------------------ groups


@pytest.mark.parametrize("bounds", [[0, 40, 128], [0, 0, 128], [0, 50, 50, 128]], ids=str)
def test_ranks_give_what_one_process_does(bounds) -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)
    mask, report, separate = separately(loss, tensors)
    batches = [rows(tensors, first, last) for first, last in zip(bounds, bounds[1:])]
    found = Threads(len(batches)).run(
        lambda rank, group: loss.select_evaluate(attached(vars(batches[rank])), group)
    )
    assert torch.equal(torch.cat([part.mask for part in found]), mask)
    assert all(part.report == report for part in found)
    assert sum(float(part.loss) for part in found) == pytest.approx(separate.loss, rel=1e-6)
    gradient = torch.cat([part.gradient for part in found])
    assert torch.allclose(gradient, separate.gradient, rtol=1e-6, atol=0)


def spoilt(name: str) -> Any:
    tensors = recorded(FILE)
    if name == "no batch":
        return None
    if name == "a dtype":
        return rft.Batch(**{**tensors, "logprob": tensors["logprob"].to(torch.complex64)})
    if name == "a shape":
        return rft.Batch(**{**tensors, "old_logprob": tensors["old_logprob"][:-1]})
    return rft.Batch(**{**tensors, "advantages": torch.full_like(tensors["advantages"], torch.nan)})


@pytest.mark.parametrize("fault", ["no batch", "a dtype", "a shape", "a value"])
def test_a_rank_that_fails_fails_all(fault) -> None:
    loss = rft.PolicyLoss.from_preset("m2po")

    def work(rank: int, group: rft.Collectives) -> object:
        if rank != 1:
            return loss.select_evaluate(attached(recorded(FILE)), group)
        with pytest.raises((rft.RftError, AttributeError, TypeError)) as caught:
            loss.select_evaluate(spoilt(fault), group)
        return caught.value

    found = Threads(3).run(work)
    assert getattr(found[1], "code", None) != rft.Code.ABORTED
    for rank in (0, 2):
        assert found[rank].code == rft.Code.ABORTED and "on 1 of 3 ranks" in str(found[rank])


def test_a_transport_that_raises_is_the_cause() -> None:
    def broken(_values) -> None:
        raise OSError("the cable is out")

    loss = rft.PolicyLoss.from_preset("m2po")
    with pytest.raises(rft.RftError) as caught:
        loss.select_evaluate(rft.Batch(**recorded(FILE)), rft.Collectives(1, 2, broken))
    assert caught.value.code == rft.Code.UNAVAILABLE
    assert isinstance(caught.value.__cause__, OSError)


def test_a_loss_without_collectives_refuses_a_group() -> None:
    loss = rft.PolicyLoss.from_preset("m2po")
    table = type(loss.table).from_buffer_copy(loss.table)
    table.capabilities = 0
    loss.table = table
    with pytest.raises(rft.RftError, match="selects in one process only"):
        loss.select_evaluate(rft.Batch(**recorded(FILE)), Threads(2).rank(0))


def test_a_value_that_is_wrong_is_named() -> None:
    loss = rft.PolicyLoss.from_preset("m2po")
    with pytest.raises(rft.RftError, match="advantages") as caught:
        loss.select_evaluate(spoilt("a value"))
    assert caught.value.code == rft.Code.OUT_OF_RANGE


def test_an_evaluation_in_one_pass_names_what_is_wrong_and_spoils_nothing() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)
    parts = split(tensors, 64)
    _, report = loss.select(parts)
    metrics = loss.metrics(report)
    before = metrics.as_dict()
    with pytest.raises(rft.RftError, match="advantages"):
        loss(spoilt("a value"), None, report.reduction(), metrics)
    assert metrics.as_dict() == before
