# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""A policy loss of a plugin, with its config: select tokens, then loss and gradient."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from ctypes import byref, c_void_p
from typing import Any

from . import _abi
from ._library import call, library
from .batch import Array, Batch
from .errors import Code, RftError
from .evaluation import Evaluation, SelectedEvaluation, evaluate, select_evaluate
from .metrics import Metrics
from .registry import Registry, default_registry, encode
from .selection import Reduction, Report, Selection, collectives_of, keep_all, select
from .tensors import is_torch


class PolicyLoss:
    """A policy loss. Immutable; any thread may use it, and any number at once.

    It can be pickled, and is then made anew where it arrives.
    """

    def __init__(
        self, name: str, config: Mapping[str, Any], registry: Registry | None = None
    ) -> None:
        """As `from_config`."""
        self.registry = registry or default_registry()
        self.name = name
        self.table: _abi.PolicyLoss = self.registry.find(name)
        self.one_pass: _abi.OnePass | None = self.registry.one_pass(self.table)
        self.config: dict[str, Any] = self.registry.resolve(name, config)
        self.preset: dict[str, Any] | None = None
        self._arguments = (name, dict(config), registry)
        given, handle = encode(config), c_void_p()
        call(
            library().rft_instance_create,
            self.registry.handle,
            byref(self.table),
            given,
            len(given),
            byref(handle),
        )
        self.handle = handle
        # The finalizer holds the registry, which has to go later.
        weakref.finalize(self, _destroy, self.table, handle, self.registry)

    @classmethod
    def from_config(
        cls,
        name: str,
        config: Mapping[str, Any] | None = None,
        registry: Registry | None = None,
    ) -> PolicyLoss:
        """The policy loss `name` with a config, which its schema checks: a key that is unknown,
        misspelt, of the wrong type or out of range is an RftError that names it.

        `registry`: None is `default_registry()`.
        """
        return cls(name, config or {}, registry)

    @classmethod
    def from_preset(
        cls,
        name: str,
        args: Mapping[str, Any] | None = None,
        registry: Registry | None = None,
    ) -> PolicyLoss:
        """The policy loss of an algorithm preset; `args` go over the preset's own. The whole preset
        is then in `preset`."""
        document = (registry or default_registry()).preset(name, args)
        loss = cls(document["policy_loss_fn"], document["policy_loss_fn_args"], registry)
        loss.preset = document
        return loss

    def __reduce__(self) -> tuple:
        return PolicyLoss, self._arguments, {"preset": self.preset}

    def __repr__(self) -> str:
        return f"rft.PolicyLoss({self.name!r}, {self.config!r})"

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the config."""
        return self.registry.schema(self.name)

    # ------------------------------------------------------------------------------------ selection

    def select(self, batches: Iterable[Batch], group: Any = None) -> Selection:
        """One exact selection over an optimizer batch: every micro-batch of every data-parallel
        rank that goes into one optimizer step. No gradient flows through it.

        `batches`: this rank's micro-batches in token order, with log-probs of before the step; none
        at all is legal. `group`: the torch.distributed process group of the ranks that share the
        batch, where every rank makes this call, also one with no token. Never the group of tensor-
        or context-parallel copies: their tokens would count twice. None: this process alone, and an
        error where more than one rank is at work; ALONE says so on purpose. A `Collectives` serves
        for other transports.

        Gives the masks and a report, `(masks, report)`. Where one rank fails, all raise RftError.
        """
        collectives = collectives_of(self, group)
        if not self.table.selection_begin:
            return keep_all(self, batches, collectives)
        return select(self, batches, collectives)

    # ----------------------------------------------------------------------------------------- loss

    def __call__(
        self,
        batch: Batch,
        mask: Array | None = None,
        reduction: Reduction | None = None,
        metrics: Metrics | None = None,
    ) -> Any:
        """The loss of one micro-batch of torch tensors, to call backward() on.

        `mask`: this micro-batch's of `select`; None: every valid token is kept. `reduction`: the
        counts of the optimizer batch, `report.reduction()`; None: this micro-batch's own. `metrics`
        is added to: once a call, also where gradient checkpointing calls a second time.

        Gives a 0-D tensor on logprob's device, float32 (float64 for float64 log-probs), attached to
        the graph of `batch.logprob` even where the mask keeps nothing. Its backward is the gradient
        that the library returned with the loss; advantages, old_logprob and the mask are constants.
        """
        if not is_torch(batch.logprob):
            raise RftError(
                Code.INVALID_ARGUMENT,
                "logprob: expected a torch.Tensor, found "
                f"{type(batch.logprob).__name__}; `evaluate` takes other arrays",
            )
        from .autograd import differentiable

        return differentiable(self, batch, mask, reduction, metrics)

    def evaluate(
        self,
        batch: Batch,
        mask: Array | None = None,
        reduction: Reduction | None = None,
        metrics: Metrics | None = None,
        gradient: bool = True,
    ) -> Evaluation:
        """Loss and gradient of one micro-batch as numbers, of torch tensors or NumPy arrays. The
        arguments are those of the call; `gradient` False: only the loss is wanted."""
        return evaluate(self, batch, mask, reduction, metrics, gradient)

    # --------------------------------------------------------------------------- selection and loss

    def select_evaluate(
        self,
        batch: Batch,
        group: Any = None,
        scale: float = 1.0,
        metrics: Metrics | None = None,
    ) -> SelectedEvaluation:
        """`select` and the loss at once, for an optimizer batch that is one micro-batch on each
        rank. Where the plugin has a function for it, and there is one rank, it reads the tensors
        once.

        `group` is that of `select`, and every rank of it makes this call, one that has no token
        with a batch of no row or an empty mask. `scale` is that of Reduction. `metrics` is given
        those of the selection too. torch tensors and NumPy arrays go alike.

        Gives what the separate calls give; the loss may be added up in another order.
        """
        # What is no batch fails on this rank where the others hear of it.
        if not is_torch(getattr(batch, "logprob", None)):
            return select_evaluate(self, batch, group, scale, metrics, gradient=True)
        from .autograd import differentiable_selection

        return differentiable_selection(self, batch, group, scale, metrics)

    def metrics(self, report: Report | None = None) -> Metrics:
        """A new collection of metrics, that begins with those of a selection."""
        made = Metrics(self.table)
        if report is not None:
            made.add_report(report)
        return made


def _destroy(table: _abi.PolicyLoss, handle: c_void_p, _registry: Registry) -> None:
    table.destroy(handle)
