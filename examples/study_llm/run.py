# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""One run: from the base policy through its updates, to a log of one JSON object a line.

The log's first line holds the settings, the second the base policy's accuracy. While a run is under way its
log ends in .partial, and a checkpoint lies beside it, from which a run that was stopped goes on.
"""

from __future__ import annotations

import collections
import copy
import json
import pathlib
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

from learner import Learner
from record import record
from rollouts import Rollout, Sampler, held_out_accuracy
from settings import Settings

CHECKPOINT_EVERY = 5

Line = dict[str, Any]


def read_log(path: pathlib.Path, settings: Settings) -> list[Line]:
    """The lines of a log behind its first; refuses a log of other settings."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    _check_settings(path, lines[0]["settings"], settings)
    return lines[1:]


def _check_settings(path: pathlib.Path, found: dict[str, Any], settings: Settings) -> None:
    for key, expected in asdict(settings).items():
        if found.get(key) != expected:
            raise SystemExit(
                f"study-llm: {path}: {key}: expected {expected!r}, found {found.get(key)!r}; "
                "move the file away to make this run anew"
            )


class Run:
    def __init__(
        self, settings: Settings, directory: pathlib.Path, base: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase
    ) -> None:
        self.settings = settings
        self._directory = directory
        self._log = directory / f"{settings.name()}.jsonl"
        self._partial = self._log.with_suffix(".partial")
        self._checkpoint = self._log.with_suffix(".checkpoint")
        self._tokenizer = tokenizer
        self._sampler = Sampler(settings, tokenizer)
        self._learner = Learner(copy.deepcopy(base), settings)
        self._waiting: collections.deque[Rollout] = collections.deque()
        self._lines: list[Line] = []
        if self._checkpoint.exists():
            self._resume()

    def updates_done(self) -> int:
        return max(0, len(self._lines) - 1)

    def train(self, step: Callable[[Line], None]) -> None:
        """All updates that are left; `step` is told each one's line of the log."""
        if not self._lines:
            self._begin()
        while len(self._lines) <= self.settings.updates:
            self._lines.append(self._update(len(self._lines)))
            self._write_log()
            step(self._lines[-1])
            if len(self._lines) % CHECKPOINT_EVERY == 1:
                self._save()
        self._partial.replace(self._log)
        self._checkpoint.unlink(missing_ok=True)

    def _begin(self) -> None:
        policy = self._learner.policy
        # The first rollouts come from the base policy, as in the paper.
        if self.settings.staleness > 0:
            self._waiting.extend(self._sampler.roll_out(policy, 0, self.settings.staleness, 0))
        self._lines = [{"update": 0, "accuracy": held_out_accuracy(policy, self._tokenizer)}]

    def _update(self, number: int) -> Line:
        start = time.monotonic()
        settings, learner = self.settings, self._learner
        version = number - 1
        [newest] = self._sampler.roll_out(learner.policy, version + settings.staleness, 1, version)
        self._waiting.append(newest)
        rollout = self._waiting.popleft()
        numbers, logprob = learner.update(rollout)
        line = {
            "update": number,
            "staleness": version - rollout.version,
            "reward": float(rollout.rewards.mean()),
            "fresh_reward": float(newest.rewards.mean()),
            "answer_tokens": float(rollout.mask.sum(1).float().mean()),
            **numbers,
        }
        if number % settings.record_every == 0:
            path = self._directory / "batches" / f"{settings.name()}-u{number}.safetensors"
            record(path, rollout, logprob, line["staleness"], self._tokenizer)
        if number % settings.evaluate_every == 0:
            line["accuracy"] = held_out_accuracy(learner.policy, self._tokenizer)
        line["seconds"] = time.monotonic() - start
        return line

    def _write_log(self) -> None:
        lines = [{"settings": asdict(self.settings)}, *self._lines]
        self._partial.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def _save(self) -> None:
        learner = self._learner
        state = {
            "settings": asdict(self.settings),
            "policy": learner.policy.state_dict(),
            "optimizer": learner.optimizer.state_dict(),
            "waiting": [vars(rollout) for rollout in self._waiting],
            "lines": self._lines,
        }
        half = self._checkpoint.with_suffix(".half")
        torch.save(state, half)
        half.replace(self._checkpoint)

    def _resume(self) -> None:
        state = torch.load(self._checkpoint)
        _check_settings(self._checkpoint, state["settings"], self.settings)
        self._learner.policy.load_state_dict(state["policy"])
        self._learner.optimizer.load_state_dict(state["optimizer"])
        self._waiting.extend(Rollout(**fields) for fields in state["waiting"])
        self._lines = state["lines"]
