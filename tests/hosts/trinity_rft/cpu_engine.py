# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""verl 0.8's FSDP2 engine on the CPU. A worker loads it as model.external_lib, before its engine.

Keeps what each optimizer step was given and made, under RFT_TEST_STEPS.
"""

from __future__ import annotations

import os
import pathlib

import torch
import torch.distributed as dist
import transformers
from verl.workers.engine import EngineRegistry, FSDPEngineWithLMHead

# What a worker asks a device's module about memory; torch.cpu has none of it.
for name in ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"):
    setattr(torch.cpu, name, lambda *_: 0)
torch.cpu.mem_get_info = lambda *_: (0, 1)
torch.cpu.empty_cache = lambda: None

if not dist.is_initialized():
    dist.init_process_group("gloo", init_method=os.environ.get("DIST_INIT_METHOD"))


@EngineRegistry.register("language_model", "fsdp2", device="cpu")
class CPUEngine(FSDPEngineWithLMHead):
    def _build_module(self):
        # Trinity's own asks for the GPU's capability.
        return transformers.AutoModelForCausalLM.from_pretrained(
            self.model_config.local_path, config=self.model_config.hf_config, dtype=torch.float32
        )

    def train_batch(self, data, loss_function):
        keys = ("rft_keep", "rft_report", "response_mask", "old_log_probs", "advantages")
        self.step = {key: data[key].clone() for key in keys}
        return super().train_batch(data, loss_function)

    def optimizer_step(self):
        self.step["gradient"] = {
            name: parameter.grad.full_tensor().clone()
            for name, parameter in self.module.named_parameters()
        }
        folder = pathlib.Path(os.environ["RFT_TEST_STEPS"]) / str(dist.get_rank())
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.step, folder / f"{len(list(folder.iterdir()))}.pt")
        return super().optimizer_step()
