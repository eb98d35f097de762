# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""verl's own FSDP2 engine, over gloo: steps.py says what it runs."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys

import batches
import literal
import pytest
import tiny
import torch

HERE = pathlib.Path(__file__).parent
UNSERVED = {
    "no rollout log-probs": "actor_rollout_ref.rollout.calculate_log_probs: expected true",
    "bypass off": "algorithm.rollout_correction.bypass_mode: expected true",
    "bypass off, micro_batch scope": "algorithm.rollout_correction.bypass_mode: expected true",
    "importance weights": "algorithm.rollout_correction.rollout_is: expected null",
    "critic": 'algorithm.adv_estimator: expected "grpo"',
    "KL in the reward": "algorithm.use_kl_in_reward: expected false",
}
SPLITS = ["of 1", "of 2", "of 4", "of 2, padded", "by tokens"]


def environment(**extra: str) -> dict[str, str]:
    """With verl's platform for the CPU, and our adapter."""
    return (
        os.environ
        | {
            "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{HERE}",
            "VERL_PLATFORM": "cpu",
            "VERL_USE_EXTERNAL_MODULES": "cpu_platform,rft.hosts.verl",
        }
        | extra
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def take_steps(folder: pathlib.Path, world: int) -> list[dict]:
    """What each rank wrote."""
    port = str(free_port())
    command = [
        sys.executable,
        "-W",
        "ignore",
        HERE / "steps.py",
        "model",
        "batch.pt",
        f"out{world}",
    ]
    ranks = [
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment(
                RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=port
            ),
            stdout=subprocess.DEVNULL,
            stderr=(folder / f"log{world}.{rank}").open("w"),
        )
        for rank in range(world)
    ]
    for rank, process in enumerate(ranks):
        assert process.wait(timeout=300) == 0, (folder / f"log{world}.{rank}").read_text()[-3000:]
    return [torch.load(folder / f"out{world}.{rank}", weights_only=False) for rank in range(world)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("verl")
    tiny.save(made / "model")
    lengths = [3, 4, 5, 3, 4, 5, 3, 4], [4, 7, 10, 6, 9, 5, 8, 4]
    torch.save(batches.stale(tiny.model(), *lengths), made / "batch.pt")
    return made


@pytest.fixture(scope="module")
def runs(folder) -> dict[int, list[dict]]:
    return {world: take_steps(folder, world) for world in (1, 2)}


@pytest.fixture(scope="module")
def by_hand(folder) -> dict:
    return written_out(torch.load(folder / "batch.pt"))


def written_out(batch: dict) -> dict:
    """Mask, loss and gradient without verl and without the library."""
    model = tiny.model()
    logprob = batches.logprobs(model, batch)
    names = ("old_log_probs", "advantages", "response_mask")
    old, advantages, mask = (batches.padded(batch[name]) for name in names)
    keep = literal.keep_mask(logprob.detach(), old, advantages, mask)
    valid = int(mask.sum())
    loss = literal.loss(logprob, old, advantages, keep, valid)
    loss.backward()
    gradient = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"keep": keep, "loss": loss.item(), "gradient": gradient, "valid": valid}


def whole(steps: list[dict], key: str) -> torch.Tensor:
    """All ranks' rows, as wide as the widest."""
    rows = [row for step in steps for row in step[key]]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def first_steps(run: list[dict], case: str) -> list[dict]:
    return [rank[case]["steps"][0] for rank in run]


@pytest.mark.parametrize("world", [1, 2], ids=["1 rank", "2 ranks"])
@pytest.mark.parametrize("case", SPLITS)
def test_mask_is_that_of_the_literal_algorithm_however_the_batch_is_split(
    runs, by_hand, world, case
):
    keep = whole(first_steps(runs[world], case), "keep")
    assert 0 < int(keep.sum()) < by_hand["valid"]
    assert torch.equal(keep, by_hand["keep"])


@pytest.mark.parametrize("world", [1, 2], ids=["1 rank", "2 ranks"])
@pytest.mark.parametrize("case", SPLITS)
def test_gradient_is_the_one_worked_out_by_hand(runs, by_hand, world, case):
    gradient = first_steps(runs[world], case)[0]["gradient"]
    for name, expected in by_hand["gradient"].items():
        assert torch.allclose(gradient[name], expected, rtol=1e-4, atol=1e-6 * expected.abs().max())


