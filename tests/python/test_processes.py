# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Losses in other processes and threads."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import rft
from vectors import recorded, split

FILE = "smollm2_k16.safetensors"


def step(loss: rft.PolicyLoss) -> tuple:
    """Selection, losses and gradients of a recorded batch, as plain numbers."""
    batches = split(recorded(FILE), 50)
    masks, report = loss.select(batches)
    values, gradients = [], []
    for batch, mask in zip(batches, masks):
        logprob = batch.logprob.clone().requires_grad_()
        attached = rft.Batch(logprob, batch.old_logprob, batch.advantages, batch.mask)
        value = loss(attached, mask, report.reduction())
        value.backward()
        values.append(float(value))
        gradients.append(logprob.grad.tolist())
    return [mask.tolist() for mask in masks], report.metrics, values, gradients


def answer(loss: rft.PolicyLoss, results: multiprocessing.Queue) -> None:
    results.put(step(loss))


@pytest.fixture(params=[1, 3], ids=["1 thread", "3 threads"])
def loss(request) -> rft.PolicyLoss:
    return rft.PolicyLoss.from_preset("m2po", registry=rft.Registry(threads=request.param))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_loss_works_in_a_child_process(loss, method) -> None:
    expected = step(loss)
    context = multiprocessing.get_context(method)
    results = context.Queue()
    child = context.Process(target=answer, args=(loss, results))
    child.start()
    found = results.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert found == expected and step(loss) == expected


def test_a_loss_can_be_pickled_and_copied(loss) -> None:
    expected = step(loss)
    for other in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        assert (other.name, other.config, other.preset) == (loss.name, loss.config, loss.preset)
        assert step(other) == expected


def test_a_report_can_be_pickled(loss) -> None:
    _, report = loss.select(split(recorded(FILE), 50))
    assert pickle.loads(pickle.dumps(report)) == report


def test_any_thread_may_call_a_loss(loss) -> None:
    expected = step(loss)
    with ThreadPoolExecutor(4) as threads:
        assert all(found == expected for found in threads.map(step, [loss] * 12))


def test_the_number_of_threads_changes_no_bit() -> None:
    torch.manual_seed(3)
    count = 100_000
    batch = rft.Batch(
        torch.randn(count), torch.randn(count), torch.randn(count), torch.rand(count) < 0.9
    )
    found = []
    for threads in (1, 2, 5):
        loss = rft.PolicyLoss.from_preset("m2po", registry=rft.Registry(threads=threads))
        masks, report = loss.select([batch])
        result = loss.evaluate(batch, masks[0], report.reduction())
        found.append((masks[0].tolist(), report.metrics, result.loss, result.gradient.tolist()))
    assert found[1] == found[0] and found[2] == found[0]
