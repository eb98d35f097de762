#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: run.sh [OVERRIDE...]     such as trainer.total_epochs=1
#
# Starts the asynchronous GSM8K run of gsm8k_m2po.yaml, with verl's own command.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
exec python3 -m verl.trainer.main_ppo --config-path "$here" --config-name gsm8k_m2po "$@"
