# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""GSM8K with TRL's GRPOTrainer: several optimizer steps from every generation.

accelerate launch examples/trl/grpo.py --config examples/trl/grpo.yaml [--KEY VALUE...]
"""

from __future__ import annotations

from gsm8k import Task, questions, right_answer
from trl import TrlParser

from rft.hosts.trl import PluginGRPOConfig, PluginGRPOTrainer

if __name__ == "__main__":
    task, args = TrlParser((Task, PluginGRPOConfig)).parse_args_and_config()
    trainer = PluginGRPOTrainer(task.model, right_answer, args, train_dataset=questions(task))
    trainer.train()
    trainer.save_model()
