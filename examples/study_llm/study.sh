#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: study.sh [all|search|report|quick|check]
#
# Trains SmolLM2-135M-Instruct with the plugin in $BUILD, from rollouts that are many updates old; `make study-llm`
# calls it. The environment with torch, transformers and the model is made by the first run. README.md beside this
# says what is compared.
set -euo pipefail

cd "$(dirname "$0")/../.."
mode=${1:-all}
case $mode in
all | search | report | quick | check) ;;
*)
  echo "study-llm: STUDY: expected all, search, report, quick or check, found \"$mode\"" >&2
  exit 2
  ;;
esac

tests/hosts/environment.sh llm
export RFT_HOST_LIBRARY=$BUILD/librft_host.so.1 RFT_PLUGIN_PATH=$BUILD/plugins
export PYTHONPATH=$PWD/examples/pytorch/src PYTHONDONTWRITEBYTECODE=1
export HF_HUB_OFFLINE=1 TQDM_DISABLE=1
# A thread that waits by spinning keeps others off its core, and torch's wait hundreds of times a pass.
export OMP_WAIT_POLICY=PASSIVE
python=build/venv-llm/bin/python
if [ "$mode" = check ]; then
  exec $python examples/study_llm/check.py
fi
directory=$BUILD/study-llm
[ "$mode" != quick ] || directory=$BUILD/study-llm-quick
mkdir -p "$directory"
exec $python examples/study_llm/study.py "$mode" "$directory"
