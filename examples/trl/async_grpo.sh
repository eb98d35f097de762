#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: async_grpo.sh [--KEY VALUE...]     keys of async_grpo.yaml to override
#
# A server of vLLM on SERVER_GPUS (0), and the trainer on TRAINER_GPUS (1). Several trainer GPUs need
# FSDP2: give accelerate its options in ACCELERATE.
set -eu

cd "$(dirname "$0")"
model=$(sed -n 's/^model: //p' async_grpo.yaml)

CUDA_VISIBLE_DEVICES=${SERVER_GPUS:-0} VLLM_SERVER_DEV_MODE=1 vllm serve "$model" \
  --max-model-len 2048 --logprobs-mode processed_logprobs \
  --weight-transfer-config '{"backend": "nccl"}' &
trap 'kill $!' EXIT

# shellcheck disable=SC2086  # several options
CUDA_VISIBLE_DEVICES=${TRAINER_GPUS:-1} accelerate launch ${ACCELERATE:-} \
  async_grpo.py --config async_grpo.yaml "$@"
