# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The loss in torch's graph, against the same loss written by hand."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import rft
from vectors import recorded, rows

ROWS, COLUMNS, FEATURES = 12, 9, 5


class Policy(torch.nn.Module):
    """Log-probs [B, T] of features [B, T, FEATURES]."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.hidden = torch.nn.Linear(FEATURES, 8)
        self.out = torch.nn.Linear(8, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.logsigmoid(self.out(torch.tanh(self.hidden(features)))).squeeze(
            -1
        )


class Rollout:
    """An optimizer batch whose behavior policy is another one."""

    def __init__(self, dtype: torch.dtype = torch.float64) -> None:
        generator = torch.Generator().manual_seed(7)
        self.policy = Policy().to(dtype)
        self.features = torch.randn(ROWS, COLUMNS, FEATURES, generator=generator).to(dtype)
        noise = torch.randn(ROWS, COLUMNS, generator=generator).to(dtype)
        self.advantages = torch.randn(ROWS, COLUMNS, generator=generator).to(dtype)
        lengths = torch.arange(ROWS).unsqueeze(1) % COLUMNS
        self.mask = torch.arange(COLUMNS).unsqueeze(0) < lengths
        with torch.no_grad():
            self.old = self.policy(self.features) + 0.4 * noise

    def batch(self, logprob: torch.Tensor, part: slice) -> rft.Batch:
        return rft.Batch(logprob, self.old[part], self.advantages[part], self.mask[part])

    def parts(self, size: int) -> list[slice]:
        return [slice(first, first + size) for first in range(0, ROWS, size)]

    def selection(self, loss: rft.PolicyLoss, size: int) -> rft.Selection:
        with torch.no_grad():
            return loss.select(
                self.batch(self.policy(self.features[part]), part) for part in self.parts(size)
            )

    def gradients(self) -> list[torch.Tensor]:
        found = [parameter.grad.clone() for parameter in self.policy.parameters()]
        self.policy.zero_grad()
        return found


def by_hand(rollout: Rollout, logprob: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """-(1/N) sum of kept A exp(logprob - old), N: the valid tokens of the whole batch."""
    ratio = torch.exp(logprob - rollout.old)
    return -(ratio * rollout.advantages)[kept].sum() / rollout.mask.sum()


def equal(found: list[torch.Tensor], expected: list[torch.Tensor], tolerance: float) -> bool:
    return all(
        torch.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(found, expected)
    )


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_the_gradient_is_the_hand_written_one_in_any_split(size) -> None:
    rollout, loss = Rollout(), rft.PolicyLoss.from_preset("m2po")
    masks, report = rollout.selection(loss, size)
    total = 0.0
    for part, mask in zip(rollout.parts(size), masks):
        value = loss(
            rollout.batch(rollout.policy(rollout.features[part]), part), mask, report.reduction()
        )
        assert value.shape == () and value.dtype == torch.float64
        value.backward()
        total += float(value)
    found = rollout.gradients()
    expected = by_hand(rollout, rollout.policy(rollout.features), torch.cat(masks))
    expected.backward()
    assert 0 < report.kept_tokens < report.valid_tokens == int(rollout.mask.sum())
    assert total == pytest.approx(float(expected), rel=1e-12)
    assert equal(found, rollout.gradients(), 1e-12)


def test_gradients_of_float32_are_the_library_s_to_the_bit() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded("smollm2_k8.safetensors")
    logprob = tensors["logprob"].clone().requires_grad_()
    batch = rft.Batch(**{**tensors, "logprob": logprob})
    masks, report = loss.select([batch])
    value = loss(batch, masks[0], report.reduction())
    value.backward()
    result = loss.evaluate(batch, masks[0], report.reduction())
    assert torch.equal(logprob.grad, result.gradient)
    assert value.dtype == torch.float32 and float(value) == pytest.approx(result.loss, rel=1e-7)


def test_what_comes_from_above_multiplies_the_gradient() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded("smollm2_k8.safetensors")
    gradients = []
    for factor in (1.0, 1024.0):
        logprob = tensors["logprob"].clone().requires_grad_()
        (factor * loss(rft.Batch(**{**tensors, "logprob": logprob}))).backward()
        gradients.append(logprob.grad)
    assert torch.equal(gradients[1], 1024 * gradients[0])


def test_a_loss_scale_reaches_gradients_that_16_bits_would_lose() -> None:
    tensors = {
        n: t if n == "mask" else t.half() for n, t in recorded("smollm2_k8.safetensors").items()
    }
    loss, logprob = rft.PolicyLoss.from_preset("m2po"), tensors["logprob"].clone().requires_grad_()
    tiny = rft.Reduction(valid_tokens=10**9)
    batch = rft.Batch(**{**tensors, "logprob": logprob})
    (loss(batch, None, tiny) * 2.0**15).backward()
    expected = (loss.evaluate(batch, None, tiny).gradient * 2.0**15).half()
    assert int((expected != 0).sum()) > 1000
    assert logprob.grad.dtype == torch.float16 and torch.equal(logprob.grad, expected)


def test_scale_is_a_factor() -> None:
    loss, batch = (
        rft.PolicyLoss.from_preset("m2po"),
        rft.Batch(**recorded("smollm2_k8.safetensors")),
    )
    masks, report = loss.select([batch])
    once = loss.evaluate(batch, masks[0], report.reduction())
    twice = loss.evaluate(batch, masks[0], report.reduction(scale=2.0))
    assert twice.loss == 2 * once.loss and torch.equal(twice.gradient, 2 * once.gradient)


def test_a_fully_masked_micro_batch_stays_attached() -> None:
    rollout, loss = Rollout(), rft.PolicyLoss.from_preset("m2po")
    part = slice(0, 1)
    assert not bool(rollout.mask[part].any())
    value = loss(rollout.batch(rollout.policy(rollout.features[part]), part))
    assert float(value) == 0.0 and value.requires_grad
    value.backward()
    assert all(not bool(gradient.any()) for gradient in rollout.gradients())


def test_junk_under_the_mask_reaches_no_gradient() -> None:
    rollout, loss = Rollout(), rft.PolicyLoss.from_preset("m2po")
    rollout.old[~rollout.mask] = float("nan")
    rollout.advantages[~rollout.mask] = float("inf")
    loss(rollout.batch(rollout.policy(rollout.features), slice(None))).backward()
    assert all(bool(gradient.isfinite().all()) for gradient in rollout.gradients())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_the_value_is_the_same(mode) -> None:
    rollout, loss = Rollout(), rft.PolicyLoss.from_preset("m2po")
    attached = loss(rollout.batch(rollout.policy(rollout.features), slice(None)))
    with mode():
        value = loss(rollout.batch(rollout.policy(rollout.features), slice(None)))
    assert not value.requires_grad and float(value) == float(attached)


def test_autocast_changes_the_model_and_not_the_loss() -> None:
    rollout, loss = Rollout(torch.float32), rft.PolicyLoss.from_preset("m2po")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        masks, report = rollout.selection(loss, ROWS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logprob = rollout.policy(rollout.features)
        value = loss(rollout.batch(logprob, slice(None)), masks[0], report.reduction())
    assert value.dtype == torch.float32
    value.backward()
    found = rollout.gradients()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logprob = rollout.policy(rollout.features)
    by_hand(rollout, logprob.float(), masks[0]).backward()
    assert equal(found, rollout.gradients(), 1e-2)


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not reentrant"])
@pytest.mark.parametrize("inside", [True, False], ids=["loss inside", "loss outside"])
def test_gradient_checkpointing(inside, reentrant) -> None:
    rollout, loss = Rollout(), rft.PolicyLoss.from_preset("m2po")
    masks, report = rollout.selection(loss, ROWS)

    def last(logprob: torch.Tensor) -> torch.Tensor:
        return loss(rollout.batch(logprob, slice(None)), masks[0], report.reduction())

    def whole(features: torch.Tensor) -> torch.Tensor:
        return last(rollout.policy(features))

    last(rollout.policy(rollout.features)).backward()
    expected = rollout.gradients()
    features = rollout.features.clone().requires_grad_()
    if inside:
        checkpoint(whole, features, use_reentrant=reentrant).backward()
    else:
        last(checkpoint(rollout.policy, features, use_reentrant=reentrant)).backward()
    assert equal(rollout.gradients(), expected, 0)


def test_a_second_derivative_is_refused() -> None:
    rollout, loss = Rollout(), rft.PolicyLoss.from_preset("m2po")
    logprob = rollout.policy(rollout.features)
    (first,) = torch.autograd.grad(
        loss(rollout.batch(logprob, slice(None))) ** 2, logprob, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_metrics_of_micro_batches_are_those_of_the_batch() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded("smollm2_k16.safetensors")
    found = []
    for size in (128, 9):
        batches = [rows(tensors, first, min(first + size, 128)) for first in range(0, 128, size)]
        masks, report = loss.select(batches)
        metrics = loss.metrics(report)
        for batch, mask in zip(batches, masks):
            loss(batch, mask, report.reduction(), metrics)
        found.append(metrics.as_dict())
    assert found[0].keys() == found[1].keys() and found[0]["tokens"] == report.valid_tokens
    for name, value in found[0].items():
        assert found[1][name] == pytest.approx(value, rel=1e-12), name
    assert found[0]["ratio_mean"] == pytest.approx(found[0]["ratio_sum"] / found[0]["tokens"])
    assert found[0][rft.COPIED_BYTES] == 0


def test_numpy_arrays_have_no_graph() -> None:
    arrays = {name: tensor.numpy() for name, tensor in recorded("smollm2_k8.safetensors").items()}
    with pytest.raises(rft.RftError, match="`evaluate` takes other arrays"):
        rft.PolicyLoss.from_preset("m2po")(rft.Batch(**arrays))


@pytest.mark.skipif(not hasattr(torch, "compiler"), reason="this torch has no compiler")
def test_a_compiled_step_breaks_its_graph_at_the_loss() -> None:
    rollout, loss = Rollout(), rft.PolicyLoss.from_preset("m2po")

    def step(features: torch.Tensor) -> torch.Tensor:
        return 2 * loss(rollout.batch(rollout.policy(features), slice(None)))

    step(rollout.features).backward()
    expected = rollout.gradients()
    torch.compile(step, backend="eager")(rollout.features).backward()
    assert equal(rollout.gradients(), expected, 1e-12)
