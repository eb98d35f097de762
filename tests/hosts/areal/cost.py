# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the selection costs in AReaL, against its built-in and against the whole optimizer step.

CPU time on one thread. All variants take turns in one process, and the tables give medians, so that
what else the machine does falls on each alike. RFT_COST_ROUNDS is how many turns (9).
"""

from __future__ import annotations

import collections
import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import rft
import tiny
import torch
import transformers
import world
from areal.api.cli_args import PPOActorConfig
from areal.engine import FSDPPPOActor
from areal.trainer.ppo.actor import _apply_m2po_masking
from rft.hosts.areal import RFTActor, RFTActorConfig

ROUNDS = int(os.environ.get("RFT_COST_ROUNDS", "9"))
SEQUENCES, PROMPT, ANSWER, PARTS = 16, 32, 64, 4
DECOUPLED = {"use_decoupled_loss": True}
STEPS: dict[str, tuple[type, dict[str, Any]]] = {
    "AReaL's PPO": (PPOActorConfig, {}),
    "m2po, optimizer_batch": (RFTActorConfig, {"m2_threshold": 0.04}),
    "m2po, micro_batch": (
        RFTActorConfig,
        {"m2_threshold": 0.04, "selection_scope": "micro_batch"},
    ),
    "m2po, optimizer_batch, `policy_loss: plugin`": (
        RFTActorConfig,
        {"m2_threshold": 0.04, "policy_loss": "plugin"},
    ),
    "AReaL's decoupled PPO": (PPOActorConfig, DECOUPLED),
    "AReaL's decoupled PPO, built-in masking": (
        PPOActorConfig,
        {"m2_threshold": 0.04, **DECOUPLED},
    ),
    "m2po_areal, decoupled PPO": (
        RFTActorConfig,
        {"m2_threshold": 0.04, "preset": "m2po_areal", **DECOUPLED},
    ),
    "m2po, decoupled PPO": (RFTActorConfig, {"m2_threshold": 0.04, **DECOUPLED}),
}


class Timed(FSDPPPOActor):
    """AReaL's actor, which counts the seconds of its loss, masking included."""

    def __init__(self, config: PPOActorConfig) -> None:
        super().__init__(config)
        self.seconds: collections.Counter[str] = collections.Counter()
        self.inside = ""

    def timed(self, what: str, run: Callable, *args: Any, **named: Any) -> Any:
        if self.inside:
            return run(*args, **named)
        self.inside, start = what, time.process_time()
        result = run(*args, **named)
        self.seconds[what] += time.process_time() - start
        self.inside = ""
        return result

    def train_batch(self, input_, loss_fn, loss_weight_fn):
        run = functools.partial(self.timed, "loss", loss_fn)
        return super().train_batch(input_, run, loss_weight_fn)


class TimedRFT(RFTActor, Timed):
    """Ours: the selection counts as the loss does, and the forward pass that is made for it."""

    def _select(self, *args):
        return self.timed("loss", super()._select, *args)

    def _logprobs(self, data):
        return self.timed("forward", super()._logprobs, data)


def step(actor: Timed, data: list[dict[str, torch.Tensor]]) -> tuple[float, float, float]:
    """Seconds of an update: all, selection and loss, forward pass for the selection."""
    actor.seconds.clear()
    start = time.process_time()
    world.update(actor, data)
    return time.process_time() - start, actor.seconds["loss"], actor.seconds["forward"]


def once(run: Callable[[], object]) -> tuple[float]:
    start = time.process_time()
    run()
    return (time.process_time() - start,)


def in_turns(variants: dict[str, Callable[[], tuple[float, ...]]]) -> dict[str, list[float]]:
    """Median milliseconds of each, after one turn that does not count."""
    turns = [{name: run() for name, run in variants.items()} for _ in range(ROUNDS + 1)][1:]
    return {
        name: [1e3 * statistics.median(column) for column in zip(*(turn[name] for turn in turns))]
        for name in variants
    }


def batch() -> list[dict[str, torch.Tensor]]:
    random = torch.Generator().manual_seed(1)
    length = PROMPT + ANSWER
    answered = (torch.arange(length) >= PROMPT)[None]
    return [
        {
            "input_ids": torch.randint(3, 1024, (1, length), generator=random, dtype=torch.int32),
            "attention_mask": torch.ones(1, length, dtype=torch.bool),
            "loss_mask": answered.to(torch.int32),
            "logprobs": torch.where(
                answered, -7 + 0.3 * torch.randn(1, length, generator=random), 0.0
            ),
            "versions": torch.where(answered, 2, -1).to(torch.int32),
            "rewards": torch.tensor([float(number % 2) - 0.5]),
        }
        for number in range(SEQUENCES)
    ]


def steps() -> None:
    folder = tempfile.TemporaryDirectory()
    config = tiny.model().config
    config.update({"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4})
    config.update({"vocab_size": 1024, "initializer_range": 0.02, "layer_types": None})
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**config.to_dict()))
    model.save_pretrained(folder.name)
    tiny.tokenizer().save_pretrained(folder.name)
    world.enter(0, 1, world.free_port())
    actors = {}
    for name, (config, given) in STEPS.items():
        kind = TimedRFT if config is RFTActorConfig else Timed
        actors[name] = world.start(config(**world.settings(folder.name, 1, PARTS, **given)), kind)
    found = in_turns({n: functools.partial(step, a, batch()) for n, a in actors.items()})
    print(f"| {SEQUENCES * ANSWER} tokens in {PARTS} micro-batches | update, ms ", end="")
    print("| selection and loss, ms | forward pass for it, ms |\n| --- | ---: | ---: | ---: |")
    for name, (whole, loss, forward) in found.items():
        print(f"| {name} | {whole:.0f} | {loss:.1f} | {forward:.0f} |")


def selections() -> None:
    print(
        "\n| tokens | AReaL's rule, ms | m2po_areal, ms | m2po, ms |\n| ---: | ---: | ---: | ---: |"
    )
    presets = {name: rft.PolicyLoss.from_preset(name) for name in ("m2po_areal", "m2po")}
    for tokens in (1 << 12, 1 << 16, 1 << 20):
        random = torch.Generator().manual_seed(2)
        logprob = -torch.rand(tokens, generator=random)
        old = logprob + 0.3 * torch.randn(tokens, generator=random)
        mask = torch.ones(tokens, dtype=torch.bool)
        one = rft.Batch(logprob, old, torch.randn(tokens, generator=random), mask, logprob)
        runs = [functools.partial(_apply_m2po_masking, old, logprob, mask, 0.04)]
        runs += [functools.partial(loss.select, [one], rft.ALONE) for loss in presets.values()]
        found = in_turns({str(n): functools.partial(once, run) for n, run in enumerate(runs)})
        print(f"| {tokens} |" + "|".join(f" {ms:.2f} " for (ms,) in found.values()) + "|")


if __name__ == "__main__":
    torch.set_num_threads(1)
    steps()
    selections()
