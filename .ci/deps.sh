#!/bin/sh
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: deps.sh [--install] JOB...     JOB: build, libraries, mpi, test, test-hosts, bench, study, study-llm,
# conformance, asan, tsan, demo, lint, ci, deps (libraries: librft_host and the plugin alone; deps: what build, mpi, test and demo need)
#
# Looks for what the jobs need; says what is missing, or with --install gets it from Debian's
# archive. No network use where nothing is missing.
set -eu

missing=
need() { # PACKAGE COMMAND...: the package is missing when the command fails
  package=$1
  shift
  "$@" >/dev/null 2>&1 || missing="$missing $package"
}
compiles() {
  echo '#include <stdio.h>' | "$CC" -E -
}
has_header() {
  echo "#include <$1>" | "$CC" -E -
}
library() {
  pkg-config --exists "$1"
}
python_has() { # Debian's Python, whatever else is in PATH; finding takes no second, importing may
  /usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' "$1"
}

CC=${CC:-cc}
compiler=gcc
case $CC in *clang*) compiler=clang ;; esac

install=
if [ "${1:-}" = --install ]; then
  install=yes
  shift
fi
for job in "$@"; do
  case $job in
  build | libraries)
    need "$compiler libc6-dev" compiles
    need pkg-config command -v pkg-config
    need libjansson-dev library jansson
    if command -v apt-get >/dev/null; then # jansson's source, see plugin/jansson.sh
      need dpkg-dev command -v dpkg-source
    fi
    ;;
  esac
  case $job in
  build)
    need libyaml-dev library yaml-0.1
    need libopenblas-dev library openblas
    ;;
  esac
  case $job in
  test | asan | tsan | ci | deps)
    need libcriterion-dev library criterion
    need libgmp-dev library gmp
    ;;
  esac
  case $job in
  test | ci | deps)
    need python3-torch python_has torch
    need python3-numpy python_has numpy
    need python3-pytest python_has pytest
    need python3-setuptools python_has setuptools
    need python3-wheel python_has wheel
    need python3-pip python_has pip
    need python3-venv python_has ensurepip
    need valgrind command -v valgrind
    ;;
  esac
  case $job in
  test-hosts | bench | study-llm) need python3-venv python_has ensurepip ;;
  study) need python3 command -v python3 ;;
  esac
  case $job in
  test | conformance | asan | tsan | ci | deps)
    need jq command -v jq
    need abigail-tools command -v abidiff
    ;;
  esac
  case $job in
  test | conformance | asan | tsan | lint | ci | deps)
    need libdlpack-dev has_header dlpack/dlpack.h
    ;;
  esac
  case $job in
  mpi | test | asan | tsan | lint | ci | deps)
    need libopenmpi-dev library ompi-c
    need openmpi-bin command -v mpirun
    ;;
  esac
  case $job in
  demo | bench | study | study-llm | test | asan | tsan | ci | deps) need gnuplot-nox command -v gnuplot ;;
  esac
  case $job in
  lint | ci)
    need clang-format command -v clang-format
    need clang-tidy command -v clang-tidy
    need cppcheck command -v cppcheck
    need valgrind has_header valgrind/callgrind.h
    ;;
  esac
  case $job in
  ci)
    need g++ command -v g++
    need clang command -v clang
    need gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
    need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/stdio.h
    need qemu-user command -v qemu-aarch64
    need locales test -e /usr/share/i18n/locales/de_DE
    ;;
  esac
done
[ -n "$missing" ] || exit 0

stop() {
  echo "$1. Install these (Debian's names):$missing" >&2
  exit 1
}
[ -n "$install" ] || stop "Some of what the build needs is missing; \`make deps\` gets it"
command -v apt-get >/dev/null || stop "Some packages are missing, and there is no apt-get here"

as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || stop "Some packages are missing, and there is neither root nor sudo"
  as_root=sudo
  [ -t 0 ] || as_root='sudo -n'
fi

echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # lists of words
{
  $as_root apt-get update -qq || stop "\`apt-get update\` failed"
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    stop "\`apt-get install\` failed"
}
