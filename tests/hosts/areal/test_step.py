# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Optimizer steps of AReaL's FSDP engine: what is selected, and the gradient."""

from __future__ import annotations

import literal
import pytest
import torch
import world

NO_CLIP = {"eps_clip": 1e9}


def selected(actor: world.Watched) -> torch.Tensor:
    ((_, _, keep),) = actor.selections
    return keep & actor.selections[0][0]["loss_mask"].bool()


@pytest.fixture(scope="module")
def hand(batch) -> world.Hand:
    return world.by_hand(batch)


@pytest.fixture(scope="module")
def kept(hand) -> torch.Tensor:
    return literal.keep_mask(hand.logprob.detach(), hand.old_logprob, hand.advantages, hand.mask)


@pytest.mark.parametrize("micro_batches", [1, 3, 8])
def test_the_mask_and_the_gradient_are_algorithm_1_s_in_any_number_of_micro_batches(
    start, batch, hand, kept, micro_batches
):
    actor = start(m2_threshold=0.04, micro_batches=micro_batches, **NO_CLIP)
    statistics = world.update(actor, batch)
    assert statistics["ppo_actor/update/num_micro_batches"] == micro_batches
    size = kept.shape[1]
    assert torch.equal(selected(actor)[:, :size], kept)
    dropped = int((hand.mask & ~kept).sum())
    assert statistics["ppo_actor/update/m2po/masked_tokens"] == dropped > 0
    n = int(hand.mask.sum())
    expected = hand.gradients(
        literal.loss(hand.logprob, hand.old_logprob, hand.advantages, kept, n)
    )
    world.assert_close(world.gradients(actor), expected)


@pytest.mark.parametrize("micro_batches", [1, 8])
def test_the_plugin_s_own_loss_has_the_same_gradient(start, batch, hand, kept, micro_batches):
    actor = start(m2_threshold=0.04, policy_loss="plugin", micro_batches=micro_batches)
    statistics = world.update(actor, batch)
    n = int(hand.mask.sum())
    loss = literal.loss(hand.logprob, hand.old_logprob, hand.advantages, kept, n)
    world.assert_close(world.gradients(actor), hand.gradients(loss))
    assert statistics["ppo_actor/update/m2po/tokens"] == n
    assert statistics["ppo_actor/update/m2po/ratio_mean"] > 0


def test_areal_s_ppo_clip_runs_after_the_selection(start, batch, hand, kept):
    actor = start(m2_threshold=0.04, eps_clip=0.1, micro_batches=2)
    world.update(actor, batch)
    ratio = torch.exp(hand.logprob - hand.old_logprob)
    clipped = ratio.clamp(0.9, 1.1)
    gain = torch.minimum(ratio * hand.advantages, clipped * hand.advantages)
    loss = -torch.where(kept, gain, 0.0).sum() / int(hand.mask.sum())
    world.assert_close(world.gradients(actor), hand.gradients(loss))


def test_areal_s_sapo_runs_after_the_selection(start, batch, hand, kept):
    actor = start(m2_threshold=0.04, use_sapo_loss=True, micro_batches=2)
    world.update(actor, batch)
    ratio = torch.exp(hand.logprob - hand.old_logprob)
    tau = torch.where(hand.advantages > 0, 1.0, 1.05)
    gain = 4 / tau * torch.sigmoid(tau * (ratio - 1)) * hand.advantages
    loss = -torch.where(kept, gain, 0.0).sum() / int(hand.mask.sum())
    world.assert_close(world.gradients(actor), hand.gradients(loss))


def test_decoupled_ppo_takes_the_recomputed_log_probs_as_current_ones(start, batch, hand, kept):
    actor = start(m2_threshold=0.04, use_decoupled_loss=True, **NO_CLIP)
    world.update(actor, batch)
    assert actor.extra_passes == 1  # AReaL's own, for the proximal policy
    assert torch.equal(selected(actor)[:, : kept.shape[1]], kept)
    n = int(hand.mask.sum())
    loss = literal.loss(hand.logprob, hand.logprob, hand.advantages, kept, n)
    world.assert_close(world.gradients(actor), hand.gradients(loss))


def test_every_minibatch_is_selected_with_the_policy_before_its_own_step(start, batch):
    actor = start(m2_threshold=0.04, use_decoupled_loss=True, ppo_n_minibatches=2)
    world.update(actor, batch)
    first, second = (logprobs - data["prox_logp"] for data, logprobs, _ in actor.selections)
    assert actor.extra_passes == 2  # AReaL's, and one for the second minibatch
    assert first.abs().max() == 0 and second.abs().max() > 0


