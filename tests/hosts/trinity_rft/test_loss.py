# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import logging

import batches
import literal
import numpy
import pytest
import rollouts
import tiny
import torch
from trinity.algorithm import ADVANTAGE_FN

from rft import RftError

MODEL = tiny.model()


def gradient(loss: torch.Tensor) -> list[torch.Tensor]:
    return torch.autograd.grad(loss, list(MODEL.parameters()))


def by_hand(tensors, experiences) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Mask and gradient of Algorithm 1 as the paper has it."""
    logprob, mask = batches.current(MODEL, experiences), tensors["response_mask"]
    old, advantages = tensors["rollout_log_probs"], tensors["advantages"]
    keep = literal.keep_mask(logprob.detach(), old, advantages, mask)
    return keep, gradient(literal.loss(logprob, old, advantages, keep, int(mask.sum())))


def total(metrics, name: str) -> float:
    return sum(float(part[f"actor/{name}"].aggregate()) for part in metrics)


@pytest.mark.parametrize(("micro_batch", "ranks"), [(8, 1), (4, 1), (2, 1), (1, 1), (2, 2)])
def test_gradient_is_the_hand_written_one_for_any_micro_batches_and_ranks(micro_batch, ranks):
    function = batches.advantage()
    batch, experiences = batches.of(MODEL, function)
    batch, _ = function(batch)
    keep, expected = by_hand(batch.batch, experiences)
    assert 0 < int(keep.sum()) < int(batch.batch["response_mask"].sum())
    assert torch.equal(batch.batch["rft_keep"], keep)
    assert batch.batch["old_log_probs"] is batch.batch["rollout_log_probs"]
    parts, metrics = zip(*batches.losses(MODEL, batch, experiences, micro_batch, ranks))
    for found, wanted in zip(gradient(sum(parts) / ranks), expected):
        assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-6)
    assert total(metrics, "pg_loss") == pytest.approx(float(sum(parts)))


@pytest.mark.parametrize("scope", ["optimizer_batch", "micro_batch"])
def test_micro_batches_without_a_valid_token_add_nothing(scope):
    function = batches.advantage(selection_scope=scope)
    batch, experiences = batches.of(MODEL, function, bypass=scope == "micro_batch")
    batch.batch["response_mask"][4:] = 0
    batch, _ = function(batch)
    keep, expected = by_hand(batch.batch, experiences)
    assert 0 < int(keep.sum()) < int(batch.batch["response_mask"].sum())
    parts, _ = zip(*batches.losses(MODEL, batch, experiences, 4, selection_scope=scope))
    for found, wanted in zip(gradient(sum(parts)), expected):
        assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", ["seq-mean-token-sum-norm", "seq-mean-token-mean"])
def test_a_mean_over_sequences_is_one_over_those_of_the_step(mode):
    function = batches.advantage(loss_agg_mode=mode)
    batch, experiences = batches.of(MODEL, function)
    batch.batch["response_mask"][5] = 0
    batch, _ = function(batch)
    whole, parts = (
        sum(loss for loss, _ in batches.losses(MODEL, batch, experiences, size, loss_agg_mode=mode))
        for size in (8, 1)
    )
    assert float(whole) == pytest.approx(float(parts), rel=1e-5)


def test_metrics_have_trinitys_names_and_are_those_of_the_optimizer_batch():
    function = batches.advantage()
    batch, experiences = batches.of(MODEL, function)
    batch, _ = function(batch)
    (_, whole), *_ = batches.losses(MODEL, batch, experiences, 8)
    metrics = [metrics for _, metrics in batches.losses(MODEL, batch, experiences, 2)]
    names = ["pg_loss", "ppo_kl", "ratio/mean", "ratio/max", "ratio/min", "m2po/m2_before"]
    names += ["m2po/m2_after", "m2po/masked_fraction", "m2po/trust_region_fraction"]
    assert {f"actor/{name}" for name in names} <= whole.keys()
    for name in ("pg_loss", "ppo_kl", "ratio/mean"):
        assert total(metrics, name) == pytest.approx(float(whole[f"actor/{name}"].aggregate()))
    assert 0 < whole["actor/m2po/m2_after"].aggregate() <= 0.04
    assert whole["actor/m2po/m2_before"].aggregate() > 0.04


def test_micro_batch_scope_selects_within_each_and_divides_by_the_whole_batch():
    args = {"selection_scope": "micro_batch"}
    function = batches.advantage(**args)
    batch, experiences = batches.of(MODEL, function, bypass=True)
    batch, _ = function(batch)
    tensors, n = batch.batch, int(batch.batch["response_mask"].sum())
    parts = [loss for loss, _ in batches.losses(MODEL, batch, experiences, 2, **args)]
    logprob, keeps = batches.current(MODEL, experiences), []
    old, advantages = tensors["rollout_log_probs"], tensors["advantages"]
    for part in torch.arange(8).split(2):
        mask = tensors["response_mask"][part]
        keeps.append(literal.keep_mask(logprob[part].detach(), old[part], advantages[part], mask))
    expected = literal.loss(logprob, old, advantages, torch.cat(keeps), n)
    assert not torch.equal(torch.cat(keeps), by_hand(tensors, experiences)[0])
    for found, wanted in zip(gradient(sum(parts)), gradient(expected)):
        assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_another_preset_selects_nothing_and_clips():
    function = batches.advantage(preset="grpo")
    batch, experiences = batches.of(MODEL, function)
    batch, _ = function(batch)
    assert torch.equal(batch.batch["rft_keep"], batch.batch["response_mask"].bool())
    parts, metrics = zip(*batches.losses(MODEL, batch, experiences, 4, preset="grpo"))
    logprob, mask = batches.current(MODEL, experiences), batch.batch["response_mask"].bool()
    ratio, a = torch.exp(logprob - batch.batch["old_log_probs"]), batch.batch["advantages"]
    surrogate = torch.maximum(-a * ratio, -a * ratio.clamp(0.8, 1.2))
    expected = torch.where(mask, surrogate, 0.0).sum() / mask.sum()
    assert float(sum(parts)) == pytest.approx(float(expected), rel=1e-5)
    assert total(metrics, "pg_clipfrac") > 0


def test_advantages_are_those_of_the_group_function():
    ours, _ = batches.advantage().process(rollouts.stale(MODEL))
    trinitys, _ = ADVANTAGE_FN.get("grpo")().process(rollouts.stale(MODEL))
    assert all(torch.equal(a.advantages, b.advantages) for a, b in zip(ours, trinitys))


def test_refuses_an_optimizer_step_of_a_part_of_the_train_step():
    function = batches.advantage()
    batch, experiences = batches.of(MODEL, function)
    batch, _ = function(batch)
    with pytest.raises(RftError, match="buffer.train_batch_size"):
        batches.losses(MODEL, batch[:4], experiences[:4], 4)


@pytest.mark.parametrize(
    ("missing", "key"),
    [
        ("rollout_log_probs", "rollout_args.logprobs"),
        ("advantages", "data_processor.experience_pipeline.operators"),
    ],
)
def test_refuses_experiences_that_lack_something(missing, key):
    function = batches.advantage()
    batch, _ = batches.of(MODEL, function)
    batch.batch.pop(missing)
    with pytest.raises(RftError, match=key):
        function(batch)


def test_refuses_log_probs_that_the_trainer_did_not_recompute():
    function = batches.advantage()
    batch, _ = batches.of(MODEL, function, bypass=True)
    with pytest.raises(RftError, match="algorithm.bypass_old_logprobs: expected false"):
        function(batch)


@pytest.mark.parametrize(("version", "warned"), [(7, False), (3, True)])
def test_warns_of_a_second_moment_of_0_where_rollouts_are_older_than_the_policy(
    version, warned, caplog
):
    function = batches.advantage()
    batch, _ = batches.of(MODEL, function)
    batch.batch["old_log_probs"] = batch.batch["rollout_log_probs"].clone()
    batch.meta_info["model_versions"] = numpy.array([7] * 7 + [version])
    with caplog.at_level(logging.WARNING, logger="rft"):
        function(batch)
    assert ("m2_before is exactly 0" in caplog.text) is warned


@pytest.mark.parametrize("moved", [False, True])
def test_micro_batches_that_select_for_themselves_warn_of_it_too(moved, caplog):
    function = batches.advantage(selection_scope="micro_batch")
    batch, experiences = batches.of(MODEL, function)
    tensors = batch.batch
    if not moved:
        tensors["rollout_log_probs"] = tensors["old_log_probs"].clone()
    batch, _ = function(batch)
    with caplog.at_level(logging.WARNING, logger="rft"):
        batches.losses(MODEL, batch, experiences, 4, selection_scope="micro_batch")
    assert ("m2_before is exactly 0" in caplog.text) is not moved
