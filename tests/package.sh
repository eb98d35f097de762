#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# What a user gets: the plugin file, the headers, the installed tree.
set -u

if [ -n "$SANITIZE" ]; then
  echo "ok - package # SKIP a build with sanitizers is not what is shipped"
  exit 0
fi

plugin=$BUILD/plugins/libm2po_plugin.so
host=$BUILD/librft_host.so
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

report() { # NAME STATUS: after a failure, what was found follows
  if [ "$2" -eq 0 ]; then
    echo "ok - package: $1"
  else
    failures=$((failures + 1))
    echo "not ok - package: $1"
    sed 's/^/  /' "$scratch/output"
  fi
}
skip() {
  echo "ok - package: $1 # SKIP $2"
}
check() { # NAME COMMAND...
  local name=$1
  shift
  "$@" >"$scratch/output" 2>&1
  report "$name" $?
}
same() { # NAME EXPECTED FOUND
  printf 'expected: %s\nfound: %s\n' "$2" "$3" >"$scratch/output"
  [ "$2" = "$3" ]
  report "$1" $?
}
lines() {
  sort -u | paste -s -d ' '
}

# ------------------------------------------------------------------------------------- the plugin

needed=$(readelf -dW "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | lines)
if grep -q ljansson build/jansson/link; then
  skip "the plugin needs libc and libm only" "no source of jansson could be had for this build"
else
  same "the plugin needs libc and libm only" "libc.so.6 libm.so.6" "$needed"
fi
same "the plugin exports one symbol" rft_plugin_entry_v1 \
  "$(nm -D --defined-only "$plugin" | awk '{print $3}' | lines)"
same "the plugin has no RPATH and no text relocations" "" \
  "$(readelf -dW "$plugin" | grep -oE 'RPATH|RUNPATH|TEXTREL' | lines)"
same "the plugin's stack is not executable" RW \
  "$(readelf -lW "$plugin" | awk '$1 == "GNU_STACK" {print $7}')"
same "the plugin is bound at load, read-only after relocation" "GNU_RELRO NOW" \
  "$(readelf -dlW "$plugin" | grep -oE '\bNOW\b|GNU_RELRO' | lines)"

# ------------------------------------------------------------------------------- host and headers

declared=$(sed -n 's/.*\b\(rft_[a-z0-9_]*\)(.*/\1/p' abi/include/rft/{host,safetensors}.h | lines)
exported=$(nm -D --defined-only "$host" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | lines)
same "librft_host exports what its headers declare" "$declared" "$exported"

headers_compile() { # COMPILER LANGUAGE STANDARD
  local header
  for header in abi/include/rft/*.h abi/support/{batch_view,error,schema,structs,token_mean}.h; do
    echo "#include \"$header\"" |
      "$1" -x "$2" -std="$3" -Wall -Wextra -Wpedantic -Werror -I. -Iabi/include -fsyntax-only - ||
      return 1
  done
}
compile_matrix() { # COMPILER LANGUAGE STANDARD...
  local compiler=$1 language=$2 standard
  shift 2
  for standard in "$@"; do
    if command -v "$compiler" >/dev/null; then
      check "headers compile with $compiler -std=$standard" \
        headers_compile "$compiler" "$language" "$standard"
    else
      skip "headers compile with $compiler -std=$standard" "no $compiler here"
    fi
  done
}
compile_matrix gcc c c11 c17
compile_matrix clang c c11 c17
compile_matrix g++ c++ c++11 c++17 c++20
compile_matrix clang++ c++ c++11 c++17 c++20

# ----------------------------------------------------------------------------- the installed tree

prefix=$scratch/root/usr/local
jansson=$(grep -q ljansson build/jansson/link || echo ' lib/librft_jansson.a')
version=$(sed -n 's/^#define RFT_HOST_VERSION "\(.*\)"/\1/p' abi/include/rft/host.h)
check "make install" make install DESTDIR="$scratch/root"
same "make install puts every file in its place" \
  "bin/rft include/rft/host.h include/rft/plugin.h include/rft/safetensors.h \
include/rft/support/batch_view.h include/rft/support/element.h include/rft/support/error.h \
include/rft/support/schema.h include/rft/support/structs.h include/rft/support/token_mean.h \
include/rft/support/view.h include/rft/tensor.h lib/librft_host.so lib/librft_host.so.1 \
lib/librft_host.so.$version$jansson lib/librft_support.a lib/pkgconfig/rft_host.pc \
lib/pkgconfig/rft_plugin.pc lib/rft/plugins/libm2po_plugin.so" \
  "$(cd "$prefix" && find . ! -type d | sed 's,^\./,,' | LC_ALL=C lines)"

cat >"$scratch/host.c" <<'END'
#include <rft/host.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  rft_error error = {.struct_size = sizeof error};
  rft_registry *registry = NULL;
  const rft_policy_loss *loss = NULL;
  if (argc != 2 || rft_registry_create(NULL, &registry, &error) ||
      rft_registry_scan(registry, argv[1], &error) ||
      rft_registry_find_policy_loss(registry, "m2po", &loss, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  puts(loss->name);
  rft_registry_destroy(registry);
  return 0;
}
END
host_builds() {
  local flags
  flags=$(PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$scratch/root" \
    pkg-config --cflags --libs rft_host) || return 1
  # shellcheck disable=SC2086 # a list of flags
  "$CC" -o "$scratch/host" "$scratch/host.c" $flags
}
check "a host builds with pkg-config's flags" host_builds
check "that host finds the installed plugin" \
  env LD_LIBRARY_PATH="$prefix/lib" "$scratch/host" "$prefix/lib/rft/plugins"
check "the installed rft lists the installed plugin" \
  "$prefix/bin/rft" list --plugins "$prefix/lib/rft/plugins"
check "make uninstall" make uninstall DESTDIR="$scratch/root"
same "make uninstall leaves no file" "" "$(cd "$prefix" && find . ! -type d | lines)"

[ "$failures" -eq 0 ]
