# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""A model directory, and actors that are gone after their test."""

from __future__ import annotations

import pytest
import tiny
import world

from rft.hosts.areal import RFTActorConfig


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def batch() -> list:
    return world.trajectories()


@pytest.fixture
def start(model: str):
    """Makes an actor in this process, of our config or of the one that `config` names."""
    started = []

    def make(config=RFTActorConfig, **given):
        while started:
            world.leave(started.pop())
        world.enter(0, 1, world.free_port())
        started.append(world.start(config(**world.settings(model, **given))))
        return started[-1]

    yield make
    while started:
        world.leave(started.pop())
