#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# The kernels for AArch64, whose vectors are NEON, give the bits of those for x86-64: both are built
# from the same files (neon/kernels.c), the former with Debian's cross compiler, and run in an
# emulator. Where digests differ, the two programs print the values themselves.
set -u

: "${BUILD:=$PWD/build}" "${CC:=cc}" "${SANITIZE:=}"
cross=aarch64-linux-gnu-gcc emulator=qemu-aarch64
work=$BUILD/neon

skip() { # REASON
  echo "ok - neon # SKIP $1"
  exit 0
}
fail() { # NAME: what was printed says why
  echo "not ok - neon: $1"
  sed 's/^/# /' "$work/log"
}

[ -z "$SANITIZE" ] || skip 'the emulator knows no sanitizer'
[ "$(uname -m)" = x86_64 ] || skip 'it is compared with x86-64'
command -v $cross >/dev/null || skip "no $cross here"
command -v $emulator >/dev/null || skip "no $emulator here"
rm -rf "$work"
mkdir -p "$work/include"

# As the Makefile compiles them.
flags=(-std=gnu11 -O3 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -ffp-contract=off
  -fno-math-errno -fno-trapping-math -Iabi/include -Iabi -Iplugin -DM2PO_TARGET=baseline)
build() { # OUTPUT COMPILER FLAG...
  local output=$1
  shift
  "$@" "${flags[@]}" -o "$work/$output" tests/neon/kernels.c plugin/kernel*.c >"$work/log" 2>&1
}

# jansson's headers are the same for both machines.
compiles_whole() {
  cp "$(pkg-config --variable=includedir jansson)"/jansson*.h "$work/include" &&
    $cross "${flags[@]}" -I"$work/include" -fsyntax-only plugin/*.c abi/support/*.c "$BUILD/gen/embedded.c"
}
if compiles_whole >"$work/log" 2>&1; then
  echo 'ok - neon: the plugin compiles for AArch64'
else
  fail 'the plugin compiles for AArch64'
fi

if ! build x86-64 "$CC" || ! build aarch64 $cross -static; then
  fail 'the kernels compile for both machines'
  exit 1
fi
if ! { "$work/x86-64" >"$work/expected" && $emulator "$work/aarch64" >"$work/found"; } 2>"$work/log"; then
  fail 'the kernels run'
  exit 1
fi
paste -d ' ' "$work/expected" "$work/found" | while read -r kind function expected _ _ found; do
  name="neon: $function of $kind blocks has the bits of x86-64"
  if [ "$expected" = "$found" ]; then
    echo "ok - $name"
  else
    echo "not ok - $name"
    echo "# to compare: $work/x86-64 $kind $function, $emulator $work/aarch64 $kind $function"
    diff <("$work/x86-64" "$kind" "$function") <($emulator "$work/aarch64" "$kind" "$function") |
      sed -n 's/^/# /; 1,4p'
  fi
done
