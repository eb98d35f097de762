# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pathlib

import pytest
import tiny
from trinity.algorithm import ADVANTAGE_FN, ALGORITHM_TYPE, POLICY_LOSS_FN
from trinity.buffer.operators import EXPERIENCE_OPERATORS
from trinity.common.config import Config, load_config

from rft import RftError
from rft.hosts import trinity_rft

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples/trinity_rft"
PATH = "rft.hosts.trinity_rft"


#: Settings, and the beginning of the error about them.
REFUSED = [
    ({"algorithm__kl_loss_fn": "k2"}, 'algorithm.kl_loss_fn: expected "none", found "k2"'),
    ({"algorithm__kl_penalty_fn": "k2"}, 'algorithm.kl_penalty_fn: expected "none"'),
    ({"algorithm__entropy_loss_fn": "default"}, 'algorithm.entropy_loss_fn: expected "none"'),
    ({"algorithm__policy_loss_fn": "ppo"}, "algorithm.policy_loss_fn: expected"),
    ({"algorithm__advantage_fn": "grpo"}, "algorithm.advantage_fn: expected"),
    (
        {"algorithm__policy_loss_fn_args": {"m2_treshold": 1}},
        'algorithm.policy_loss_fn_args: config key "m2_treshold" is not known',
    ),
    (
        {"algorithm__policy_loss_fn_args": {"selection_scope": "batch"}},
        "algorithm.policy_loss_fn_args.selection_scope: expected",
    ),
    (
        {"algorithm__policy_loss_fn_args": {"preset": "m2po_areal"}},
        "algorithm.policy_loss_fn_args.preset: expected a preset without proximal log-probs",
    ),
    (
        {
            "algorithm__policy_loss_fn_args": {"loss_agg_mode": "token-mean"},
            "algorithm__loss_agg_mode": "seq-mean-token-sum",
        },
        'algorithm.loss_agg_mode: expected "token-mean"',
    ),
    ({"trainer__trainer_type": "tinker"}, 'trainer.trainer_type: expected "verl"'),
    ({"trainer__trainer_strategy": "megatron"}, "trainer.trainer_strategy: expected"),
    (
        {"trainer__trainer_config": {"actor": {"ppo_epochs": 2}}},
        "trainer.trainer_config.actor.ppo_epochs: expected 1, found 2",
    ),
    (
        {"trainer__trainer_config": {"actor_rollout_ref": {"actor": {"ppo_epochs": 2}}}},
        "trainer.trainer_config.actor.ppo_epochs: expected 1, found 2",
    ),
]


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> str:
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture
def config(model, tmp_path, monkeypatch):
    """The example's config for a mode of Trinity's; its keys by dotted name are set over it."""
    monkeypatch.setenv("TRINITY_MODEL_PATH", model)
    monkeypatch.setenv("TRINITY_CHECKPOINT_ROOT_DIR", str(tmp_path))

    def made(mode: str, **over) -> Config:
        name = "trainer.yaml" if mode == "train" else "explorer.yaml"
        config = load_config(str(EXAMPLE / name))
        config.mode = mode
        for key, value in over.items():
            section, _, name = key.partition("__")
            setattr(getattr(config, section), name, value)
        return config

    return made


def test_registries_find_the_dotted_paths():
    assert ALGORITHM_TYPE.get(f"{PATH}.PluginAlgorithm") is trinity_rft.PluginAlgorithm
    assert POLICY_LOSS_FN.get(f"{PATH}.PluginPolicyLoss") is trinity_rft.PluginPolicyLoss
    assert ADVANTAGE_FN.get(f"{PATH}.SelectingAdvantage") is trinity_rft.SelectingAdvantage
    assert EXPERIENCE_OPERATORS.get(f"{PATH}.SelectingAdvantage") is trinity_rft.SelectingAdvantage


def test_verl_0_8_takes_the_hook_in_the_trainer():
    assert trinity_rft.HOOK is trinity_rft.Hook.TRAINER
    assert trinity_rft.PluginAlgorithm.compute_advantage_in_trainer


@pytest.mark.parametrize("mode", ["train", "explore", "both"])
def test_the_example_passes_trinitys_validation(config, mode):
    checked = config(mode).check_and_update()
    algorithm = checked.algorithm
    assert algorithm.policy_loss_fn == f"{PATH}.PluginPolicyLoss"
    assert algorithm.advantage_fn == f"{PATH}.SelectingAdvantage"
    assert algorithm.kl_loss_fn == algorithm.entropy_loss_fn == "none"
    assert not algorithm.bypass_old_logprobs
    checked.check_and_update()
    (operator,) = checked.data_processor.experience_pipeline.operators
    assert operator.name == algorithm.advantage_fn
    assert operator.args["policy_loss_fn_args"] == {"preset": "m2po", "m2_threshold": 0.04}


def test_micro_batch_scope_takes_no_second_forward_pass(config):
    args = {"selection_scope": "micro_batch"}
    checked = config("train", algorithm__policy_loss_fn_args=args).check_and_update()
    assert checked.algorithm.bypass_old_logprobs


def test_no_policy_loss_fn_args_are_the_preset_m2po(config):
    checked = config("train", algorithm__policy_loss_fn_args=None).check_and_update()
    function = trinity_rft.PluginPolicyLoss(**checked.algorithm.policy_loss_fn_args)
    assert function.loss.name == "m2po" and function.loss.config["m2_threshold"] == 0.04


@pytest.mark.parametrize(
    "over",
    [
        {"algorithm__loss_agg_mode": "seq-mean-token-sum"},
        {"algorithm__policy_loss_fn_args": {"loss_agg_mode": "seq-mean-token-sum"}},
    ],
)
def test_the_aggregation_reaches_the_loss_from_either_key(config, over):
    algorithm = config("train", **over).check_and_update().algorithm
    function = trinity_rft.PluginPolicyLoss(**algorithm.policy_loss_fn_args)
    assert function.loss.config["loss_agg_mode"] == "seq-mean-token-sum"
    assert algorithm.loss_agg_mode == "seq-mean-token-sum"


@pytest.mark.parametrize(("over", "message"), REFUSED, ids=[key for _, key in REFUSED])
def test_refuses_what_it_cannot_serve_and_names_the_key(config, over, message):
    with pytest.raises(RftError) as refused:
        config("train", **over).check_and_update()
    assert message in str(refused.value)


def test_an_advantage_function_of_the_trainer_is_refused(config):
    with pytest.raises(RftError, match="algorithm.advantage_fn_args.group_advantage"):
        trinity_rft.SelectingAdvantage(group_advantage="ppo")