@pytest.mark.parametrize("world", [1, 2], ids=["1 rank", "2 ranks"])
@pytest.mark.parametrize("case", SPLITS)
def test_loss_and_metrics_are_of_the_optimizer_batch(runs, by_hand, world, case):
    metrics = runs[world][0][case]["metrics"]
    assert metrics["loss"][0] == pytest.approx(by_hand["loss"], rel=1e-5)
    assert metrics["actor/m2po/valid_tokens"] == [by_hand["valid"]]
    dropped = by_hand["valid"] - int(by_hand["keep"].sum())
    assert metrics["actor/m2po/masked_tokens"] == [dropped]
    assert metrics["actor/m2po/m2_after"][0] <= 0.04 < metrics["actor/m2po/m2_before"][0]
    assert "actor/ppo_kl" in metrics and "actor/pg_clipfrac" in metrics


@pytest.mark.parametrize("world", [1, 2], ids=["1 rank", "2 ranks"])
@pytest.mark.parametrize("case", ["half masked", "half masked, micro_batch scope"])
def test_micro_batches_and_a_rank_without_a_valid_token_add_nothing(runs, folder, world, case):
    batch = torch.load(folder / "batch.pt")
    half = [mask * (k < 4) for k, mask in enumerate(batch["response_mask"])]
    expected = written_out(batch | {"response_mask": half})
    steps = first_steps(runs[world], case)
    if case == "half masked":
        assert torch.equal(whole(steps, "keep"), expected["keep"])
    # With 4 sequences each, the micro-batch that has the tokens is the whole batch.
    for name, wanted in expected["gradient"].items():
        found = steps[0]["gradient"][name]
        assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-5 * wanted.abs().max())


@pytest.mark.parametrize("world", [1, 2], ids=["1 rank", "2 ranks"])
@pytest.mark.parametrize("case, count", [("two epochs", 2), ("two mini-batches, two epochs", 4)])
def test_every_mini_batch_of_every_epoch_is_selected_on_its_own(runs, world, case, count):
    steps = [rank[case]["steps"] for rank in runs[world]]
    assert [len(rank) for rank in steps] == [count] * world
    for each in zip(*steps):
        names = ("logprob", "old_logprob", "advantages", "response_mask")
        assert torch.equal(
            whole(each, "keep"), literal.keep_mask(*(whole(each, name) for name in names))
        )
    first, again = (whole([s[k] for s in steps], "logprob") for k in (0, count // 2))
    assert not torch.equal(first, again)


def test_micro_batch_scope_selects_without_a_forward_pass_and_otherwise(runs, by_hand):
    for world in (1, 2):
        (step, *_), metrics = (runs[world][0]["micro_batch scope"][k] for k in ("steps", "metrics"))
        assert "logprob" not in step
        assert "actor/m2po/masked_fraction" in metrics
        name, expected = next(iter(by_hand["gradient"].items()))
        assert not torch.allclose(step["gradient"][name], expected, rtol=1e-3)


def test_another_preset_takes_the_same_way(runs):
    for world in (1, 2):
        keep = whole(first_steps(runs[world], "grpo"), "keep")
        mask = whole(first_steps(runs[world], "grpo"), "response_mask")
        assert torch.equal(keep, mask != 0)
        assert runs[world][0]["grpo"]["metrics"]["actor/pg_clipfrac"][0] > 0


@pytest.mark.parametrize("world", [1, 2], ids=["1 rank", "2 ranks"])
@pytest.mark.parametrize("mode", UNSERVED)
def test_a_batch_of_an_unserved_mode_is_refused_by_its_key(runs, world, mode):
    assert all(rank[mode].startswith(UNSERVED[mode]) for rank in runs[world])


@pytest.mark.parametrize("world", [1, 2], ids=["1 rank", "2 ranks"])
def test_under_autocast_the_forward_pass_before_costs_no_gradient(runs, by_hand, world):
    gradient = first_steps(runs[world], "bf16")[0]["gradient"]
    for name, expected in by_hand["gradient"].items():
        assert torch.cosine_similarity(gradient[name].flatten(), expected.flatten(), 0) > 0.95


def test_where_one_rank_refuses_its_batch_the_other_fails_too(runs):
    first, last = (rank["bypass off, last rank"] for rank in runs[2])
    assert "failed on 1 of 2 ranks" in first
    assert last.startswith("algorithm.rollout_correction.bypass_mode: expected true")


def test_a_second_moment_of_exactly_0_is_warned_about_once(runs):
    for world in (1, 2):
        warnings = [warning for rank in runs[world] for warning in rank["fresh"]]
        assert len(warnings) == 1 and "m2_before is exactly 0" in warnings[0]
