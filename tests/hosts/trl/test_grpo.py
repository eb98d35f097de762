# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""GRPOTrainer, training a tiny model on the CPU."""

from __future__ import annotations

import random

import accelerate
import datasets
import literal
import pytest
import ranks
import steps
import tiny
import torch
import transformers
import trl

import rft
from rft.hosts.trl import PluginGRPOConfig, PluginGRPOTrainer

PROMPTS = ["1+2=", "10+3=", "4*5=", "7-2="]


def reward(completions, **_columns):
    return [float(sum(map(ord, completion)) % 5) for completion in completions]


def rollouts(prompts, trainer):
    """Stale rollouts, the same for a prompt wherever it is: random completions, some of whose tokens
    the environment wrote, with log-probs that noise has moved away from those of the first policy."""
    tokenizer, policy, seen = trainer.processing_class, tiny.model().eval(), {}
    output = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_mask": []}
    for prompt in prompts:
        seen[prompt] = seen.get(prompt, 0) + 1
        noise = random.Random(f"{prompt} {seen[prompt]}")
        prompt_ids = tokenizer(prompt).input_ids
        completion_ids = [noise.randrange(3, 20) for _ in range(noise.randrange(3, 12))]
        ids = torch.tensor([prompt_ids + completion_ids])
        with torch.no_grad():
            exact = steps.logprob(policy, ids, torch.ones_like(ids))[0, len(prompt_ids) - 1 :]
        output["prompt_ids"].append(prompt_ids)
        output["completion_ids"].append(completion_ids)
        output["logprobs"].append([float(value) + noise.gauss(0, 0.3) for value in exact])
        output["env_mask"].append([int(noise.random() < 0.9) for _ in completion_ids])
    return output


def without_a_log_prob(prompts, trainer):
    """vLLM gives None for a log-prob that came out as NaN."""
    output = rollouts(prompts, trainer)
    output["logprobs"][0][1] = None
    return output


def of_one_prompt(prompts, trainer):
    """All other completions are the environment's, token by token."""
    output = rollouts(prompts, trainer)
    for prompt, mask in zip(prompts, output["env_mask"]):
        mask[:] = [int(prompt == PROMPTS[0])] * len(mask)
    return output


class Recorded(PluginGRPOTrainer):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.recorder, self.forward_passes = steps.Recorder(self), 0

    def _compute_loss(self, model, inputs):
        self.recorder.steps[-1].inputs.append(inputs)
        return super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(self, *args, **named):
        self.forward_passes += 1
        return super()._get_per_token_logps_and_entropies(*args, **named)


def config(directory, **named):
    return PluginGRPOConfig(**{"output_dir": str(directory), **steps.CPU, **named})


def make(cls, args, rollout_func=None, model=None):
    return cls(
        tiny.model() if model is None else model,
        reward,
        args,
        train_dataset=datasets.Dataset.from_dict({"prompt": PROMPTS}),
        processing_class=tiny.tokenizer(),
        rollout_func=rollout_func,
    )


def train(directory, rollout_func=rollouts, **named):
    trainer = make(Recorded, config(directory, **named), rollout_func)
    trainer.train()
    return trainer.recorder.steps, trainer.state.log_history, trainer.forward_passes


def whole(recorded):
    """The micro-batches of one step, of all ranks, padded to one length: ids, attention mask, batch
    and mask of the selection."""
    rows = []
    for step in recorded:
        for inputs, batch, mask in zip(step.inputs, step.batches, step.masks):
            for i in range(len(mask)):
                prompt = inputs["prompt_ids"][i][inputs["prompt_mask"][i] != 0]
                n = int(inputs["completion_mask"][i].sum())
                row = [inputs["completion_ids"], batch.logprob, batch.old_logprob, batch.mask, mask]
                rows.append((prompt, *(x[i, :n] for x in row), batch.advantages[i]))
    # The same order for every split, by what the completions are.
    rows.sort(key=lambda row: (row[0].tolist(), row[1].tolist()))
    prompts, completions, *tensors, advantages = zip(*rows)
    ids = [torch.cat(pair) for pair in zip(prompts, completions)]
    width = max(map(len, ids))
    attention = torch.stack([(torch.arange(width) < len(row)).long() for row in ids])
    padded = [torch.nn.utils.rnn.pad_sequence(list(x), batch_first=True) for x in tensors]
    ids = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    logprob, old_logprob, mask, keep = padded
    batch = rft.Batch(logprob, old_logprob, torch.stack(advantages), mask)
    return ids, attention, [len(prompt) for prompt in prompts], batch, keep


