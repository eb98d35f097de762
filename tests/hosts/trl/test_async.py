# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""AsyncGRPOTrainer, training a tiny model on the CPU with rollouts that were made before.

Stand-ins: the attention kernel, which is one for GPUs, and the name of the GPU that throughput is
measured against; no server of vLLM.
"""

from __future__ import annotations

import queue
import random
import types

import literal
import numpy
import pytest
import ranks
import steps
import tiny
import torch
import trl.experimental.async_grpo as async_grpo
from trl.experimental.async_grpo import async_grpo_trainer, packing
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

import rft
from rft.hosts.trl_async import PluginAsyncGRPOConfig, PluginAsyncGRPOTrainer


def attention(query, key, value, cu_q, cu_k, _max_q, _max_k, softmax_scale, causal, window_size):
    """flash_attn_varlen_func: [N, heads, size]; each segment attends to its own keys, ends aligned."""
    assert causal and window_size == (-1, -1)
    parts = []
    for i in range(len(cu_q) - 1):
        q, k, v = (
            x[cu[i] : cu[i + 1]].transpose(0, 1)
            for x, cu in ((query, cu_q), (key, cu_k), (value, cu_k))
        )
        rows, columns = q.size(1), k.size(1)
        seen = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
        parts.append(
            torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=seen, scale=softmax_scale, enable_gqa=True
            ).transpose(0, 1)
        )
    return torch.cat(parts)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    kernel = types.SimpleNamespace(flash_attn_varlen_func=attention)
    monkeypatch.setattr(packing, "_flash_attn", lambda: kernel)
    monkeypatch.setattr(async_grpo_trainer, "get_peak_flops_per_device", lambda *_: None)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tiny.save(tmp_path_factory.mktemp("model"))


def sample(index, unscored=False):
    """Number `index` of the rollouts: a prompt that its group shares, and some tokens of a tool."""
    shared, noise = random.Random(f"group {index // 2}"), random.Random(index)
    prompt = [shared.randrange(3, 20) for _ in range(4)]
    completion = [noise.randrange(3, 20) for _ in range(noise.randrange(3, 12))]
    ids = torch.tensor([prompt + completion])
    with torch.no_grad():
        exact = steps.logprob(tiny.model(), ids, torch.ones_like(ids))[0]
    old = [0.0] + [float(value) + noise.gauss(0, 0.3) for value in exact]
    mask = [0] * len(prompt) + [int(noise.random() < 0.9) for _ in completion]
    if unscored:
        old[mask.index(1)] = float("nan")
    return RolloutSample(
        prompt=[{"role": "user", "content": ""}],
        completion=[{"role": "assistant", "content": ""}],
        input_ids=ids[0].numpy(),
        completion_mask=numpy.array(mask),
        old_log_probs=numpy.array(old, dtype=numpy.float32),
        advantage=noise.choice([-1.5, -0.5, 0.5, 1.5]),
        model_version=0,
        group_id=index // 2,
        metrics={"reward": 0.0},
    )


class Worker:
    """Rollouts 0 to 63, at once."""

    def __init__(self, unscored=()):
        self.rollout_buffer, self.metrics_queue = queue.Queue(), queue.Queue()
        for index in range(64):
            self.rollout_buffer.put(sample(index, index in unscored))

    def start(self): ...
    def stop(self): ...
    def update_model_version(self, model_version): ...
    def check_health(self, stale_after_s):
        raise AssertionError("the queue is empty")


class NoTransfer:
    def init_weight_transfer(self): ...
    def pause(self): ...
    def send_weights(self, iterator): ...
    def resume(self): ...
    def destroy(self): ...


class Recorded(PluginAsyncGRPOTrainer):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.recorder, self.forward_passes = steps.Recorder(self), 0
        self.accelerator.unwrap_model(self.model).register_forward_hook(self._count_pass)

    def _count_pass(self, *_args):
        self.forward_passes += 1


def config(directory, **named):
    return PluginAsyncGRPOConfig(
        **{"output_dir": str(directory), "token_budget": 0, **steps.CPU, **named}
    )


def train(directory, model, unscored=(), **named):
    trainer = Recorded(
        model,
        args=config(directory, **named),
        train_dataset=[{"prompt": ""}],
        rollout_worker=Worker(unscored),
        weight_transfer=NoTransfer(),
    )
    trainer.train()
    return trainer.recorder.steps, trainer.state.log_history, trainer.forward_passes


def split(size, accumulation):
    return {"per_device_train_batch_size": size, "gradient_accumulation_steps": accumulation}


def tokens(recorded):
    """Of one step, of all ranks: log-prob, behavior log-prob, advantage, mask, mask of the selection,
    [1, M] each, ordered by the behavior log-probs, of which each token has one of its own."""
    rows = []
    for step in recorded:
        for batch, mask in zip(step.batches, step.masks):
            parts = (batch.old_logprob, batch.logprob, batch.advantages, batch.mask, mask)
            rows += zip(*(part.tolist() for part in parts))
    rows.sort()
    old, logprob, advantages, mask, keep = (torch.tensor([column]) for column in zip(*rows))
    return logprob, old, advantages, mask, keep


def written_out(recorded, index, keep=None):
    """Step number `index`, of the rollouts 8 index to 8 index + 7, without a trainer."""
    model, rows = steps.model_with(recorded[0].weights), []
    for rollout in map(sample, range(8 * index, 8 * index + 8)):
        ids = torch.from_numpy(rollout.input_ids)[None]
        logprob = steps.logprob(model, ids, torch.ones_like(ids))[0]
        for position in rollout.completion_mask.nonzero()[0].tolist():
            old = float(rollout.old_log_probs[position])
            rows.append((old, logprob[position - 1], rollout.advantage))
    rows.sort(key=lambda row: row[0])
    old, logprob, advantages = zip(*rows)
    old, logprob = torch.tensor([old]), torch.stack(logprob)[None]
    advantages, valid = torch.tensor([advantages]), torch.ones_like(old, dtype=torch.bool)
    if keep is None:
        keep = literal.keep_mask(logprob.detach(), old, advantages, valid)
    loss = literal.loss(logprob, old, advantages, keep, keep.numel())
    return keep, steps.gradient_of(loss, model)


SPLITS_AND_SCOPES = [(1, 1, "optimizer_batch"), (2, 4, "micro_batch"), (2, 2, "optimizer_batch")]
SPLITS = [(1, 8, 1), (1, 4, 2), (1, 2, 4), (2, 4, 1), (2, 2, 2), (2, 1, 4)]


@pytest.mark.parametrize(("world", "size", "accumulation"), SPLITS)
def test_mask_and_gradient_are_those_written_out(tmp_path, directory, world, size, accumulation):
    results = ranks.run(
        world, tmp_path, lambda: train(tmp_path, directory, **split(size, accumulation))
    )
    for index, recorded in enumerate(zip(*(recorded for recorded, *_ in results), strict=True)):
        keep, gradient = written_out(recorded, index)
        assert torch.equal(tokens(recorded)[-1], keep)
        assert 0 < int(keep.sum()) < keep.numel()
        assert all(steps.distance(step.gradient, gradient) < 1e-5 for step in recorded)
    assert index == 1
    # One more pass for the selection, but where the loss has the log-probs of the whole batch.
    passes = 2 * accumulation * (1 if accumulation == 1 else 2)
    assert all(forward_passes == passes for *_, forward_passes in results)


@pytest.mark.parametrize("world", [1, 2])
def test_micro_batch_scope_selects_in_each_and_divides_by_the_tokens_of_all(
    tmp_path, directory, world
):
    named = {"selection_scope": "micro_batch", "max_steps": 1, **split(4 // world, 2)}
    results = ranks.run(world, tmp_path, lambda: train(tmp_path, directory, **named))
    first = [recorded[0] for recorded, *_ in results]
    for step in first:
        for batch, mask in zip(step.batches, step.masks):
            row = (batch.logprob, batch.old_logprob, batch.advantages, batch.mask)
            assert torch.equal(mask[None], literal.keep_mask(*(x[None] for x in row)))
    *_, keep = tokens(first)
    _, gradient = written_out(first, 0, keep)
    assert all(steps.distance(step.gradient, gradient) < 1e-5 for step in first)
    assert all(forward_passes == 2 for *_, forward_passes in results)


def test_a_mean_over_sequences_is_one_over_those_of_the_step(tmp_path, directory):
    args = {"loss_agg_mode": "seq-mean-token-mean", "m2_threshold": 1e9}
    gradients = []
    for world, accumulation, scope in SPLITS_AND_SCOPES:
        named = {"selection_scope": scope, "policy_loss_fn_args": args, "max_steps": 1}
        named |= split(8 // world // accumulation, accumulation)
        results = ranks.run(world, tmp_path, lambda: train(tmp_path, directory, **named))
        gradients.append(results[0][0][0].gradient)
    assert all(steps.distance(gradient, gradients[0]) < 1e-5 for gradient in gradients[1:])


def test_rows_of_a_token_budget_give_what_is_written_out(tmp_path, directory):
    """TRL's own packing, where the number of rollouts of a step is open."""
    named = {"token_budget": 48, **split(4, 2)}
    ((recorded, _, _),) = ranks.run(1, tmp_path, lambda: train(tmp_path, directory, **named))
    for step in recorded:
        logprob, old, advantages, mask, keep = tokens([step])
        assert torch.equal(keep, literal.keep_mask(logprob, old, advantages, mask))


