# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Plugins are found, described and configured; what is wrong is said by name."""

from __future__ import annotations

import logging
import os
import pathlib
import shutil
import sys

import pytest
import torch

import rft
from vectors import recorded, split

BUILD = pathlib.Path(os.environ["BUILD"])
FIXTURE = BUILD / "fixtures" / "good.so"


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    """A plugins directory with a plugin whose loss selects nothing."""
    made = tmp_path / "plugins"
    made.mkdir()
    shutil.copy(FIXTURE, made)
    return made


def install_package(site: pathlib.Path, value: str) -> None:
    """What pip leaves of a package with a plugin: code, and metadata with an entry point."""
    (site / "acme_plugins").mkdir()
    shutil.copy(FIXTURE, site / "acme_plugins")
    (site / "acme_plugins" / "__init__.py").touch()
    metadata = site / "acme_plugins-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme_plugins\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[rft.plugins]\nacme = {value}\n")


def test_plugins_of_the_environment_variable_are_described() -> None:
    (plugin,) = rft.Registry().plugins
    assert plugin.id == "org.m2po.plugin" and plugin.policy_losses == ("m2po",)
    assert plugin.presets == ("m2po", "m2po_areal", "grpo")
    assert plugin.path == str(BUILD / "plugins" / "libm2po_plugin.so")


def test_a_relative_entry_of_the_environment_variable_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("RFT_PLUGIN_PATH", "plugins")
    with pytest.raises(rft.RftError, match="RFT_PLUGIN_PATH: expected absolute") as caught:
        rft.Registry()
    assert caught.value.code == rft.Code.INVALID_ARGUMENT


def test_plugins_of_installed_packages_are_found(monkeypatch, tmp_path) -> None:
    install_package(tmp_path, "acme_plugins")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("RFT_PLUGIN_PATH")
    registry = rft.Registry()
    assert "org.example.fixture" in [plugin.id for plugin in registry.plugins]
    assert registry.refusals == []
    sys.modules.pop("acme_plugins")


@pytest.mark.parametrize("value", ["acme_missing", "json.decoder"])
def test_an_entry_point_that_names_no_package_is_a_refusal(monkeypatch, tmp_path, value) -> None:
    install_package(tmp_path, value)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("RFT_PLUGIN_PATH")
    (refusal,) = rft.Registry().refusals
    assert refusal.path == f"entry point acme = {value}" and refusal.reason


def test_a_file_that_is_no_plugin_is_a_refusal_and_a_warning(folder, caplog) -> None:
    (folder / "text.so").write_text("text")
    with caplog.at_level(logging.WARNING, logger="rft"):
        registry = rft.Registry([folder])
    assert [plugin.id for plugin in registry.plugins] == ["org.example.fixture"]
    (refusal,) = registry.refusals
    assert refusal.path == str(folder / "text.so") and "ELF" in refusal.reason
    assert refusal.code == rft.Code.INVALID_ARGUMENT
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "text.so" in caplog.text


def test_a_file_that_crashes_is_refused_where_it_is_tried_first(folder) -> None:
    shutil.copy(BUILD / "conformance" / "host" / "entry_crashes.so", folder)
    registry = rft.Registry([folder], probe_timeout_ms=30_000)
    assert [plugin.id for plugin in registry.plugins] == ["org.example.fixture"]
    assert registry.refusals[0].path.endswith("entry_crashes.so")


def test_a_directory_that_others_may_write_is_an_error(folder) -> None:
    folder.chmod(0o777)
    with pytest.raises(rft.RftError) as caught:
        rft.Registry([folder])
    assert caught.value.code == rft.Code.PERMISSION_DENIED and str(folder) in str(caught.value)


def test_a_loss_that_is_not_there_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(rft.RftError, match='the nearest known one is "m2po"') as caught:
        rft.PolicyLoss.from_config("m2p0")
    assert caught.value.code == rft.Code.NOT_FOUND


def test_schemas_are_dicts() -> None:
    schema = rft.default_registry().schema("m2po")
    assert schema["additionalProperties"] is False
    assert schema["properties"]["m2_threshold"]["default"] == 0.04
    assert rft.PolicyLoss.from_config("m2po").schema == schema


