# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the adapters share, without a framework."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys

import pytest
import torch

import rft
from rft.hosts import common

LOSS = rft.PolicyLoss.from_preset("m2po")
ZERO = torch.zeros(2, 3)


def batch(old=ZERO, advantages=ZERO + 1, mask=ZERO + 1, **more) -> rft.Batch:
    return rft.Batch(ZERO, old, advantages, mask, **more)


FRESH, TINY_MOVE = ZERO.clone(), torch.tensor([[0.0, 0.0, 1e-7], [0.0, 0.0, 0.0]])
LAST = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
#: A batch, and whether it is one to warn of.
BATCHES = {
    "every log-ratio 0": (batch(), True),
    "every log-ratio 0, no advantage": (batch(advantages=ZERO), True),
    "log-ratios that differ, no advantage": (batch(ZERO + 0.1, ZERO), False),
    "log-ratios that differ, against the advantages": (batch(ZERO + 0.1), False),
    "one log-ratio that differs": (batch(TINY_MOVE), False),
    "the one that differs is no valid token": (batch(LAST, mask=1 - LAST), True),
    "no valid token": (batch(mask=ZERO), False),
    "bfloat16": (batch(ZERO.bfloat16()), True),
    "a proximal policy that is the behavior policy": (
        batch(ZERO - 0.1, ZERO, proximal_logprob=ZERO - 0.1),
        True,
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_it_warns_where_every_log_ratio_is_0_and_nowhere_else(caplog, name):
    given, warned = BATCHES[name]
    _, report = LOSS.select([given])
    with caplog.at_level(logging.WARNING, "rft"):
        common.warn_if_fresh(report, [given], "look there")
    assert ("look there" in caplog.text) is warned


def test_a_batch_of_which_one_part_moves_is_not_warned_of(caplog):
    parts = [batch(), batch(ZERO - 0.1, ZERO), batch(mask=ZERO)]
    _, report = LOSS.select(parts)
    common.warn_if_fresh(report, parts, "look there")
    assert not caplog.text


@pytest.mark.parametrize(
    ("kept", "valid", "expected"), [(3, 4, 75), (0, 4, 0), (0, 0, 0), (1, 3, 33)]
)
def test_a_part_stands_for_the_kept_tokens_of_all(kept, valid, expected):
    report = rft.Report(valid, kept, 1, {}, ())
    found = common.reduction_of_part(report, 100, 7, 2.0)
    assert found == rft.Reduction(100, expected, 7, 2.0)


def test_sequences_without_a_valid_token_are_not_counted():
    assert common.count(torch.tensor([[1, 1, 0], [0, 0, 0], [0, 1, 0]])) == (3, 2)
    assert common.count(torch.zeros(0, 3)) == (0, 0)


#: preset, args, and the beginning of the error.
REFUSED = {
    "an unknown preset": ("m2pp", {}, 'a.preset: algorithm preset "m2pp" is not'),
    "a preset of another type": (
        3,
        {},
        "a.preset: expected the name of an algorithm preset, found 3",
    ),
    "no preset": (None, {}, "a.preset: expected the name of an algorithm preset, found None"),
    "a misspelt key": ("m2po", {"tau": 1}, 'a.args: config key "tau" is not known'),
    "a value of another type": ("m2po", {"m2_threshold": "x"}, 'a.args: config key "m2_threshold"'),
    "arguments of another type": ("m2po", [1], "a.args: expected a mapping, found [1]"),
    "an argument that JSON can't hold": ("m2po", {"m2_threshold": {1}}, "a.args: config: expected"),
    "not a number": ("m2po", {"m2_threshold": float("nan")}, "a.args: config: expected"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_begins_with_the_key_to_change(name):
    preset, args, message = REFUSED[name]
    with pytest.raises(rft.RftError) as refused:
        common.policy_loss(preset, args, "a.preset", "a.args")
    assert refused.value.message.startswith(message)


PLACES = {
    "an empty directory": ("", r"a.preset: .*of 0 plugins .*looked for in RFT_PLUGIN_PATH=PLACE\n"),
    "a broken file": ("broken.so", r"a.preset: .*; refused PLACE/broken.so: .+\n"),
    "no directory": (None, r"RFT_PLUGIN_PATH: plugin directory PLACE.*: No such file"),
}


@pytest.mark.parametrize("name", PLACES)
def test_where_there_is_no_plugin_the_error_says_where_it_looked(tmp_path, name):
    file, message = PLACES[name]
    place = tmp_path / "plugins"
    if file is not None:
        place.mkdir(mode=0o755)
        (place / (file or "README")).write_text("no shared object\n")
    code = "from rft.hosts import common; common.policy_loss('m2po', {}, 'a.preset', 'a.args')"
    environment = {**os.environ, "RFT_PLUGIN_PATH": str(place)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert re.search("RftError: " + message.replace("PLACE", re.escape(str(place))), ran.stderr)


@pytest.mark.parametrize("value", ["batch", None, 1, "", "OPTIMIZER_BATCH", ["micro_batch"]])
def test_another_selection_scope_is_refused(value):
    with pytest.raises(rft.RftError) as refused:
        common.SelectionScope.parse(value, "a.selection_scope")
    expected = 'a.selection_scope: expected "optimizer_batch" or "micro_batch", found '
    assert refused.value.message == expected + repr(value)


PROXIMAL = {
    "by its preset": ("m2po_areal", {}, "preset: expected a preset without proximal log-probs"),
    "by an argument": (
        "m2po",
        {"m2_reference": "proximal"},
        "args.m2_reference: expected 'current'",
    ),
}


@pytest.mark.parametrize("name", PROXIMAL)
def test_a_proximal_policy_is_refused_where_there_is_none(name):
    preset, args, message = PROXIMAL[name]
    with pytest.raises(rft.RftError) as refused:
        common.refuse_proximal(rft.PolicyLoss.from_preset(preset, args), "preset", "args", "why")
    assert refused.value.message.startswith(message)


def test_a_mean_over_a_padded_length_is_refused():
    args = {"loss_agg_mode": "seq-mean-token-sum-norm"}
    with pytest.raises(rft.RftError, match="args.loss_scale_factor: expected a number, found null"):
        common.refuse_padded_mean(rft.PolicyLoss.from_preset("m2po", args), "args")
    args["loss_scale_factor"] = 32
    common.refuse_padded_mean(rft.PolicyLoss.from_preset("m2po", args), "args")


def test_a_preset_with_another_term_is_refused():
    loss = rft.PolicyLoss.from_preset("m2po")
    common.refuse_other_presets(loss, "preset", common.PLAIN, {})
    loss.preset["kl_loss_fn"] = "k2"
    with pytest.raises(rft.RftError) as refused:
        common.refuse_other_presets(loss, "preset", common.PLAIN, {"kl_loss_fn": "why"})
    assert (
        refused.value.message == "preset: expected a preset with kl_loss_fn 'none', found 'k2': why"
    )
