# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The policy losses in TRL: an AsyncGRPOTrainer that selects once per optimizer batch.

Apart from `trl`, because TRL's trainer is experimental, and warns when it is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import trl.experimental.async_grpo as async_grpo

from rft import Batch

from .common import SelectionScope, refusal
from .trl import Inputs, Keys, OptimizerBatch, check_keys, check_router, without_unscored


@dataclass
class PluginAsyncGRPOConfig(Keys, async_grpo.AsyncGRPOConfig):
    """`AsyncGRPOConfig` with the keys of ours; refuses what PluginAsyncGRPOTrainer can't serve."""

    _VALID_DICT_FIELDS = [*async_grpo.AsyncGRPOConfig._VALID_DICT_FIELDS, "policy_loss_fn_args"]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_keys(self)


class PluginAsyncGRPOTrainer(async_grpo.AsyncGRPOTrainer):
    """`AsyncGRPOTrainer` with a plugin's policy loss; `args` is a PluginAsyncGRPOConfig."""

    def __init__(
        self, model: str, reward_funcs: Any = None, args: Any = None, *rest: Any, **named: Any
    ) -> None:
        if not isinstance(args, PluginAsyncGRPOConfig):
            raise refusal("args", "a PluginAsyncGRPOConfig", type(args).__name__)
        super().__init__(model, reward_funcs, args, *rest, **named)
        check_router(self)
        self._optimizer_batch = OptimizerBatch(args, self.accelerator)

    def get_batch_samples(
        self, epoch_iterator: Iterator, num_batches: int, device: torch.device
    ) -> tuple[list[Inputs], Any]:
        """The micro-batches of one optimizer batch, after the selection over all of them."""
        window, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        # One alone is selected with the log-probs of its loss.
        if len(window) > 1:
            if self._optimizer_batch.scope is SelectionScope.MICRO_BATCH:
                self._count(window)
            else:
                batches = [self._batch(inputs, self._logprob(inputs)) for inputs in window]
                self._optimizer_batch.select(batches, self._stale)
        return window, items

    def _count(self, window: list[Inputs]) -> None:
        tokens = sequences = 0
        for inputs in window:
            valid = self._mask(inputs)
            tokens += int(valid.sum())
            sequences += inputs["segment_id"][inputs["token_index"] >= 0][valid].unique().numel()
        self._optimizer_batch.count(tokens, sequences, len(window), self._stale)

    @property
    def _stale(self) -> bool:
        return self.state.global_step > 0 and self.args.max_staleness > 0

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: Inputs,
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> torch.Tensor:
        """The loss of one micro-batch. TRL runs the model and keeps its accounts; its loss is left
        alone, and so are the metrics of its clip."""
        outputs = []

        def recording(**named: Any) -> Any:
            outputs.append(model(**named))
            return outputs[0]

        super().compute_loss(recording, inputs)
        for name in [name for name in self._metrics["train"] if name.startswith("clip_ratio/")]:
            del self._metrics["train"][name]
        batch = self._batch(inputs, self._trained(outputs[0], inputs))
        if self._optimizer_batch.left == 0:
            if self._optimizer_batch.scope is SelectionScope.MICRO_BATCH:
                self._count([inputs])
            else:
                self._optimizer_batch.select([batch], self._stale)
        loss, metrics = self._optimizer_batch.evaluate(batch)
        for name, value in metrics.items():
            self._metrics["train"][name].append(value)
        return loss

    @torch.no_grad()
    def _logprob(self, inputs: Inputs) -> torch.Tensor:
        """[M]: log-probs of this rank's trained tokens under the current policy, as TRL's loss
        computes them."""
        packed = inputs["attention_mask"].bool()
        tree = ("tree_kv_index", "tree_cu_seqlens_q", "tree_cu_seqlens_k")
        longest = inputs["tree_max_seqlens"][0].tolist()
        rows = ("input_ids", "position_ids", "shift_labels")
        with self.accelerator.autocast():
            outputs = self.model(
                fused_lm_head=True,
                **{key: inputs[key][packed].unsqueeze(0) for key in rows},
                **{key: inputs[key][inputs[key] >= 0] for key in tree},
                tree_max_seqlen_q=longest[0],
                tree_max_seqlen_k=longest[1],
            )
        return self._trained(outputs, inputs)

    @staticmethod
    def _trained(outputs: Any, inputs: Inputs) -> torch.Tensor:
        index = inputs["token_index"]
        return outputs.log_probs.flatten()[index[index >= 0]]

    @staticmethod
    def _mask(inputs: Inputs) -> torch.Tensor:
        """[M] bool."""
        old = inputs["old_log_probs"][inputs["token_index"] >= 0]
        return without_unscored(torch.ones_like(old), old)

    def _batch(self, inputs: Inputs, logprob: torch.Tensor) -> Batch:
        """This rank's row, packed: [M] trained tokens, of as many sequences as it has samples."""
        trained = inputs["token_index"] >= 0
        old, advantages = inputs["old_log_probs"][trained], inputs["advantages"][trained]
        lengths = torch.bincount(inputs["segment_id"][trained])
        cu_seqlens = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        return Batch(logprob, old, advantages, self._mask(inputs), cu_seqlens=cu_seqlens)