def test_configs_are_completed() -> None:
    loss = rft.PolicyLoss.from_config("m2po", {"m2_threshold": 1})
    assert loss.config["m2_threshold"] == 1 and loss.config["surrogate"] == "importance_sampling"
    assert set(loss.config) == set(loss.schema["properties"])


def test_presets_are_dicts_and_take_arguments() -> None:
    preset = rft.default_registry().preset("grpo", {"clip_range_high": 0.3})
    assert preset["use_critic"] is False and preset["policy_loss_fn"] == "m2po"
    loss = rft.PolicyLoss.from_preset("grpo", {"clip_range_high": 0.3})
    assert loss.preset == preset and loss.config == preset["policy_loss_fn_args"]
    assert loss.config["m2_threshold"] is None and loss.config["clip_range_high"] == 0.3


BAD_CONFIGS = {
    "misspelt": (
        {"m2_treshold": 0.1},
        '"m2_treshold" is not known: the nearest known key is "m2_threshold"',
    ),
    "wrong type": ({"m2_threshold": "0.1"}, "m2_threshold"),
    "out of range": ({"m2_threshold": -1}, "m2_threshold"),
    "not a number": (
        {"m2_threshold": float("nan")},
        "config: expected a mapping that JSON can hold",
    ),
    "no JSON": ({"m2_threshold": object()}, "config: expected a mapping that JSON can hold"),
    "no mapping": (["m2_threshold"], "config: expected a mapping that JSON can hold"),
}


@pytest.mark.parametrize("kind", BAD_CONFIGS)
def test_a_config_that_is_wrong_is_refused_by_key(kind) -> None:
    config, words = BAD_CONFIGS[kind]
    with pytest.raises(rft.RftError) as caught:
        rft.PolicyLoss.from_config("m2po", config)
    assert caught.value.code == rft.Code.INVALID_ARGUMENT and words in str(caught.value)


def test_any_loss_serves_also_one_that_selects_nothing(folder) -> None:
    loss = rft.PolicyLoss.from_preset("reinforce", registry=rft.Registry([folder]))
    assert loss.config == {"factor": 2}
    batches = split(recorded("smollm2_k8.safetensors"), 50)
    masks, report = loss.select(batches)
    assert all(torch.equal(mask, batch.mask) for mask, batch in zip(masks, batches))
    valid = torch.cat(masks)
    assert report.valid_tokens == report.kept_tokens == int(valid.sum())
    assert report.sequences == int(valid.any(1).sum())
    metrics, total = loss.metrics(report), 0.0
    for batch, mask in zip(batches, masks):
        logprob = batch.logprob.clone().requires_grad_()
        attached = rft.Batch(logprob, batch.old_logprob, batch.advantages, batch.mask)
        value = loss(attached, mask, report.reduction(), metrics)
        value.backward()
        total += float(value)
        expected = -batch.advantages * mask / report.valid_tokens
        assert torch.allclose(logprob.grad, expected, rtol=1e-6, atol=0)
    assert metrics.as_dict()["positions"] == 128 * 32
    whole = recorded("smollm2_k8.safetensors")
    expected = -(whole["advantages"] * whole["logprob"])[valid].double().sum() / report.valid_tokens
    assert total == pytest.approx(float(expected), rel=1e-5)


def test_sequences_of_a_packed_batch_are_counted(folder) -> None:
    loss = rft.PolicyLoss.from_config("reinforce", registry=rft.Registry([folder]))
    ones, mask = torch.ones(6), torch.tensor([0, 1, 0, 0, 1, 1])
    ends = torch.tensor([0, 2, 2, 4, 6], dtype=torch.int32)
    _, report = loss.select([rft.Batch(ones, ones, ones, mask, cu_seqlens=ends)])
    assert (report.valid_tokens, report.sequences) == (3, 2)
    _, report = loss.select([rft.Batch(ones, ones, ones, mask)])
    assert report.sequences == 1


def test_libraries_are_named_by_absolute_paths(monkeypatch) -> None:
    from rft import _library

    monkeypatch.setenv("RFT_HOST_LIBRARY", "librft_host.so")
    with pytest.raises(rft.RftError, match="RFT_HOST_LIBRARY: expected an absolute path"):
        _library._open()
    monkeypatch.setenv("RFT_HOST_LIBRARY", "/nowhere/librft_host.so")
    with pytest.raises(rft.RftError, match="librft_host cannot be loaded: .*nowhere"):
        _library._open()
