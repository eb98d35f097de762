# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import pathlib
import subprocess
import sysconfig

import batches
import literal
import pytest
import tiny
import torch

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]


def take_steps(model: str, out: pathlib.Path, world: int) -> list[dict]:
    """engine_steps.py in verl 0.9's environment; what every rank found."""
    subprocess.run([ROOT / "tests/hosts/environment.sh", "verl"], check=True)
    path = [os.environ["PYTHONPATH"], HERE, HERE.parent / "verl"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "VERL_PLATFORM": "cpu",
        "VERL_USE_EXTERNAL_MODULES": "cpu_platform",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(29600 + world),
        "WORLD_SIZE": str(world),
    }
    python = ROOT / "build/venv-verl/bin/python"
    command = [python, "-W", "ignore", HERE / "engine_steps.py", sysconfig.get_path("purelib")]
    command += [model, out]
    with open(f"{out}.log", "w+") as log:
        given = [{**environment, "RANK": str(rank)} for rank in range(world)]
        ranks = [subprocess.Popen(command, env=own, stdout=log, stderr=log) for own in given]
        failed = [rank for rank in ranks if rank.wait(300) != 0]
        log.seek(0)
        assert not failed, log.read()[-4000:]
    return [torch.load(f"{out}.{rank}", weights_only=False) for rank in range(world)]


@pytest.fixture(scope="session", params=[1, 2], ids=["one rank", "two ranks"])
def ranks(request, tmp_path_factory) -> list[dict]:
    folder = tmp_path_factory.mktemp("engine")
    return take_steps(tiny.save(folder / "model"), folder / "out", request.param)


def case(ranks: list[dict], index: int) -> tuple[torch.Tensor, list[dict], dict]:
    """The mask of the first step over all ranks, the steps of the first rank, and its metrics."""
    found = [rank["cases"][index] for rank in ranks]
    keep = torch.cat([part["steps"][0]["keep"] for part in found])
    return keep, found[0]["steps"], found[0]["metrics"]


def expected() -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Mask and gradient of the first step by hand."""
    model = tiny.model()
    batch, experiences = batches.of(model, batches.advantage(), bypass=True)
    tensors, logprob = batch.batch, batches.current(model, experiences)
    given = (tensors[name] for name in ("rollout_log_probs", "advantages", "response_mask"))
    old, advantages, mask = given
    keep = literal.keep_mask(logprob.detach(), old, advantages, mask)
    loss = literal.loss(logprob, old, advantages, keep, int(mask.sum()))
    return keep, torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize(("index", "steps"), [(0, 1), (1, 2)], ids=["of 4", "of 1, two epochs"])
def test_verl_0_9_selects_in_the_engine_over_all_ranks_and_micro_batches(ranks, index, steps):
    keep, taken, metrics = case(ranks, index)
    wanted, gradient = expected()
    assert torch.equal(keep, wanted)
    assert len(taken) == steps
    for found, by_hand in zip(taken[0]["gradient"].values(), gradient):
        assert torch.allclose(found, by_hand, rtol=1e-3, atol=1e-5)
    assert 0 < metrics["actor/m2po/m2_after"][0] <= 0.04


def test_verl_0_9_keeps_all_for_micro_batches_that_select_for_themselves(ranks):
    keep, (step,), metrics = case(ranks, 2)
    wanted, _ = expected()
    assert keep.sum() > wanted.sum()
    assert any(bool(gradient.any()) for gradient in step["gradient"].values())
    assert metrics["actor/m2po/masked_fraction"][0] > 0


def test_verl_0_9_takes_the_hook_in_the_engine(ranks):
    config = ranks[0]["config"]
    assert config.trainer.trainer_config["model"]["external_lib"] == "rft.hosts.trinity_rft_engine"
    assert config.algorithm.bypass_old_logprobs
    assert not config.data_processor.experience_pipeline.operators
