#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# rft check finds the fault of each plugin in plugins/, and no other: the line "fails:" of its source
# names the checks. It finds none in the project's own plugin.
set -u

: "${BUILD:=$PWD/build}" "${SANITIZE:=}"
export BUILD SANITIZE
here=tests/conformance/plugins
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export here work

# Checks that a plugin has failed, required or not, in the order of the alphabet.
failed() { # PLUGIN.so [AREA]
  "$BUILD/rft" check "$1" --seed 1 --timeout 20 --only "${2:-$area}" </dev/null >"$work/${1##*/}.report" 2>&1
  awk '$3 ~ /^(FAILED|advice)/ { print $2 }' "$work/${1##*/}.report" | sort | xargs
}

judge() { # NAME PLUGIN.so EXPECTED [AREA]
  local found
  found=$(failed "$2" "${4:-}")
  if [ "$found" = "$3" ] && grep -qE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$work/${2##*/}.report"; then
    echo "ok - plugins: $1"
  else
    echo "not ok - plugins: $1: expected to fail: ${3:-nothing}; failed: ${found:-nothing}"
    grep -E 'FAILED|advice|rft' "$work/${2##*/}.report" | head -n 8 | sed 's/^/# /'
  fi
}

# Hostile configs take longer than all other checks together: only faults in reading configs get them.
judge_fixture() { # NAME
  local expected part=
  "$BUILD/rft" check --list | grep -qE "^4.. $1 " || [ "$1" = good ] || part='^[1-35-9]|^4([013-9]|2[6-9])'
  expected=$(sed -n 's,^// fails: ,,p' "$here/$1.c" | tr ' ' '\n' | grep -v '^nothing$' | sort | xargs)
  judge "$1" "$BUILD/conformance/plugins/$1.so" "$expected" "$part"
}
export -f failed judge judge_fixture

# A sanitizer brings libraries and constructors, and to end without freeing is how a check ends.
area=.
if [ -n "$SANITIZE" ]; then
  area='^[3-9]'
  export ASAN_OPTIONS=abort_on_error=1:detect_leaks=0
fi
export area

judge 'the M2PO plugin keeps every rule' "$BUILD/plugins/libm2po_plugin.so" ''
if [ -n "$SANITIZE" ]; then
  judge_fixture good
  echo "ok - plugins: faults # SKIP plugins are judged as they are shipped, not instrumented"
  exit
fi
head -c 4000 "$BUILD/conformance/plugins/good.so" >"$work/shared_object.so"
judge shared_object "$work/shared_object.so" shared_object
for source in "$here"/*.c; do
  basename "$source" .c
done | xargs -P "$(nproc)" -I '{}' bash -c 'judge_fixture {}'