def test_preset_grpo_gives_the_gradient_of_trl_itself(tmp_path, directory):
    """On one micro-batch; TRL's own mean is one of micro-batches."""

    def by_trl():
        args = async_grpo.AsyncGRPOConfig(
            output_dir=str(tmp_path), token_budget=0, **steps.CPU, **split(8, 1)
        )
        trainer = async_grpo.AsyncGRPOTrainer(
            directory,
            args=args,
            train_dataset=[{"prompt": ""}],
            rollout_worker=Worker(),
            weight_transfer=NoTransfer(),
        )
        gradients = steps.Gradients(trainer)
        trainer.train()
        return [step.gradient for step in gradients.steps]

    named = {"preset": "grpo", **split(8, 1)}
    ((ours, _, _),) = ranks.run(1, tmp_path, lambda: train(tmp_path, directory, **named))
    (theirs,) = ranks.run(1, tmp_path, by_trl)
    assert len(ours) == len(theirs) == 2
    for step, gradient in zip(ours, theirs):
        assert steps.distance(step.gradient, gradient) < 1e-5


def test_a_token_without_a_rollout_log_prob_is_no_valid_token(tmp_path, directory):
    named = {"unscored": (1, 2), "max_steps": 1, **split(4, 2)}
    ((_, log, _),) = ranks.run(1, tmp_path, lambda: train(tmp_path, directory, **named))
    trained = sum(int(sample(index).completion_mask.sum()) for index in range(8))
    assert log[0]["m2po/valid_tokens"] == trained - 2


