# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Names and settings, by verl's own registries and its own validation of the example's config."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import hydra
import pytest
import rft
import tiny
import torch
from hydra.errors import InstantiationException
from test_steps import environment
from verl import DataProto
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.trainer.ppo.rollout_corr_helper import apply_bypass_mode
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import omega_conf_to_dataclass, validate_config

from rft.hosts.verl import PolicyLossConfig, settings_of

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples/verl"
POLICY_LOSS = "actor_rollout_ref.actor.policy_loss"
#: The config class of verl, which has none of our keys.
VERLS_OWN = (
    f"{POLICY_LOSS}._target_=verl.workers.config.PolicyLossConfig",
    *(f"~{POLICY_LOSS}.{key}" for key in ("preset", "policy_loss_fn_args", "selection_scope")),
)


def compose(*overrides: str):
    with hydra.initialize_config_dir(str(EXAMPLE), version_base=None):
        return hydra.compose("gsm8k_m2po", list(overrides))


def validate(*overrides: str) -> None:
    config = compose(*overrides)
    validate_config(config, need_reference_policy(config), need_critic(config))


def loss_of(*overrides: str, drift: float = 0.1, is_weights=None) -> torch.Tensor:
    """The registered loss, called as verl does, without our engine."""
    actor = omega_conf_to_dataclass(compose(*overrides).actor_rollout_ref.actor)
    actor.global_batch_info.update(dp_size=1, batch_num_tokens=12, global_batch_size=2)
    zeros, mask = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool)
    loss, _ = get_policy_loss_fn(actor.policy_loss.loss_mode)(
        old_log_prob=zeros - drift,
        log_prob=zeros.clone().requires_grad_(),
        advantages=zeros + 1,
        response_mask=mask,
        loss_agg_mode=actor.loss_agg_mode,
        config=actor,
        rollout_is_weights=is_weights,
    )
    return loss


def test_the_examples_config_passes_verls_validation():
    validate()


def test_settings_arrive_in_the_actors_config():
    override = f"{POLICY_LOSS}.policy_loss_fn_args.m2_threshold=0.02"
    actor = omega_conf_to_dataclass(compose(override).actor_rollout_ref.actor)
    assert actor.policy_loss.loss.config["m2_threshold"] == 0.02


def test_verls_own_config_class_gets_the_defaults():
    actor = omega_conf_to_dataclass(compose(*VERLS_OWN).actor_rollout_ref.actor)
    assert settings_of(actor) == PolicyLossConfig()


WRONG_SETTINGS = {
    "a misspelt key": (
        f"+{POLICY_LOSS}.policy_loss_fn_args.m2_treshold=1",
        'policy_loss_fn_args: config key "m2_treshold" is not',
    ),
    "a preset that nobody has": (f"{POLICY_LOSS}.preset=m2pp", 'algorithm preset "m2pp" is not'),
    "a proximal policy": (f"{POLICY_LOSS}.preset=m2po_areal", "preset: expected a preset without"),
    "a wrong scope": (f"{POLICY_LOSS}.selection_scope=batch", "selection_scope: expected"),
    "another loss": (
        f"{POLICY_LOSS}.loss_mode=vanilla",
        'loss_mode: expected "m2po", found "vanilla"',
    ),
    "a divisor that varies": (
        f"+{POLICY_LOSS}.policy_loss_fn_args.loss_agg_mode=seq-mean-token-sum-norm",
        "policy_loss_fn_args.loss_scale_factor: expected a number",
    ),
}


@pytest.mark.parametrize("override, message", WRONG_SETTINGS.values(), ids=WRONG_SETTINGS)
def test_verls_validation_reports_by_its_key(override, message):
    with pytest.raises(InstantiationException) as caught:
        validate(override)
    assert message in str(caught.value)


