#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: bench.sh [quick|full]
#
# Measures the plugin in $BUILD on this machine; `make bench` calls it. The environment with torch is made
# by the first run. README.md beside this says what is measured.
set -euo pipefail

cd "$(dirname "$0")/../.."
mode=${1:-full}
case $mode in
quick | full) ;;
*)
  echo "bench: BENCH: expected quick or full, found \"$mode\"" >&2
  exit 2
  ;;
esac

tests/hosts/environment.sh torch
export RFT_HOST_LIBRARY=$BUILD/librft_host.so.1 RFT_PLUGIN_PATH=$BUILD/plugins
export RFT_BENCH_LIBRARY=$BUILD/bench/libbench.so
export PYTHONPATH=$PWD/examples/pytorch/src PYTHONDONTWRITEBYTECODE=1
unset M2PO_TARGET
LD_PRELOAD=$RFT_BENCH_LIBRARY exec build/venv-torch/bin/python tests/bench/bench.py "$mode" "$BUILD/bench"