def written_out(recorded, keep=None):
    """The step without a trainer: mask of Algorithm 1 (or `keep`), and gradient."""
    ids, attention, starts, batch, _ = whole(recorded)
    keep = steps.keep_mask(batch) if keep is None else keep
    model = steps.model_with(recorded[0].weights)
    every = steps.logprob(model, ids, attention)
    width = batch.logprob.size(1)
    rows = [
        torch.nn.functional.pad(row, (0, width))[start - 1 :][:width]
        for row, start in zip(every, starts)
    ]
    logprob = torch.where(batch.mask, torch.stack(rows), 0.0)
    assert torch.allclose(logprob, torch.where(batch.mask, batch.logprob, 0.0), atol=1e-4)
    loss = literal.loss(
        logprob, batch.old_logprob, batch.advantages[:, None], keep, int(batch.mask.sum())
    )
    return keep, steps.gradient_of(loss, model)


def check(per_rank):
    """Every step of every rank against the one written out."""
    assert per_rank[0]
    for recorded in zip(*per_rank):
        keep, gradient = written_out(recorded)
        *_, ours = whole(recorded)
        assert torch.equal(ours, keep)
        for step in recorded:
            assert steps.distance(step.gradient, gradient) < 1e-5


SPLITS_AND_SCOPES = [(1, 1, "optimizer_batch"), (2, 4, "micro_batch"), (2, 2, "optimizer_batch")]
SPLITS = [(1, 8, 1), (1, 4, 2), (1, 2, 4), (1, 1, 8), (2, 4, 1), (2, 2, 2), (2, 1, 4)]


def split(size, accumulation):
    return {"per_device_train_batch_size": size, "gradient_accumulation_steps": accumulation}


@pytest.fixture(scope="module")
def uncut(tmp_path_factory):
    """The first step, in one micro-batch."""
    directory = tmp_path_factory.mktemp("uncut")
    ((recorded, _, _),) = ranks.run(1, directory, lambda: train(directory, **split(8, 1)))
    return whole(recorded[:1])


@pytest.mark.parametrize(("world", "size", "accumulation"), SPLITS)
def test_mask_and_gradient_are_those_written_out(tmp_path, uncut, world, size, accumulation):
    results = ranks.run(world, tmp_path, lambda: train(tmp_path, **split(size, accumulation)))
    per_rank = [recorded for recorded, *_ in results]
    check(per_rank)
    ids, _, _, batch, keep = whole([recorded[0] for recorded in per_rank])
    assert torch.equal(ids, uncut[0]) and torch.equal(keep, uncut[4])
    assert 0 < int(keep.sum()) < int(batch.mask.sum()) < batch.mask.numel()
    # One more pass for the selection, but where the loss has the log-probs of the whole batch.
    passes = 2 * accumulation * (1 if accumulation == 1 else 2)
    assert all(forward_passes == passes for *_, forward_passes in results)


@pytest.mark.parametrize("scope", ["optimizer_batch", "micro_batch"])
@pytest.mark.parametrize(("world", "size", "accumulation"), [(1, 1, 8), (2, 1, 4), (2, 4, 1)])
def test_micro_batches_and_ranks_without_a_valid_token_add_nothing(
    tmp_path, scope, world, size, accumulation
):
    named = {"selection_scope": scope, "max_steps": 1, **split(size, accumulation)}
    results = ranks.run(world, tmp_path, lambda: train(tmp_path, of_one_prompt, **named))
    per_rank = [recorded[0] for recorded, *_ in results]
    valid = [int(batch.mask.sum()) for step in per_rank for batch in step.batches]
    assert 0 in valid and sum(valid) > 0
    *_, keep = whole(per_rank)
    wanted, gradient = written_out(per_rank, keep if scope == "micro_batch" else None)
    assert torch.equal(keep, wanted)
    assert all(steps.distance(step.gradient, gradient) < 1e-5 for step in per_rank)


