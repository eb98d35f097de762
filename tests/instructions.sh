#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: instructions.sh [--record]
#
# The plugin's own instructions in calls on fixed batches (instructions/calls.c), counted by callgrind:
# the same on every machine, and nearly those of instructions/counts.txt. --record writes what is found
# there, for the compiler at hand.
set -u

: "${BUILD:=$PWD/build}" "${CC:=cc}" "${SANITIZE:=}"
golden=tests/instructions/counts.txt
tolerance=3 # percent, either way: a gain that nobody records hides the next loss
targets='baseline avx2' # valgrind knows no AVX-512

skip() { # REASON
  echo "ok - instructions # SKIP $1"
  exit 0
}

[ -z "$SANITIZE" ] || skip 'instrumented code has other instructions'
[ "$(uname -m)" = x86_64 ] || skip 'the counts are of x86-64'
command -v valgrind >/dev/null || skip 'no valgrind here'
grep -q ' -O3 -g ' "$BUILD/settings" || skip 'the counts are of a build with the default CFLAGS'

compiler=$($CC -dM -E -x c /dev/null | awk '
  $2 == "__clang_major__" {clang = $3}
  $2 == "__GNUC__" {gcc = $3}
  END {print clang != "" ? "clang-" clang : "gcc-" gcc}')
record="BUILD=$BUILD CC=$CC tests/instructions.sh --record"
grep -q "^$compiler " "$golden" || [ "${1:-}" = --record ] ||
  skip "no counts for $compiler in $golden: \`$record\` adds them"

work=$BUILD/instructions
rm -rf "$work"
mkdir -p "$work"
plugin=$(realpath "$work")/plugin.so # as valgrind names it, which can't read every debug information
strip --strip-debug -o "$plugin" "$BUILD/plugins/libm2po_plugin.so" || exit 1

# Sums what each function of the plugin costs itself: after "calls=" comes the cost of what it calls.
count_of_dump() { # DUMP: prints "REGIME CALL INSTRUCTIONS"
  awk -v plugin="$plugin" '
    sub(/^desc: Trigger: Client Request: /, "") {name = $0}
    sub(/^ob=/, "") {inside = $0 == plugin}
    /^calls=/ {getline; next}
    inside && /^[0-9+*-]/ {sum += $2}
    END {if (name != "") {printf "%s %d\n", name, sum}}' "$1"
}
measure() { # TARGET: prints "TARGET REGIME CALL INSTRUCTIONS" for each call
  M2PO_TARGET=$1 valgrind --tool=callgrind --instr-atstart=no --compress-strings=no --compress-pos=no \
    --callgrind-out-file="$work/$1" "$work/calls" "$plugin" >"$work/log" 2>&1 || return 1
  for dump in "$work/$1".*; do
    count_of_dump "$dump" | sed "s/^/$1 /"
  done | sort
}

if ! $CC -std=gnu11 -O2 -ffp-contract=off -fno-math-errno -Iabi/include -o "$work/calls" \
  tests/instructions/calls.c -ldl 2>"$work/log"; then
  echo 'not ok - instructions: the calls compile'
  sed 's/^/# /' "$work/log"
  exit 1
fi

# valgrind shows a program AVX2 where the processor has it.
for target in $targets; do
  if [ "$target" != baseline ] && ! grep -qw "$target" /proc/cpuinfo; then
    echo "ok - instructions: $target # SKIP this processor has no $target"
  elif ! measure "$target" >>"$work/found"; then
    echo "not ok - instructions: $target: callgrind runs the calls"
    sed 's/^/# /' "$work/log"
  fi
done

if [ "${1:-}" = --record ]; then
  grep -v "^$compiler " "$golden" >"$work/golden"
  sed "s/^/$compiler /" "$work/found" >>"$work/golden"
  { grep '^#' "$work/golden"; grep -v '^#' "$work/golden" | sort; } >"$golden"
  exit 0
fi

# Reads the golden file, then what was found.
awk -v compiler="$compiler" -v tolerance=$tolerance -v record="$record" '
  NR == FNR {if ($1 == compiler) {expected[$2 " " $3 " " $4] = $5}; next}
  {
    name = $1 " " $2 " " $3
    change = name in expected ? 100 * ($4 / expected[name] - 1) : 0
    good = name in expected && change <= tolerance && change >= -tolerance
    printf "%sok - instructions: %s\n", good ? "" : "not ", name
    if (!good) {
      printf "# expected %s, found %d (%+.1f %%, %s %% are allowed). Where that is meant: %s\n",
        name in expected ? expected[name] : "a count in the golden file", $4, change, tolerance, record
    }
  }' "$golden" "$work/found"