def test_without_a_threshold_the_step_is_areal_s(start, batch):
    from areal.api.cli_args import PPOActorConfig

    ours = start(micro_batches=3)
    world.update(ours, batch)
    assert ours.extra_passes == 0
    found = world.weights(ours)
    theirs = start(PPOActorConfig, micro_batches=3)
    world.update(theirs, batch)
    for name, weight in world.weights(theirs).items():
        assert torch.equal(weight, found[name]), name


def test_a_micro_batch_scope_needs_no_extra_pass_and_selects_each_part_alone(start, batch, hand):
    actor = start(m2_threshold=0.04, selection_scope="micro_batch", micro_batches=8, **NO_CLIP)
    world.update(actor, batch)
    assert actor.extra_passes == 0 and len(actor.selections) == 8
    whole = hand.logprob.detach(), hand.old_logprob, hand.advantages, hand.mask
    kept = torch.cat([literal.keep_mask(*rows) for rows in zip(*(t.split(1) for t in whole))])
    n = int(hand.mask.sum())
    loss = literal.loss(hand.logprob, hand.old_logprob, hand.advantages, kept, n)
    world.assert_close(world.gradients(actor), hand.gradients(loss))


def test_a_step_of_which_nothing_is_kept_changes_nothing(start, batch):
    actor = start(m2_threshold=0.0, policy_loss_fn_args={"selection": "all_tokens"})
    before = world.weights(actor)
    world.update(actor, batch)
    assert not selected(actor).any()
    assert all(torch.equal(before[name], after) for name, after in world.weights(actor).items())


def test_stale_data_with_a_second_moment_of_0_is_warned_of(start, batch, capsys):
    warning = "m2_before is exactly 0 over 44 valid tokens"
    world.update(start(m2_threshold=0.04), batch)
    assert warning not in capsys.readouterr().err
    actor = start(m2_threshold=0.04)
    same = [dict(trajectory) for trajectory in batch]
    for trajectory, logprobs in zip(same, actor.compute_logp(same)):
        trajectory["logprobs"] = torch.roll(logprobs, 1, -1)
    world.update(actor, same)
    assert warning in capsys.readouterr().err


@pytest.fixture(scope="module")
def half_masked(batch) -> list:
    """Every second sequence has no valid token: alone in a micro-batch, it has no loss."""
    return [
        {**trajectory, "loss_mask": trajectory["loss_mask"] * (number % 2)}
        for number, trajectory in enumerate(batch)
    ]


@pytest.mark.parametrize("scope", ["optimizer_batch", "micro_batch"])
@pytest.mark.parametrize("policy_loss", ["areal", "plugin"])
def test_micro_batches_without_a_valid_token_add_nothing(start, half_masked, policy_loss, scope):
    actor = start(
        m2_threshold=0.04,
        policy_loss=policy_loss,
        selection_scope=scope,
        micro_batches=8,
        **({} if policy_loss == "plugin" else NO_CLIP),
    )
    world.update(actor, half_masked)
    hand = world.by_hand(half_masked)
    whole = hand.logprob.detach(), hand.old_logprob, hand.advantages, hand.mask
    parts = [whole] if scope == "optimizer_batch" else zip(*(t.split(1) for t in whole))
    kept = torch.cat([literal.keep_mask(*rows) for rows in parts])
    n = int(hand.mask.sum())
    loss = literal.loss(hand.logprob, hand.old_logprob, hand.advantages, kept, n)
    world.assert_close(world.gradients(actor), hand.gradients(loss))


@pytest.mark.parametrize("scope", ["optimizer_batch", "micro_batch"])
def test_a_mean_over_sequences_is_one_over_those_of_the_step(start, half_masked, scope):
    """Of the plugin's loss, whatever share of the tokens a micro-batch has."""
    args = {"loss_agg_mode": "seq-mean-token-mean"}
    actor = start(
        m2_threshold=1e9,
        policy_loss="plugin",
        policy_loss_fn_args=args,
        selection_scope=scope,
        micro_batches=3,
    )
    world.update(actor, half_masked)
    hand = world.by_hand(half_masked)
    tokens = torch.exp(hand.logprob - hand.old_logprob) * hand.advantages * hand.mask
    means = tokens.sum(1) / hand.mask.sum(1).clamp(min=1)
    loss = -means.sum() / int(hand.mask.any(1).sum())
    world.assert_close(world.gradients(actor), hand.gradients(loss))
