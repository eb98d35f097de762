#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# The layout of what was released stays as it was (P1, P4, P21). layout/README.md tells what the files
# are, and what a release adds to them.
set -u

: "${CC:=cc}" "${BUILD:=$PWD/build}"
here=tests/conformance/layout
newest=$(printf '%s\n' "$here"/v*.txt | sort -V | tail -n 1)
work=$BUILD/conformance/layout
mkdir -p "$work"

skip() { # NAME REASON
  echo "ok - layout: $1 # SKIP $2"
}
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    echo "ok - layout: $name"
  else
    echo "not ok - layout: $name"
    sed 's/^/# /' "$work/why"
  fi
}

if [ "$(getconf LONG_BIT)" -ne 64 ]; then
  skip 'the released layout' 'it is that of machines with 64-bit pointers'
  exit 0
fi

# -------------------------------------------------------------------------------- the golden files
#
# "STRUCT SIZE", "STRUCT.FIELD OFFSET SIZE" or "CONSTANT VALUE" a line.

golden() {
  grep -v '^#' "$1"
}
program_that_prints() { # GOLDEN: a C program that prints the file as it is with today's headers
  printf '#include "rft/host.h"\n#include "rft/safetensors.h"\n#include <stdio.h>\nint main(void)\n{\n'
  golden "$1" | awk '
    $1 ~ /^RFT_/ {printf "printf(\"%s %%lld\\n\", (long long)%s);\n", $1, $1; next}
    split($1, part, ".") == 2 {
      printf "printf(\"%s %%zu %%zu\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n",
        $1, part[1], part[2], part[1], part[2]; next}
    {printf "printf(\"%s %%zu\\n\", sizeof(%s));\n", $1, $1}'
  printf '}\n'
}
# A later version may have appended fields, so that a struct has grown.
program_that_asserts() { # GOLDEN
  printf '#include "rft/host.h"\n#include "rft/safetensors.h"\n'
  golden "$1" | awk '
    $1 ~ /^RFT_/ {condition = $1 " == " $2}
    $1 !~ /^RFT_/ {condition = "sizeof(" $1 ") >= " $2}
    split($1, part, ".") == 2 {
      condition = "offsetof(" part[1] ", " part[2] ") == " $2 " && sizeof(((" part[1] " *)0)->" part[2] ") == " $3}
    {printf "RFT_STATIC_ASSERT(%s, \"%s\");\n", condition, $1}'
}

prints_the_same() {
  program_that_prints "$newest" >"$work/print.c" &&
    "$CC" -std=c11 -Iabi/include -o "$work/print" "$work/print.c" &&
    { grep '^#' "$newest"; "$work/print"; } >"$work/layout.txt" && diff -u "$newest" "$work/layout.txt"
}
asserts_hold() { # GOLDEN COMPILER LANGUAGE STANDARD
  program_that_asserts "$1" | "$2" -x "$3" -std="$4" -Iabi/include -fsyntax-only -
}

# Every struct that begins with its size: each field starts where the one before it ends, and the last
# one ends the struct. So none is missing from the golden file, either.
has_no_padding() {
  golden "$newest" | awk '
    function close_struct() {
      if (counted && end != size) {print name ": " size " bytes, its fields end at " end; bad = 1}
    }
    $1 ~ /^RFT_/ {next}
    split($1, part, ".") == 1 {close_struct(); name = $1; size = $2; end = 0; counted = 0; next}
    part[2] == "struct_size" {counted = 1}
    counted && $2 != end {print $1 ": at " $2 ", the field before it ends at " end; bad = 1}
    {end = $2 + $3}
    END {close_struct(); exit bad}'
}
names_every_struct() {
  diff <(sed -nE 's/^(typedef )?struct (rft_[a-z_]+) \{.*/\2/p' abi/include/rft/*.h | sort) \
    <(golden "$newest" | awk '$1 !~ /[.]|^RFT_/ {print $1}' | sort)
}

check "every field and constant is where ${newest##*/} says (P21)" prints_the_same
check 'no struct has implicit padding (P1)' has_no_padding
check "${newest##*/} has every struct of the headers (P21)" names_every_struct
for file in "$here"/v*.txt; do
  while read -r language compiler standard; do
    name="${file##*/} holds in $compiler -std=$standard (P4)"
    if command -v "$compiler" >/dev/null; then
      check "$name" asserts_hold "$file" "$compiler" "$language" "$standard"
    else
      skip "$name" "no $compiler here"
    fi
  done <<'MATRIX'
c gcc c11
c gcc c17
c++ g++ c++11
c++ g++ c++20
c clang c11
c clang c17
c++ clang++ c++11
c++ clang++ c++20
MATRIX
done

# ------------------------------------------------------------------------------- the ABI checker

library() { # INCLUDE OUTPUT
  gcc -std=c11 -g -O0 -shared -fPIC -I"$1" -o "$2" "$here/every_type.c"
}
types_are_the_same() { # DUMP
  abidiff "$1" "$work/libevery_type.so"
}
names_no_path() { # DUMP
  ! grep -nE "=['\"]/" "$1"
}
if ! command -v abidiff >/dev/null; then
  skip 'an ABI checker finds no difference (P21)' 'no abidiff here'
elif [ "$(uname -m)" != x86_64 ]; then
  skip 'an ABI checker finds no difference (P21)' 'the dumps are of x86-64'
else
  check 'the library that uses every type builds' library abi/include "$work/libevery_type.so"
  abidw --no-corpus-path --no-comp-dir-path --no-show-locs --out-file "$work/layout.abi" \
    "$work/libevery_type.so"
  dump=${newest%.txt}.abi # an appended field would be a difference to an older one
  check "an ABI checker finds no difference to ${dump##*/} (P21)" types_are_the_same "$dump"
  check "${dump##*/} names no path" names_no_path "$dump"
fi

# --------------------------------------------------------------------------------------- DLPack

is_dltensor() { # COMPILER LANGUAGE STANDARD INCLUDE...
  local compiler=$1 language=$2 standard=$3
  shift 3
  "$compiler" -x "$language" -std="$standard" -Iabi/include "$@" -fsyntax-only "$here/dlpack.c"
}
if echo '#include <dlpack/dlpack.h>' | "$CC" -E - >/dev/null 2>&1; then
  check 'rft_tensor is DLTensor of the installed dlpack.h (P21)' is_dltensor "$CC" c c11
  if command -v g++ >/dev/null; then
    check 'rft_tensor is DLTensor of the installed dlpack.h in C++ (P21)' is_dltensor g++ c++ c++17
  fi
else
  skip 'rft_tensor is DLTensor of the installed dlpack.h (P21)' 'no dlpack.h here'
fi
torch=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null)
if [ -n "$torch" ] && [ -e "$torch/include/ATen/dlpack.h" ]; then
  mkdir -p "$work/torch/dlpack"
  cp "$torch/include/ATen/dlpack.h" "$work/torch/dlpack/"
  check "rft_tensor is DLTensor of torch's dlpack.h (P21)" is_dltensor "$CC" c c11 -I"$work/torch"
else
  skip "rft_tensor is DLTensor of torch's dlpack.h (P21)" 'no torch here'
fi
