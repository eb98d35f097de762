# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Asynchronous GSM8K training in AReaL, with a policy loss of an RFT plugin.

usage: python3 gsm8k.py --config gsm8k.yaml [KEY=VALUE...]
"""

from __future__ import annotations

import sys

from areal.api.cli_args import load_expr_config
from areal.dataset import get_custom_dataset
from areal.utils.hf_utils import load_hf_tokenizer

from rft.hosts.areal import RFTConfig, RFTTrainer

WORKFLOW = "areal.workflow.rlvr.RLVRWorkflow"


def main(arguments: list[str]) -> None:
    config, _ = load_expr_config(arguments, RFTConfig)
    tokenizer = load_hf_tokenizer(config.tokenizer_path)
    train, test = (
        get_custom_dataset(split, dataset, tokenizer)
        for split, dataset in (("train", config.train_dataset), ("test", config.valid_dataset))
    )
    sampling = {
        "reward_fn": "areal.reward.gsm8k.gsm8k_reward_fn",
        "tokenizer": config.tokenizer_path,
        "enable_thinking": False,
    }
    with RFTTrainer(config, train_dataset=train, valid_dataset=test) as trainer:
        trainer.train(
            workflow=WORKFLOW,
            workflow_kwargs={**sampling, "gconfig": config.gconfig},
            eval_workflow=WORKFLOW,
            eval_workflow_kwargs={**sampling, "gconfig": config.eval_gconfig},
        )


if __name__ == "__main__":
    main(sys.argv[1:])