def test_a_mean_over_sequences_is_one_over_those_of_the_step(tmp_path):
    """Some of which have no valid token, in any split and either scope."""
    args = {"loss_agg_mode": "seq-mean-token-mean", "m2_threshold": 1e9}
    gradients = []
    for world, accumulation, scope in SPLITS_AND_SCOPES:
        named = {"selection_scope": scope, "policy_loss_fn_args": args, "max_steps": 1}
        named |= split(8 // world // accumulation, accumulation)
        results = ranks.run(world, tmp_path, lambda: train(tmp_path, of_one_prompt, **named))
        gradients.append(results[0][0][0].gradient)
    assert all(steps.distance(gradient, gradients[0]) < 1e-5 for gradient in gradients[1:])


@pytest.mark.parametrize("world", [1, 2])
def test_every_update_of_one_generation_selects_anew(tmp_path, world):
    """TRL generates itself, for two optimizer batches, and goes over them twice."""
    named = {"steps_per_generation": 4, "num_iterations": 2, "max_steps": 5}
    results = ranks.run(
        world, tmp_path, lambda: train(tmp_path, None, **split(2 // world, 2), **named)
    )
    check([recorded for recorded, *_ in results])
    log = results[0][1]
    # On-policy after each generation, at steps 0 and 4, and nowhere else.
    before = [step["m2po/m2_before"] for step in log[:5]]
    assert max(before[0], before[4]) < 1e-8 and min(before[1:4]) > 0.04


@pytest.mark.parametrize("world", [1, 2])
def test_micro_batch_scope_selects_in_each_and_divides_by_the_tokens_of_all(tmp_path, world):
    named = {"selection_scope": "micro_batch", "max_steps": 1}
    results = ranks.run(world, tmp_path, lambda: train(tmp_path, **split(4 // world, 2), **named))
    per_rank = [recorded[0] for recorded, *_ in results]
    for step in per_rank:
        for batch, mask in zip(step.batches, step.masks):
            assert torch.equal(mask, steps.keep_mask(batch))
    *_, keep = whole(per_rank)
    _, gradient = written_out(per_rank, keep)
    assert all(steps.distance(step.gradient, gradient) < 1e-5 for step in per_rank)
    assert all(forward_passes == 2 for *_, forward_passes in results)


def test_preset_grpo_gives_the_gradient_of_trl_itself(tmp_path):
    named = {**split(4, 2), "num_iterations": 2}
    ours = ranks.run(1, tmp_path, lambda: train(tmp_path, None, preset="grpo", **named))

    def by_trl():
        trainer = make(
            trl.GRPOTrainer, trl.GRPOConfig(output_dir=str(tmp_path), **steps.CPU, **named)
        )
        gradients = steps.Gradients(trainer)
        trainer.train()
        return [step.gradient for step in gradients.steps]

    (theirs,) = ranks.run(1, tmp_path, by_trl)
    recorded = ours[0][0]
    assert len(recorded) == len(theirs) == 2
    for step, gradient in zip(recorded, theirs):
        assert steps.distance(step.gradient, gradient) < 1e-5


def test_a_token_without_a_rollout_log_prob_is_no_valid_token(tmp_path, caplog):
    def run():
        with caplog.at_level("WARNING", "rft"):
            return *train(tmp_path, without_a_log_prob, max_steps=1, **split(4, 2)), caplog.text

    ((recorded, log, _, text),) = ranks.run(1, tmp_path, run)
    check([recorded])
    unscored = sum(
        int((inputs["completion_mask"] * inputs["tool_mask"]).sum())
        for inputs in recorded[0].inputs
    )
    assert log[0]["m2po/valid_tokens"] == unscored - 1
    assert "1 tokens leave the response mask" in text


def test_autocast_gives_loss_and_selection_the_same_log_probs(tmp_path):
    ((recorded, _, _),) = ranks.run(1, tmp_path, lambda: train(tmp_path, bf16=True, **split(4, 2)))
    for step in recorded:
        *_, batch, keep = whole([step])
        assert torch.equal(keep, steps.keep_mask(batch))
        assert all(bool(gradient.any()) for gradient in step.gradient.values())


def test_metrics_are_logged_once_an_optimizer_step(tmp_path):
    results = ranks.run(2, tmp_path, lambda: train(tmp_path, **split(2, 2)))
    recorded, log, _ = results[0]
    *_, batch, keep = whole([recorded[0] for recorded, *_ in results])
    first = log[0]
    assert first["m2po/valid_tokens"] == int(batch.mask.sum())
    assert first["m2po/masked_tokens"] == int((batch.mask & ~keep).sum())
    assert first["m2po/m2_after"] <= 0.04 < first["m2po/m2_before"]
    ratio = torch.exp(batch.logprob - batch.old_logprob)[batch.mask]
    assert first["m2po/ratio_mean"] == pytest.approx(float(ratio.mean()), rel=1e-5)
    assert first["entropy"] > 0
    advantages = batch.advantages[:, None]
    loss = literal.loss(batch.logprob, batch.old_logprob, advantages, keep, int(batch.mask.sum()))
    assert first["loss"] == pytest.approx(float(loss), rel=1e-4)


def test_evaluation_selects_in_each_batch(tmp_path):
    def run():
        args = config(tmp_path, **split(4, 2), max_steps=1, per_device_eval_batch_size=4)
        trainer = make(PluginGRPOTrainer, args, rollouts)
        trainer.train()
        trainer.eval_dataset = trainer.train_dataset
        return trainer.evaluate()

    for metrics in ranks.run(2, tmp_path, run):
        assert metrics["eval_m2po/m2_after"] <= 0.04
        assert metrics["eval_m2po/masked_tokens"] > 0


@pytest.mark.parametrize("scope", ["optimizer_batch", "micro_batch"])
def test_a_second_moment_of_zero_on_stale_data_is_a_warning(tmp_path, caplog, scope):
    """The second pass over a generation, with a learning rate of 0."""

    def run(learning_rate):
        with caplog.at_level("WARNING", "rft"):
            named = {"num_iterations": 2, "learning_rate": learning_rate, "selection_scope": scope}
            train(tmp_path, None, **split(8, 1), **named)
            return caplog.text

    (still,) = ranks.run(1, tmp_path, run, 0.0)
    (moving,) = ranks.run(1, tmp_path, run, 1e-2)
    assert still.count("m2_before is exactly 0") == 1
    assert "m2_before" not in moving


REFUSED = {
    "beta": 0.1,
    "entropy_coef": 0.1,
    "epsilon_high": 0.28,
    "importance_sampling_level": "sequence",
    "loss_type": "sapo",
    "off_policy_mask_threshold": 0.5,
    "top_entropy_quantile": 0.2,
    "selection_scope": "batch",
    "steps_per_generation": 3,
    "policy_loss_fn_args": {"m2_treshold": 0.1},
    "preset": "m2po_areal",
}


@pytest.mark.parametrize("key", REFUSED)
def test_a_mode_that_is_not_served_is_refused_by_its_key(tmp_path, key):
    with pytest.raises(rft.RftError, match=key):
        config(tmp_path, **split(4, 2), **{key: REFUSED[key]})


def test_tensor_parallel_ranks_are_refused(tmp_path):
    with pytest.raises(rft.RftError, match="parallelism_config.tp_size: expected 1, found 2"):
        config(tmp_path, parallelism_config=accelerate.ParallelismConfig(tp_size=2))


def test_the_auxiliary_loss_of_a_router_is_refused(tmp_path):
    sizes = {"vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 1, "num_experts": 2}
    experts = transformers.Qwen2MoeConfig(**sizes, num_attention_heads=2, num_key_value_heads=2)
    model = transformers.Qwen2MoeForCausalLM(experts)

    def run():
        with pytest.raises(rft.RftError, match="router_aux_loss_coef: expected 0.0, found 0.001"):
            make(PluginGRPOTrainer, config(tmp_path), model=model)

    ranks.run(1, tmp_path, run)


def test_a_second_correction_by_vllm_log_probs_is_refused(tmp_path):
    with pytest.raises(rft.RftError, match="vllm_importance_sampling_correction: expected false"):
        config(tmp_path, use_vllm=True)


def test_fresh_rollouts_without_log_probs_are_refused(tmp_path):
    def run():
        with pytest.raises(rft.RftError, match="steps_per_generation: expected more than"):
            train(tmp_path, None, **split(4, 2))

    ranks.run(1, tmp_path, run)


def test_a_config_of_trl_is_refused(tmp_path):
    with pytest.raises(rft.RftError, match="args: expected a PluginGRPOConfig, found GRPOConfig"):
        make(PluginGRPOTrainer, trl.GRPOConfig(output_dir=str(tmp_path), **steps.CPU))
