# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Builds librft_host and the plugin with the project's Makefile and puts them into the package."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel
from setuptools.errors import SetupError

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "python"  # all that is built lands here, nothing beside the sources
LIBRARY = "librft_host.so"
PLUGIN = "plugins/libm2po_plugin.so"


class BuildPy(build_py):
    """The package, and what it needs of C."""

    def run(self) -> None:
        super().run()
        make_libraries()
        native = pathlib.Path(self.build_lib) / "rft" / "native"
        (native / "plugins").mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / LIBRARY, native / f"{LIBRARY}.1")
        shutil.copy(BUILD / PLUGIN, native / PLUGIN)


def make_libraries() -> None:
    if not (ROOT / "Makefile").is_file():
        raise SetupError(f"rft is built in a checkout: expected a Makefile in {ROOT}, found none")
    jobs = f"-j{os.cpu_count() or 1}"
    command = ["make", jobs, "-C", str(ROOT), f"BUILD={BUILD}", "libraries"]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        raise SetupError(f"the C libraries could not be built: {problem}") from problem


class BdistWheel(bdist_wheel):
    """Any Python 3, but this machine's C library."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class EditableWheel(editable_wheel):
    """Refused: the package in the source tree has no library."""

    def run(self) -> None:
        raise SetupError(
            "rft cannot be installed in editable mode: its libraries are copied into the installed "
            "package. README.md says how to work in the source tree"
        )


class BinaryDistribution(Distribution):
    """Goes to platlib."""

    def has_ext_modules(self) -> bool:
        return True


(BUILD / "package").mkdir(parents=True, exist_ok=True)
setup(
    distclass=BinaryDistribution,
    cmdclass={"build_py": BuildPy, "bdist_wheel": BdistWheel, "editable_wheel": EditableWheel},
    options={
        "build": {"build_base": str(BUILD / "package")},
        "egg_info": {"egg_base": str(BUILD / "package")},
    },
)
