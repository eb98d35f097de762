# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""GSM8K: its questions as prompts, and a reward for the right number."""

from __future__ import annotations

import re
from dataclasses import dataclass

import datasets


@dataclass
class Task:
    """Keys of the scripts, beside those of the trainer's config."""

    model: str
    dataset: str
    dataset_config: str | None = None


def questions(task: Task) -> datasets.Dataset:
    """Columns prompt, a conversation of one message, and answer."""
    rows = datasets.load_dataset(task.dataset, task.dataset_config, split="train")
    return rows.map(
        lambda row: {
            "prompt": [
                {
                    "role": "user",
                    "content": f"{row['question']}\nThink step by step, and end with #### and the number.",
                }
            ]
        },
        remove_columns=["question"],
    )


def right_answer(completions: list, answer: list[str], **_columns: object) -> list[float]:
    """1 where the number after the last #### is that of the answer, else 0."""
    return [
        float(number(message[-1]["content"]) == number(right) is not None)
        for message, right in zip(completions, answer)
    ]


def number(text: str) -> float | None:
    """The number after the last ####."""
    found = re.search(r"^\s*\$?(-?[\d,]*\.?\d+)", text.rpartition("####")[2])
    return float(found[1].replace(",", "")) if found and "####" in text else None
