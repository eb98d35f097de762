# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""What the adapter adds to an optimizer step of verl, beside verl's own PPO loss: one process, CPU.

Steps of the three settings are taken in turn, and the CPU's time is counted, so that whatever else
the machine does stays out of it. `cost.sh` sets the environment and runs it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable

import batches
import torch
import torch.distributed as dist
import transformers
import verl  # noqa: F401 - loads cpu_platform and the adapter
from steps import Case, loss_function, rows, worker_of
from verl.trainer.ppo.core_algos import POLICY_LOSS_REGISTRY
from verl.workers.config import PolicyLossConfig as VerlPolicyLossConfig

from rft import PolicyLoss
from rft.hosts.verl import PolicyLossConfig

ROUNDS, SEQUENCES, PROMPT, RESPONSE = 7, 16, 32, 128
CASE = Case("cost", micro_batch=4, learning_rate=1e-6)
SETTINGS = {
    "verl's vanilla": VerlPolicyLossConfig(loss_mode="vanilla"),
    "m2po, micro_batch": PolicyLossConfig(selection_scope="micro_batch"),
    "m2po, optimizer_batch": PolicyLossConfig(),
}

spent: defaultdict[str, float] = defaultdict(float)  #: seconds, by part of a step


def timed(name: str, function: Callable) -> Callable:
    def run(*arguments, **keywords):
        start = time.process_time()
        result = function(*arguments, **keywords)
        spent[name] += time.process_time() - start
        return result

    return run


def model() -> transformers.Qwen2ForCausalLM:
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=8192,
        hidden_size=256,
        intermediate_size=1024,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=1,
    )
    return transformers.Qwen2ForCausalLM(config)


def main() -> None:
    dist.init_process_group("gloo")
    made = model()
    with tempfile.TemporaryDirectory() as folder:
        made.save_pretrained(folder)
        worker = worker_of(folder, CASE)
    batch = batches.stale(made, [PROMPT] * SEQUENCES, [RESPONSE] * SEQUENCES)
    worker.engine.current_logprob = timed("forward", worker.engine.current_logprob)
    PolicyLoss.select = timed("selection", PolicyLoss.select)
    for name in ("vanilla", "m2po"):
        POLICY_LOSS_REGISTRY[name] = timed("loss", POLICY_LOSS_REGISTRY[name])
    seconds = {name: defaultdict(list) for name in SETTINGS}
    for count in range(ROUNDS + 1):
        for name, settings in SETTINGS.items():
            worker.set_loss_fn(loss_function(settings))
            spent.clear()
            timed("step", worker.train_mini_batch)(rows(batch, 0, 1, CASE))
            for part in ("step", "forward", "selection", "loss") if count else ():
                seconds[name][part].append(spent[part])
    parameters = sum(parameter.numel() for parameter in made.parameters())
    print(f"{parameters / 1e6:.1f}M parameters, {SEQUENCES * RESPONSE} response tokens a step")
    print(f"{'policy loss':<22} {'step':>9} {'forward':>9} {'selection':>9} {'loss':>9}   [ms]")
    for name, parts in seconds.items():
        medians = (f"{1e3 * statistics.median(each):>9.1f}" for each in parts.values())
        print(f"{name:<22}", *medians)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
