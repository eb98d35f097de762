#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: cost.sh     after tests/hosts/environment.sh verl; about a minute on one core
#
# Prints the cost table of examples/verl.
set -eu

cd "$(dirname "$0")/../../.."
export PYTHONPATH=$PWD/examples/pytorch/src:$PWD/tests/hosts/shared:$PWD/tests/hosts/verl
export RFT_HOST_LIBRARY=$PWD/build/librft_host.so.1 RFT_PLUGIN_PATH=$PWD/build/plugins
export VERL_PLATFORM=cpu VERL_USE_EXTERNAL_MODULES=cpu_platform,rft.hosts.verl
export OMP_NUM_THREADS=1 TORCHDYNAMO_DISABLE=1 HF_HUB_OFFLINE=1
export RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=${MASTER_PORT:-29511}
exec build/venv-verl/bin/python -W ignore tests/hosts/verl/cost.py
