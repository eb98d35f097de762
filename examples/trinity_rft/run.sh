#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: run.sh     TRINITY_MODEL_PATH and TRINITY_CHECKPOINT_ROOT_DIR: the model, where checkpoints go
#
# The asynchronous GSM8K run, on 8 GPUs: 4 sample and 4 train, each at its own pace. Ray's workers take
# this environment over, RFT_PLUGIN_PATH too where it is set.
set -euo pipefail

cd "$(dirname "$0")"
ray status >/dev/null 2>&1 || ray start --head

trinity run --config trainer.yaml &
trainer=$!
trap 'kill "$trainer" 2>/dev/null || true' EXIT
trinity run --config explorer.yaml
wait "$trainer"
