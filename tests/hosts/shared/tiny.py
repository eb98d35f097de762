# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""A language model that fits any test: a random Qwen2 of 2 layers, and a tokenizer of digits."""

from __future__ import annotations

import os
import pathlib

import tokenizers
import torch
import transformers

SPECIAL = ["<pad>", "<eos>", "<unk>"]
VOCABULARY = SPECIAL + [str(digit) for digit in range(10)] + list("+-*/=?# ")


def model(seed: int = 0) -> transformers.Qwen2ForCausalLM:
    """float32, with the same weights for the same seed."""
    torch.manual_seed(seed)
    config = transformers.Qwen2Config(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
        initializer_range=0.3,
    )
    return transformers.Qwen2ForCausalLM(config).float()


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """One token a character, with a chat template that only joins the messages."""
    ids = {token: index for index, token in enumerate(VOCABULARY)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        chat_template="{% for message in messages %}{{ message['content'] }}{% endfor %}",
    )


def save(directory: str | os.PathLike[str], seed: int = 0) -> str:
    """Model and tokenizer as a local model directory; gives its path."""
    model(seed).save_pretrained(directory)
    tokenizer().save_pretrained(directory)
    return str(pathlib.Path(directory))
