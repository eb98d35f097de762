# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Ranks in one process: what the library is told, and what becomes of a transport that fails."""

from __future__ import annotations

import gc
import os
import pathlib
import shutil
import weakref

import pytest
import torch

import rft
from threads import Threads
from vectors import recorded, rows, split

FILE = "smollm2_k16.safetensors"


def ends(size: int) -> list[int]:
    """Rows of a recorded batch for so many ranks: unequal, one of them none."""
    return [0, 0, *(128 * k // (size - 1) for k in range(1, size))] if size > 1 else [0, 128]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_any_number_of_ranks_selects_what_one_does(size) -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)
    masks, report = loss.select(split(tensors, 30))
    bounds, group = ends(size), Threads(size)

    def work(rank: int, collectives: rft.Collectives) -> rft.Selection:
        first, last = bounds[rank], bounds[rank + 1]
        batches = [rows(tensors, k, min(k + 11, last)) for k in range(first, last, 11)]
        return loss.select(batches, collectives)

    found = group.run(work)
    assert torch.equal(torch.cat([mask for part in found for mask in part.masks]), torch.cat(masks))
    assert all(part.report == report for part in found)
    assert 0 < group.reductions <= 6 and 8 * group.words <= 64 * 1024


def test_a_rank_whose_tensors_can_not_be_read_fails_all() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)

    def work(rank: int, collectives: rft.Collectives) -> rft.Selection:
        batch = rft.Batch(**tensors)
        if rank == 1:
            batch = rft.Batch(**{**tensors, "logprob": tensors["logprob"].to(torch.complex64)})
        return loss.select([batch], collectives)

    found = Threads(3).run(work)
    assert found[1].code == rft.Code.INVALID_ARGUMENT and "complex64" in str(found[1])
    for rank in (0, 2):
        assert found[rank].code == rft.Code.ABORTED and "failed on 1 of 3 ranks" in str(found[rank])


def test_a_rank_whose_batches_raise_fails_all() -> None:
    loss, tensors = rft.PolicyLoss.from_preset("m2po"), recorded(FILE)

    def work(rank: int, collectives: rft.Collectives) -> object:
        def batches():
            yield rft.Batch(**tensors)
            if rank == 0:
                raise KeyError("no more")

        if rank == 1:
            return loss.select(batches(), collectives)
        with pytest.raises(KeyError, match="no more"):
            loss.select(batches(), collectives)
        return None

    found = Threads(2).run(work)
    assert found[0] is None and found[1].code == rft.Code.ABORTED


def test_a_transport_that_raises_is_an_error_with_its_text() -> None:
    def broken(_values) -> None:
        raise OSError("the cable is out: \u00e9" + "x" * 600)

    loss = rft.PolicyLoss.from_preset("m2po")
    with pytest.raises(rft.RftError) as caught:
        loss.select([rft.Batch(**recorded(FILE))], rft.Collectives(1, 2, broken))
    assert caught.value.code == rft.Code.UNAVAILABLE
    assert "all_reduce_sum on rank 1 of 2: OSError: the cable is out: \u00e9" in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)


def test_an_interrupt_in_a_transport_goes_its_way() -> None:
    def interrupted(_values) -> None:
        raise KeyboardInterrupt

    loss = rft.PolicyLoss.from_preset("m2po")
    with pytest.raises(KeyboardInterrupt):
        loss.select([rft.Batch(**recorded(FILE))], rft.Collectives(0, 2, interrupted))


def test_a_group_is_not_kept_until_garbage_is_collected() -> None:
    def all_reduce_sum(_values) -> None:
        pass

    group = weakref.ref(all_reduce_sum)
    loss = rft.PolicyLoss.from_preset("m2po")
    gc.disable()
    try:
        loss.select([rft.Batch(**recorded(FILE))], rft.Collectives(0, 1, all_reduce_sum))
        del all_reduce_sum
        assert group() is None
    finally:
        gc.enable()


def test_a_loss_without_collectives_refuses_a_group() -> None:
    loss = rft.PolicyLoss.from_preset("m2po")
    table = type(loss.table).from_buffer_copy(loss.table)
    table.capabilities = 0
    loss.table = table
    with pytest.raises(rft.RftError, match="selects in one process only") as caught:
        loss.select([rft.Batch(**recorded(FILE))], Threads(2).rank(0))
    assert caught.value.code == rft.Code.UNIMPLEMENTED


def test_a_group_has_to_be_one() -> None:
    with pytest.raises(rft.RftError, match="expected a process group of torch.distributed"):
        rft.PolicyLoss.from_preset("m2po").select([], "data parallel")


def test_no_batch_at_all_is_legal() -> None:
    masks, report = rft.PolicyLoss.from_preset("m2po").select([])
    assert masks == [] and (report.valid_tokens, report.kept_tokens, report.sequences) == (0, 0, 0)


@pytest.fixture
def reinforce(tmp_path) -> rft.PolicyLoss:
    shutil.copy(pathlib.Path(os.environ["BUILD"]) / "fixtures" / "good.so", tmp_path)
    return rft.PolicyLoss.from_config("reinforce", registry=rft.Registry([tmp_path]))


def test_ranks_count_together_for_a_loss_that_selects_nothing(reinforce) -> None:
    tensors = recorded(FILE)
    found = Threads(3).run(
        lambda rank, collectives: reinforce.select(
            [rows(tensors, 40 * rank, 40 * rank + 40)], collectives
        )
    )
    _, report = reinforce.select([rows(tensors, 0, 120)])
    assert all(part.report == report for part in found)


def test_a_rank_that_can_not_count_fails_all(reinforce) -> None:
    def work(rank: int, collectives: rft.Collectives) -> object:
        if rank == 1:
            return reinforce.select([rft.Batch(**recorded(FILE))], collectives)
        with pytest.raises(AttributeError):
            reinforce.select([None], collectives)
        return None

    found = Threads(2).run(work)
    assert found[1].code == rft.Code.ABORTED and "on 1 of 2 ranks" in str(found[1])