UNSERVED = {
    "a KL term": ("actor_rollout_ref.actor.use_kl_loss=true", "use_kl_loss: expected false"),
    "an entropy term": (
        "actor_rollout_ref.actor.entropy_coeff=0.01",
        "entropy_coeff: expected 0",
    ),
    "two aggregations": (
        "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean",
        "actor.loss_agg_mode: expected 'token-mean'",
    ),
    "an engine that does not select": (f"{POLICY_LOSS}.loss_mode=m2po", "actor.strategy: expected"),
}


@pytest.mark.parametrize("override, message", UNSERVED.values(), ids=UNSERVED)
def test_the_loss_refuses_by_its_key(override, message):
    with pytest.raises(rft.RftError) as caught:
        loss_of(override)
    assert message in str(caught.value)


def test_a_term_that_only_the_preset_has_is_refused():
    actor = omega_conf_to_dataclass(compose().actor_rollout_ref.actor)
    actor.policy_loss.loss.preset["kl_loss_fn"] = "k2"
    with pytest.raises(rft.RftError, match="use_kl_loss: expected true, found false"):
        settings_of(actor)


@pytest.mark.parametrize("drift, warnings", [(0.0, 1), (-0.1, 0)], ids=["fresh", "stale"])
def test_micro_batch_scope_warns_of_log_probs_that_are_the_same(caplog, drift, warnings):
    loss_of(f"{POLICY_LOSS}.selection_scope=micro_batch", drift=drift)
    assert caplog.text.count("m2_before is exactly 0") == warnings


def test_micro_batch_scope_needs_no_engine_and_divides_by_the_counts_of_verl():
    loss = loss_of(f"{POLICY_LOSS}.selection_scope=micro_batch")
    assert loss.item() == pytest.approx(-6 / 12 * torch.tensor(0.1).exp().item())


def test_micro_batch_scope_refuses_importance_weights():
    with pytest.raises(rft.RftError, match="rollout_is: expected null"):
        loss_of(f"{POLICY_LOSS}.selection_scope=micro_batch", is_weights=torch.ones(2, 3))


@pytest.mark.parametrize("overrides", [(), VERLS_OWN], ids=["our config", "verl's own"])
def test_the_loss_that_bypass_mode_writes_over_ours_is_refused(overrides):
    config = compose(*overrides)
    batch = DataProto.from_dict(tensors={"rollout_log_probs": torch.zeros(2, 3)})
    actor = config.actor_rollout_ref.actor
    apply_bypass_mode(batch, config.algorithm.rollout_correction, actor.policy_loss)
    with pytest.raises((InstantiationException, rft.RftError)) as caught:
        settings_of(omega_conf_to_dataclass(actor))
    assert "trainer.use_v1" in str(caught.value)


NAMES = """
from verl.trainer.ppo.core_algos import POLICY_LOSS_REGISTRY
from verl.workers.engine import EngineRegistry
engine = EngineRegistry.get_engine_cls("language_model", "fsdp")
print(POLICY_LOSS_REGISTRY["m2po"].__module__, engine.__module__)
"""


def names(first: str, **extra: str) -> str:
    """The modules that verl finds the loss and, for a GPU, the engine in."""
    device = {"VERL_ENGINE_DEVICE": "cuda", "VERL_ENGINE_VENDOR": "nvidia"}
    command = [sys.executable, "-W", "ignore", "-c", first + NAMES]
    ran = subprocess.run(
        command, env=environment() | device | extra, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


def test_verl_finds_loss_and_engine_through_an_environment_variable():
    assert names("import verl") == "rft.hosts.verl rft.hosts.verl"


def test_verl_finds_loss_and_engine_through_external_lib(tmp_path):
    model = tiny.save(tmp_path)
    first = f"""
from verl.workers.config import HFModelConfig
HFModelConfig(path={model!r}, external_lib="rft.hosts.verl")
"""
    found = names(first, VERL_USE_EXTERNAL_MODULES="cpu_platform")
    assert found == "rft.hosts.verl rft.hosts.verl"
