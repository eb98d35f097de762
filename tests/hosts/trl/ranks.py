# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Runs of a function on ranks of gloo: forked, so that what is imported is imported once, and each
with accelerate's state of its own."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import pickle
import socket
import traceback
from collections.abc import Callable
from typing import Any


def run(ranks: int, directory: pathlib.Path, function: Callable, *args: Any) -> list[Any]:
    """What `function(*args)` gives on each of the ranks, one process each; they may also be one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    fork = multiprocessing.get_context("fork")
    processes = [
        fork.Process(target=_rank, args=(rank, ranks, port, directory, function, args))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    results = [pickle.loads(_file(directory, rank).read_bytes()) for rank in range(ranks)]
    for kind, value in results:
        if kind == "error":
            raise AssertionError(value)
    return [value for _, value in results]


def _rank(rank: int, ranks: int, port: str, directory: pathlib.Path, function, args) -> None:
    if ranks > 1:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    try:
        result = ("value", function(*args))
    except BaseException:
        result = ("error", f"rank {rank} of {ranks}\n{traceback.format_exc()}")
    _file(directory, rank).write_bytes(pickle.dumps(result))
    os._exit(0)  # a rank that has failed leaves the other one without an answer: don't wait for it


def _file(directory: pathlib.Path, rank: int) -> pathlib.Path:
    return directory / f"rank{rank}.pickle"
