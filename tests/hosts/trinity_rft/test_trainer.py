# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import batches
import literal
import pytest
import tiny
import torch

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> pathlib.Path:
    """What Trinity's VERLTrainer did in each case of train.py, in a session of Ray."""
    out = tmp_path_factory.mktemp("runs")
    path = [os.environ["PYTHONPATH"], str(HERE), str(HERE / "standins")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "RFT_TEST_STEPS": str(out / "steps"),
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    model = tiny.save(out / "model")
    command = [sys.executable, "-W", "ignore", str(HERE / "train.py"), model, str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return out


def first_step(runs: pathlib.Path, case: str) -> list[dict]:
    """Of every rank: what it was given, the mask and the gradient."""
    ranks = sorted((runs / case / "steps").iterdir())
    return [torch.load(rank / "0.pt") for rank in ranks]


def expected() -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Mask, which [B, R], and gradient of the first step by hand."""
    model, function = tiny.model(), batches.advantage()
    batch, experiences = batches.of(model, function)
    tensors, logprob = batch.batch, batches.current(model, experiences)
    mask, old, advantages = (
        tensors[name] for name in ("response_mask", "rollout_log_probs", "advantages")
    )
    keep = literal.keep_mask(logprob.detach(), old, advantages, mask)
    loss = literal.loss(logprob, old, advantages, keep, int(mask.sum()))
    return keep, old, torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize("case", ["one worker", "two workers"])
def test_trainer_takes_the_hand_written_gradient_and_the_literal_mask(runs, case):
    ranks = first_step(runs, case)
    keep, old, gradient = expected()
    # Trinity balances sequences over ranks: by their log-probs they are the same ones.
    order = {tuple(row.tolist()): index for index, row in enumerate(old)}
    for rank in ranks:
        for row, kept in zip(rank["old_log_probs"], rank["rft_keep"]):
            assert torch.equal(kept, keep[order[tuple(row.tolist())]])
    names = [name for name, _ in tiny.model().named_parameters()]
    for rank in ranks:
        for name, wanted in zip(names, gradient):
            assert torch.allclose(rank["gradient"][name], wanted, rtol=1e-3, atol=1e-5), name


def test_trainer_reports_by_trinitys_names(runs):
    one, two = (
        torch.load(runs / case / "metrics.pt", weights_only=False)
        for case in ("one worker", "two workers")
    )
    for name in ("pg_loss", "ppo_kl", "ratio/mean", "m2po/m2_before", "m2po/m2_after", "grad_norm"):
        assert one[0][f"actor/{name}"] == pytest.approx(two[0][f"actor/{name}"], rel=1e-4), name
    assert one[0]["actor/m2po/masked_fraction"] == two[0]["actor/m2po/masked_fraction"] > 0
    assert one[1]["actor/pg_loss"] == pytest.approx(two[1]["actor/pg_loss"], rel=1e-2)


def test_trainer_steps_and_saves_in_either_scope(runs):
    micro = runs / "by tokens, of micro_batch scope"
    (rank,) = first_step(runs, micro.name)
    assert torch.equal(rank["rft_keep"], rank["response_mask"].bool())
    assert any(bool(gradient.any()) for gradient in rank["gradient"].values())
    for metrics in torch.load(micro / "metrics.pt", weights_only=False):
        assert "time/old_log_prob" not in metrics and metrics["actor/m2po/masked_fraction"] > 0
    assert list(runs.glob("*/m2po/*/global_step_2/actor/model_world_size_*.pt"))
