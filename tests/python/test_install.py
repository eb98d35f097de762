# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""`pip install ./examples/pytorch`, into an environment of its own."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "examples" / "pytorch"


def run(*command: object, **settings: str) -> subprocess.CompletedProcess:
    """Runs a command as a user does, who has set nothing for this package."""
    ours = ("PYTHONPATH", "RFT_HOST_LIBRARY", "RFT_PLUGIN_PATH", "BUILD")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd="/",
        env={**environment, **settings},
        timeout=300,
    )


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> pathlib.Path:
    """The Python of an environment where the package is installed. No index is asked: the tools for
    building are Debian's."""
    folder = tmp_path_factory.mktemp("venv")
    made = run(sys.executable, "-m", "venv", "--system-site-packages", folder)
    assert made.returncode == 0, made.stderr
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index")
    installed = run(*pip, "--no-build-isolation", PACKAGE)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    return folder / "bin" / "python"


def test_a_preset_can_be_used_at_once(python) -> None:
    found = run(
        python, "-c", "import rft; print(rft.PolicyLoss.from_preset('m2po').config['m2_threshold'])"
    )
    assert found.stdout == "0.04\n", found.stderr


def test_the_plugin_comes_with_the_package(python) -> None:
    found = run(
        python, "-c", "import rft; print(*(p.path for p in rft.default_registry().plugins))"
    )
    assert re.search(r"site-packages/rft/native/plugins/libm2po_plugin\.so$", found.stdout.strip())


def test_a_plugins_directory_of_the_user_s_is_used_instead(python, tmp_path) -> None:
    shutil.copy(pathlib.Path(os.environ["BUILD"]) / "fixtures" / "good.so", tmp_path)
    code = "import rft; print(*(p.id for p in rft.default_registry().plugins))"
    found = run(python, "-c", code, RFT_PLUGIN_PATH=str(tmp_path))
    assert found.stdout == "org.example.fixture\n", found.stderr


def test_the_adapters_come_with_the_package(python) -> None:
    code = """
import pathlib
from rft.hosts import common
print(*sorted(file.stem for file in pathlib.Path(common.__file__).parent.glob("*.py")))
print(common.policy_loss("m2po", {}, "preset", "policy_loss_fn_args").name)
"""
    adapters, name = run(python, "-c", code).stdout.splitlines()
    assert {"areal", "trinity_rft", "trl", "verl"} <= set(adapters.split())
    assert name == "m2po"


def test_importing_the_package_imports_neither_torch_nor_numpy(python) -> None:
    code = """
import rft, sys
rft.PolicyLoss.from_preset("m2po")
print({"torch", "numpy"} & set(sys.modules))
"""
    assert run(python, "-c", code).stdout == "set()\n"


def test_nothing_is_left_beside_the_sources(python) -> None:
    left = {path.name for path in PACKAGE.rglob("*") if path.name != "__pycache__"}
    assert not left & {"build", "native", "rft.egg-info"}


def test_an_editable_install_says_what_to_do_instead(python) -> None:
    pip = (python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps")
    found = run(*pip, "--editable", PACKAGE)
    assert found.returncode != 0
    assert "rft cannot be installed in editable mode" in found.stdout + found.stderr


def test_the_example_learns(python) -> None:
    found = run(python, PACKAGE / "example.py", "--updates", "150")
    lines = found.stdout.splitlines()
    assert len(lines) == 4, found.stderr
    rewards = [float(re.search(r"reward (\S+)", line).group(1)) for line in lines]
    assert rewards[0] < 0.2 and rewards[-1] > 0.8
    assert all(float(re.search(r"-> (\S+)", line).group(1)) <= 0.04 for line in lines)


def test_the_example_runs_on_ranks(python, tmp_path) -> None:
    torchrun = (python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    logs = ("--redirects", "1", "--tee", "1", "--log_dir", tmp_path, "--monitor_interval", "1")
    found = run(*torchrun, *logs, PACKAGE / "example.py", "--updates", "1")
    assert found.returncode == 0, found.stderr
    assert len(re.findall(r"update +1 +reward", found.stdout)) == 1
