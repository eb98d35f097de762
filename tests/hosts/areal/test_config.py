# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The example's YAML through AReaL's own loader, with overrides, and what is refused."""

from __future__ import annotations

import pathlib

import pytest
import rft
from areal.api.alloc_mode import ModelAllocation
from areal.api.cli_args import load_expr_config
from rft.hosts.areal import RFTConfig, RFTTrainer, policy_loss_of

CONFIG = pathlib.Path(__file__).parents[3] / "examples" / "areal" / "gsm8k.yaml"


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *overrides: load_expr_config([f"--config={CONFIG}", *overrides], RFTConfig)[0]


def test_the_example_s_yaml_asks_for_preset_m2po(load):
    config = load()
    loss = policy_loss_of(config.actor)
    assert (loss.name, loss.preset["advantage_fn"]) == ("m2po", "grpo")
    assert loss.config == rft.PolicyLoss.from_preset("m2po").config
    assert config.rollout.max_head_offpolicyness == 16


@pytest.mark.parametrize(
    "override",
    [
        "actor.policy_loss_fn_args={selection: all_tokens, boundary: below}",
        """actor.policy_loss_fn_args='{"selection": "all_tokens", "boundary": "below"}'""",
    ],
    ids=["a_mapping", "json"],
)
def test_arguments_go_over_the_preset_s_on_the_command_line(load, override):
    config = policy_loss_of(load(override, "actor.m2_threshold=0.02").actor).config
    assert (config["m2_threshold"], config["selection"], config["boundary"]) == (
        0.02,
        "all_tokens",
        "below",
    )


def test_a_threshold_of_null_selects_nothing(load):
    assert policy_loss_of(load("actor.m2_threshold=null").actor).config["m2_threshold"] is None


def test_the_config_survives_areal_s_transport_to_workers(load):
    from areal.infra.rpc.serialization import deserialize_value, serialize_value

    actor = load("actor.policy_loss_fn_args={boundary: below}").actor
    assert deserialize_value(serialize_value(actor)) == actor


REFUSED = {
    "a threshold below 0": (["actor.m2_threshold=-1"], r"actor\.m2_threshold: .*>= 0.*-1"),
    "an unknown preset": (["actor.preset=m2p"], r'actor\.preset: .*"m2po"'),
    "a misspelt argument": (
        ["actor.policy_loss_fn_args={boundry: below}"],
        r'actor\.policy_loss_fn_args: .*"boundry".*"boundary"',
    ),
    "arguments that are no json": (
        ["actor.policy_loss_fn_args=boundary"],
        r"actor\.policy_loss_fn_args: expected a mapping or JSON, found 'boundary'",
    ),
    "json of something else": (
        ["actor.policy_loss_fn_args='[1]'"],
        r"actor\.policy_loss_fn_args: expected a mapping",
    ),
    "a second threshold": (
        ["actor.policy_loss_fn_args={m2_threshold: 1}"],
        r"actor\.policy_loss_fn_args\.m2_threshold: .*set actor\.m2_threshold",
    ),
    "an unknown scope": (["actor.selection_scope=batch"], r"actor\.selection_scope: "),
    "an unknown loss": (["actor.policy_loss=own"], r"actor\.policy_loss: "),
    "a clip of the plugin for areal s loss": (
        ["actor.policy_loss_fn_args={clip_range_low: 0.1}"],
        r"actor\.policy_loss_fn_args\.clip_range_low: .*actor\.eps_clip",
    ),
    "sapo of areal for the plugin s loss": (
        ["actor.policy_loss=plugin", "actor.use_sapo_loss=true"],
        r"actor\.use_sapo_loss: expected False",
    ),
    "a mean over a padded length": (
        [
            "actor.policy_loss=plugin",
            "actor.policy_loss_fn_args={loss_agg_mode: seq-mean-token-sum-norm}",
        ],
        r"actor\.policy_loss_fn_args\.loss_scale_factor: expected a number",
    ),
    "a kl penalty": (["actor.kl_ctl=0.1"], r"actor\.kl_ctl: expected 0, found 0\.1"),
    "a critic": (
        ["+critic={path: x, experiment_name: e, trial_name: t, backend: 'fsdp:d1'}"],
        r"critic: expected null",
    ),
    "a teacher": (
        [
            "+teacher={engine_type: train, train: "
            "{path: x, experiment_name: e, trial_name: t, backend: 'fsdp:d1'}}"
        ],
        r"teacher: expected null",
    ),
    "behavior log probs that are replaced": (
        ["actor.recompute_logprob=true"],
        r"actor\.recompute_logprob: expected false",
    ),
    "m2po areal without a proximal policy": (
        ["actor.preset=m2po_areal"],
        r"actor\.use_decoupled_loss: expected true",
    ),
    "a proximal policy that areal guesses": (
        [
            "actor.preset=m2po_areal",
            "actor.use_decoupled_loss=true",
            "actor.prox_logp_method=loglinear",
        ],
        r"actor\.prox_logp_method: expected recompute, found loglinear",
    ),
    "tree training": (["+actor.enable_tree_training=true"], r"actor\.enable_tree_training: "),
}


@pytest.mark.parametrize("why", REFUSED)
def test_it_refuses_and_names_the_key(load, why):
    overrides, message = REFUSED[why]
    with pytest.raises(rft.RftError, match=message):
        load(*overrides)


@pytest.mark.parametrize("backend", ["megatron:d1", "archon:d1"])
def test_it_refuses_other_backends_than_fsdp(load, backend):
    config = load(f"actor.backend={backend}")
    trainer = RFTTrainer.__new__(RFTTrainer)
    trainer.config = config
    with pytest.raises(rft.RftError, match=r"actor\.backend: expected fsdp"):
        trainer._create_train_engine(config.actor, ModelAllocation.from_str(backend))
