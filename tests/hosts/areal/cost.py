# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the selection costs in AReaL, against its built-in and against the whole optimizer step.

All variants take turns in one process, and the table gives medians, so that what else the machine
does falls on each alike. RFT_COST_ROUNDS (default 9) is how many turns.
"""

from __future__ import annotations

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
from areal.trainer.ppo.actor import _apply_m2po_masking
from rft.hosts.areal import RFTActorConfig

ROUNDS = int(os.environ.get("RFT_COST_ROUNDS", "9"))
SEQUENCES, PROMPT, ANSWER, MICRO_BATCHES = 32, 32, 128, 4
DECOUPLED = {"use_decoupled_loss": True}
STEPS: dict[str, tuple[type, dict[str, Any]]] = {
    "AReaL, no masking": (PPOActorConfig, {}),
    "m2po, optimizer_batch": (RFTActorConfig, {"m2_threshold": 0.04}),
    "m2po, micro_batch": (
        RFTActorConfig,
        {"m2_threshold": 0.04, "selection_scope": "micro_batch"},
    ),
    "m2po, optimizer_batch, policy_loss plugin": (
        RFTActorConfig,
        {"m2_threshold": 0.04, "policy_loss": "plugin"},
    ),
    "AReaL decoupled, no masking": (PPOActorConfig, DECOUPLED),
    "AReaL decoupled, built-in masking": (PPOActorConfig, {"m2_threshold": 0.04, **DECOUPLED}),
    "m2po_areal decoupled": (
        RFTActorConfig,
        {"m2_threshold": 0.04, "preset": "m2po_areal", **DECOUPLED},
    ),
    "m2po decoupled": (RFTActorConfig, {"m2_threshold": 0.04, **DECOUPLED}),
}


def in_turns(variants: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each, after one turn that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(ROUNDS + 1):
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken[1:]) for name, taken in seconds.items()}


def batch() -> list[dict[str, torch.Tensor]]:
    random = torch.Generator().manual_seed(1)
    length = PROMPT + ANSWER
    answered = (torch.arange(length) >= PROMPT)[None]
    return [
        {
            "input_ids": torch.randint(3, 1024, (1, length), generator=random, dtype=torch.int32),
            "attention_mask": torch.ones(1, length, dtype=torch.bool),
            "loss_mask": answered.to(torch.int32),
            "logprobs": torch.where(answered, -7 + 0.3 * torch.randn(1, length, generator=random), 0.0),
            "versions": torch.where(answered, 2, -1).to(torch.int32),
            "rewards": torch.tensor([float(number % 2) - 0.5]),
        }
        for number in range(SEQUENCES)
    ]


def steps() -> None:
    folder = tempfile.TemporaryDirectory()
    config = tiny.model().config
    config.update({"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4})
    config.update({"vocab_size": 1024, "initializer_range": 0.02, "layer_types": None})
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**config.to_dict()))
    model.save_pretrained(folder.name)
    tiny.tokenizer().save_pretrained(folder.name)
    world.enter(0, 1, world.free_port())
    data = batch()
    actors = {
        name: world.start(kind(**world.settings(folder.name, 1, MICRO_BATCHES, **given)))
        for name, (kind, given) in STEPS.items()
    }
    found = in_turns({n: lambda a=a: world.update(a, data) for n, a in actors.items()})
    tokens = SEQUENCES * ANSWER
    print(f"| a step of {tokens} tokens in {MICRO_BATCHES} micro-batches | ms | against no masking |")
    print("| --- | ---: | ---: |")
    for name, seconds in found.items():
        plain = "AReaL decoupled, no masking" if "decoupled" in name else "AReaL, no masking"
        print(f"| {name} | {1e3 * seconds:.0f} | {seconds / found[plain]:.2f} |")


def selections() -> None:
    print("\n| tokens | AReaL's rule, ms | m2po_areal, ms | m2po, ms |\n| ---: | ---: | ---: | ---: |")
    presets = {name: rft.PolicyLoss.from_preset(name) for name in ("m2po_areal", "m2po")}
    for tokens in (1 << 12, 1 << 16, 1 << 20):
        random = torch.Generator().manual_seed(2)
        logprob = -torch.rand(tokens, generator=random)
        old = logprob + 0.3 * torch.randn(tokens, generator=random)
        mask = torch.ones(tokens, dtype=torch.bool)
        one = rft.Batch(logprob, old, torch.randn(tokens, generator=random), mask, logprob)
        variants = {"own": lambda: _apply_m2po_masking(old, logprob, mask, 0.04)}
        for name, loss in presets.items():
            variants[name] = lambda loss=loss: loss.select([one], rft.ALONE)
        found = in_turns(variants)
        print(f"| {tokens} |" + "|".join(f" {1e3 * seconds:.2f} " for seconds in found.values()) + "|")


if __name__ == "__main__":
    torch.set_num_threads(1)
    steps()
    selections()