def test_metrics_are_logged_beside_those_of_trl(tmp_path, directory):
    results = ranks.run(2, tmp_path, lambda: train(tmp_path, directory, **split(2, 2)))
    recorded, (first, *_), _ = results[0]
    _, _, _, mask, keep = tokens([recorded[0] for recorded, *_ in results])
    assert first["m2po/valid_tokens"] == int(mask.sum()) == first["batch/trained_tokens_per_step"]
    assert first["m2po/masked_tokens"] == int((mask & ~keep).sum())
    assert first["m2po/m2_after"] <= 0.04 < first["m2po/m2_before"]
    assert first["entropy"] > 0 and first["perf/fwd_bwd_s"] > 0
    assert not any(name.startswith("clip_ratio") for name in first)


@pytest.mark.parametrize(
    ("key", "value"),
    [("epsilon", 0.1), ("epsilon_high", 0.28), ("selection_scope", "batch")]
    + [("preset", "m2po_areal"), ("policy_loss_fn_args", {"tau": 0.1})],
)
def test_a_mode_that_is_not_served_is_refused_by_its_key(tmp_path, key, value):
    with pytest.raises(rft.RftError, match=key):
        config(tmp_path, **{key: value})


def test_a_config_of_trl_is_refused(tmp_path, directory):
    args = async_grpo.AsyncGRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False)
    with pytest.raises(rft.RftError, match="args: expected a PluginAsyncGRPOConfig, found Async"):
        PluginAsyncGRPOTrainer(directory, args=args)
