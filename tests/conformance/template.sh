#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# An author's way: the commands of examples/plugin_template/README.md, in an empty directory, against
# what `make install` puts in place.
set -u

if [ -n "${SANITIZE:-}" ]; then
  echo "ok - template # SKIP a build with sanitizers is not what plugins are built with"
  exit 0
fi

batch=$PWD/tests/vectors/smollm2_k16.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/root/usr/local
rft=$prefix/bin/rft
unset RFT_PLUGIN_PATH

check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    echo "ok - template: $name"
  else
    echo "not ok - template: $name"
    sed 's/^/# /' "$work/why"
  fi
}

is_short() {
  wc -l "$work/my_loss/template.c"
  [ "$(wc -l <"$work/my_loss/template.c")" -lt 150 ]
}
builds() { # DIRECTORY
  PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root make -C "$1" CC="$CC"
}
needs_little() {
  local needed
  needed=$(readelf -dW "$work/my_loss/my_loss.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | xargs)
  echo "needs: $needed"
  [ "$needed" = 'libc.so.6 libm.so.6' ] || grep -q ljansson build/jansson/link
}
is_listed() {
  "$rft" list --plugins "$work/my_loss" | tee "$work/out" && grep -q 'policy loss  my_loss' "$work/out"
}
evaluates() {
  "$rft" evaluate "$batch" --plugins "$work/my_loss" --loss my_loss --config '{"ratio_cap": 2}' --json \
    >"$work/out" && cat "$work/out" && jq -e '.loss != 0 and .valid_tokens == 3394' "$work/out"
}
splits() {
  "$rft" evaluate "$batch" --plugins "$work/my_loss" -o "$work/whole" &&
    "$rft" evaluate "$batch" --plugins "$work/my_loss" --micro-batches 5 --threads 3 -o "$work/split" &&
    cmp "$work/whole" "$work/split"
}
is_renamed() {
  cp -r examples/plugin_template "$work/other" && sed -i s/my_loss/other/g "$work/other"/{template.c,Makefile} &&
    builds "$work/other" && "$rft" schema other --plugins "$work/other"
}

check 'make install' make install DESTDIR="$work/root" PREFIX=/usr/local
cp -r examples/plugin_template "$work/my_loss"
check 'it is shorter than 150 lines' is_short
check 'a copy builds' builds "$work/my_loss"
check 'it needs libc and libm only (P18)' needs_little
check 'a host loads it' is_listed
check 'it evaluates a recorded batch' evaluates
check 'splits and threads change no bit of the gradient' splits
check 'it can be renamed' is_renamed
