# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""GSM8K with TRL's AsyncGRPOTrainer, beside a server of vLLM: see async_grpo.sh."""

from __future__ import annotations

from gsm8k import Task, questions, right_answer
from trl import TrlParser

from rft.hosts.trl_async import PluginAsyncGRPOConfig, PluginAsyncGRPOTrainer

if __name__ == "__main__":
    task, args = TrlParser((Task, PluginAsyncGRPOConfig)).parse_args_and_config()
    trainer = PluginAsyncGRPOTrainer(task.model, right_answer, args, train_dataset=questions(task))
    trainer.train()
    trainer.save_model()
