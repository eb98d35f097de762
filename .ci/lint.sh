#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# clang-format, clang-tidy and cppcheck over all sources; silent when clean. `make lint` calls it.
set -u

status=0
mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.c')
mapfile -t headers < <(git ls-files --cached --others --exclude-standard '*.h')

flags=(-std=gnu11 -DM2PO_TARGET=baseline -Iabi/include -Iabi -Iplugin -iquote examples/trainer -iquote examples/mpi
  '-DRFT_PLUGIN_DIR=""'
  '-DRFT_TEST_BUILD_DIR=""' '-DRFT_TEST_PLUGIN_DIR=""' '-DRFT_TEST_FIXTURE_DIR=""'
  '-DRFT_TEST_DATA_DIR=""')
read -ra packages < <(pkg-config --cflags jansson yaml-0.1 openblas ompi-c)

echo 'clang-format'
clang-format --dry-run -Werror "${sources[@]}" "${headers[@]}" || status=1

echo 'clang-tidy'
printf '%s\0' "${sources[@]}" |
  xargs -0 -P "$(nproc)" -I '{}' clang-tidy --quiet '{}' -- "${flags[@]}" "${packages[@]}" \
    2> >(grep -v ' warnings\? .*generated\.$\|^Suppressed \|^Use -header-filter' >&2) || status=1

# Not the tests, whose macros it can't read. A realloc that is checked before its result replaces a
# member looks to it like a leak of the old block.
echo 'cppcheck'
printf '%s\n' "${sources[@]}" | grep -v '^tests/' |
  cppcheck --quiet --std=c11 --inline-suppr --error-exitcode=1 -j "$(nproc)" \
    --enable=warning,performance,portability --suppress=missingIncludeSystem \
    --suppress=memleak:plugin/select.c -Iabi/include -Iabi -Iplugin -Iexamples/trainer \
    --file-list=- || status=1

exit "$status"
