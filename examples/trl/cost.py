# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the selection costs in a step of GRPOTrainer, on the CPU, as a table in Markdown.

A random Qwen2 learns from rollouts that are given, so that a step is what training takes and no
generation. The trainers take turns, on one thread; each time is CPU time, a median over the steps.
"""

from __future__ import annotations

import logging
import math
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import datasets
import tokenizers
import torch
import transformers
import trl

from rft.hosts.trl import PluginGRPOConfig, PluginGRPOTrainer

COMPLETIONS, TOKENS, VOCABULARY = 16, 64, 2048
ROUNDS, STEPS = 5, 4


class Clock(transformers.TrainerCallback):
    """Seconds of each step, and of the calls within it."""

    def __init__(self) -> None:
        self.steps: dict[str, list[float]] = defaultdict(list)
        self._calls: dict[str, float] = defaultdict(float)
        self._last = 0.0

    def timed(self, name: str, function: Callable) -> Callable:
        def call(*args: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **named)
            finally:
                self._calls[name] += time.process_time() - start

        return call

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_named: Any) -> None:
        now = time.process_time()
        if state.global_step > 1:  # the first has no one before it
            self.steps["step"].append(now - self._last)
            for name, seconds in self._calls.items():
                self.steps[name].append(seconds)
        self._calls.clear()
        self._last = now


def rollouts(prompts: list[str], _trainer: Any) -> dict[str, list]:
    n = len(prompts)
    return {
        "prompt_ids": [[5, 6, 7, 8]] * n,
        "completion_ids": torch.randint(3, VOCABULARY, (n, TOKENS)).tolist(),
        # The random model gives every token about the same log-prob.
        "logprobs": (0.5 * torch.randn(n, TOKENS) - math.log(VOCABULARY)).tolist(),
    }


def trainer_of(cls: type, config: type, accumulation: int, **keys: Any) -> tuple[Any, Clock]:
    torch.manual_seed(0)
    model = transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(
            vocab_size=VOCABULARY,
            hidden_size=256,
            intermediate_size=768,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    )
    words = {word: index for index, word in enumerate(["<pad>", "<eos>", "<unk>"])}
    args = config(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=COMPLETIONS // accumulation,
        gradient_accumulation_steps=accumulation,
        num_generations=4,
        max_steps=STEPS,
        bf16=False,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        **keys,
    )
    clock = Clock()
    trainer = cls(
        model,
        lambda completions, **_: torch.randn(len(completions)).tolist(),
        args,
        train_dataset=datasets.Dataset.from_dict({"prompt": ["?"] * COMPLETIONS}),
        processing_class=transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "<unk>")),
            pad_token="<pad>",
            eos_token="<eos>",
        ),
        rollout_func=rollouts,
        callbacks=[clock],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    if isinstance(trainer, PluginGRPOTrainer):
        batch = trainer._optimizer_batch
        trainer._begin = clock.timed("before", trainer._begin)
        batch.select = clock.timed("select", batch.select)
        batch.evaluate = clock.timed("loss", batch.evaluate)
    return trainer, clock


def main() -> None:
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    ours, theirs = (PluginGRPOTrainer, PluginGRPOConfig), (trl.GRPOTrainer, trl.GRPOConfig)
    cases = {
        "TRL's own loss, 4 micro-batches": (*theirs, 4, {}),
        "`optimizer_batch`, 4 micro-batches": (*ours, 4, {}),
        "`micro_batch`, 4 micro-batches": (*ours, 4, {"selection_scope": "micro_batch"}),
        "TRL's own loss, 1 micro-batch": (*theirs, 1, {}),
        "`optimizer_batch`, 1 micro-batch": (*ours, 1, {}),
    }
    made = {name: trainer_of(*case[:3], **case[3]) for name, case in cases.items()}
    for _ in range(ROUNDS):
        for trainer, _ in made.values():
            trainer.train()
    print("| loss | step, ms | selection and loss, ms | forward pass for it, ms |")
    print("| --- | --- | --- | --- |")
    for name, (_, clock) in made.items():
        ms = {key: 1000 * statistics.median(values) for key, values in clock.steps.items()}
        library = ms.get("select", 0.0) + ms.get("loss", 0.0)
        forward = ms.get("before", 0.0) - ms.get("select", 0.0) if "before" in ms else 0.0
        print(f"| {name} | {ms['step']:.0f} | {library:.2f} | {max(forward, 0.0):.0f} |")


if __name__ == "__main__":
    main()
