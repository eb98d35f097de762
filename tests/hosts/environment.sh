#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: environment.sh NAME
#
# Makes build/venv-NAME hold what requirements/NAME.txt pins, and nothing else; leaves it alone where
# it does already. Environments other than `torch` see the packages of build/venv-torch, whose torch is
# most of what there is to download. The files name every package, so that pip has nothing to resolve:
# the frameworks' own pins contradict each other.
set -euo pipefail

cd "$(dirname "$0")/../.."
python=${PYTHON:-/usr/bin/python3}

# make_environment NAME: anew when its pins have changed; the stamp comes last, so that half is never whole
make_environment() {
  local name=$1 home=build/venv-$1 pins=tests/hosts/requirements/$1.txt stamp site
  stamp=$("$python" --version && cat "$pins" tests/hosts/environment.sh &&
    { [ "$name" = torch ] || cat tests/hosts/requirements/torch.txt; })
  if [ -f "$home/stamp" ] && [ "$(cat "$home/stamp")" = "$stamp" ]; then
    return
  fi
  echo "# installing $pins into $home"
  rm -rf "$home"
  "$python" -m venv "$home"
  if [ "$name" != torch ]; then
    site=$("$home/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    (cd build/venv-torch/lib/python*/site-packages && pwd) >"$site/torch_environment.pth"
  fi
  "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --requirement "$pins"
  echo "$stamp" >"$home/stamp"
}

mkdir -p build
make_environment torch
[ "$1" = torch ] || make_environment "$1"
