#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# The Python package, with Debian's Python or the one that PYTHON names.
set -u

if [ -n "$SANITIZE" ]; then
  echo "ok - python # SKIP Python itself is not instrumented"
  exit 0
fi

export PYTHON=${PYTHON:-/usr/bin/python3}
export PYTHONPATH=$PWD/examples/pytorch/src:$PWD/tests/reporter PYTHONDONTWRITEBYTECODE=1
export RFT_HOST_LIBRARY=$BUILD/librft_host.so.1 RFT_PLUGIN_PATH=$BUILD/plugins
export OMP_NUM_THREADS=1 # processes of a test share the cores

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export RFT_TEST_RESULTS=$scratch/results
"$PYTHON" -m pytest -q -p no:cacheprovider -p results --basetemp="$scratch/tmp" tests/python >"$scratch/log" 2>&1
status=$?
cat "$RFT_TEST_RESULTS"
[ "$status" -eq 0 ] || sed 's/^/# /' "$scratch/log"
exit "$status"
