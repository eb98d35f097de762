# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The scripts and configs of examples/trl."""

from __future__ import annotations

import json
import pathlib
import runpy
import sys

import ranks
import tiny
import trl

from rft.hosts.trl import PluginGRPOConfig
from rft.hosts.trl_async import PluginAsyncGRPOConfig

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/trl"
sys.path.insert(0, str(EXAMPLES))

import gsm8k  # noqa: E402

ON_A_CPU = {
    "dataset_config": "default",
    "use_cpu": True,
    "bf16": False,
    "use_vllm": False,
    "steps_per_generation": 4,
    "gradient_accumulation_steps": 2,
    "per_device_train_batch_size": 4,
    "max_completion_length": 8,
    "num_generations": 4,
    "max_steps": 3,
    "report_to": "none",
}


def arguments(directory, **named):
    data = directory / "data"
    data.mkdir()
    rows = [{"question": f"{i}+{i}=?", "answer": f"So #### {2 * i}"} for i in range(8)]
    (data / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {
        "model": tiny.save(directory / "model"),
        "dataset": data,
        "output_dir": directory / "out",
        **named,
    }
    return [str(part) for key, value in given.items() for part in (f"--{key}", value)]


def test_the_script_trains_from_its_config_and_the_command_line(tmp_path):
    def run():
        more = {"policy_loss_fn_args": '{"m2_threshold": 0.001}', "learning_rate": 0.01}
        sys.argv = ["grpo.py", "--config", str(EXAMPLES / "grpo.yaml")]
        sys.argv += arguments(tmp_path, **ON_A_CPU, **more)
        trainer = runpy.run_path(str(EXAMPLES / "grpo.py"), run_name="__main__")["trainer"]
        return trainer.state.log_history, trainer.args.policy_loss_fn_args

    ((log, args),) = ranks.run(1, tmp_path, run)
    assert args == {"m2_threshold": 0.001}
    assert [entry["m2po/valid_tokens"] > 0 for entry in log[:3]] == [True] * 3
    assert (tmp_path / "out/model.safetensors").exists()


def test_the_configs_are_what_trl_reads(tmp_path):
    for name, config in (("grpo", PluginGRPOConfig), ("async_grpo", PluginAsyncGRPOConfig)):
        parser = trl.TrlParser((gsm8k.Task, config))
        on_a_cpu = ["--use_cpu", "true", "--bf16", "false"]
        task, args = parser.parse_args_and_config(
            ["--config", str(EXAMPLES / f"{name}.yaml"), *on_a_cpu]
            + (["--use_vllm", "false"] if name == "grpo" else [])
        )
        assert (task.dataset, task.dataset_config) == ("openai/gsm8k", "main")
        assert args.policy_loss_fn_args == {"m2_threshold": 0.04}


def test_the_reward_compares_the_last_numbers(tmp_path):
    answers = ["so #### 1,200", "so #### -3", "so #### 4.50", "so #### 7"]
    said = ["#### 1200", "no #### 3 but #### -3.0", "#### $4.5", "7"]
    completions = [[{"role": "assistant", "content": text}] for text in said]
    assert gsm8k.right_answer(completions, answers) == [1.0, 1.0, 1.0, 0.0]
