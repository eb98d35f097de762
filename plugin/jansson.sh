#!/bin/sh
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: jansson.sh DIRECTORY
#
# Makes DIRECTORY/libjansson.a, position-independent and hidden, from Debian's own source package,
# and DIRECTORY/link, what the linker is to be told. Debian's libjansson.a is not
# position-independent and can't go into a shared object. Where there is no source to be had,
# DIRECTORY/link names the shared libjansson.
#
# Touches nothing outside DIRECTORY: apt gets its own state, cache and source list there.
set -eu

mkdir -p "$1"
directory=$(cd "$1" && pwd)
work=$directory/work
log=$directory/log

# Copies the machine's source lists with binary entries turned into source entries.
source_lists() {
  mkdir -p "$work/sources.list.d"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -f "$list" ] || sed -n 's/^deb[[:space:]]/deb-src /p' "$list"
  done >"$work/sources.list"
  for sources in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$sources" ] ||
      sed 's/^Types:.*/Types: deb-src/' "$sources" >"$work/sources.list.d/${sources##*/}"
  done
}

# A user of its own for downloads could not enter a private checkout, hence Sandbox::User.
private_apt() {
  apt-get -qq -o Dir::State="$work/state" -o Dir::Cache="$work/cache" \
    -o Dir::State::status=/var/lib/dpkg/status \
    -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts="$work/sources.list.d" \
    -o APT::Sandbox::User="$(id -un)" "$@"
}

get_source() {
  command -v apt-get && command -v dpkg-source || return 1
  source_lists
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
  private_apt update || return 1
  (cd "$work" && private_apt source jansson)
}

# What jansson's configure finds on any Linux; it would need autoconf. jansson_config.h is that of the
# installed libjansson.
build_archive() {
  (cd "$work"/jansson-*/src &&
    for have in STDINT_H UNISTD_H FCNTL_H SCHED_H ENDIAN_H SYS_PARAM_H SYS_STAT_H SYS_TIME_H \
      SYS_TYPES_H OPEN CLOSE READ GETPID GETTIMEOFDAY SCHED_YIELD ATOMIC_BUILTINS; do
      echo "#define HAVE_$have 1"
    done >jansson_private_config.h &&
    "${CC:-cc}" -O2 -fPIC -fvisibility=hidden -ffunction-sections -I. -DHAVE_CONFIG_H \
      -DUSE_URANDOM -DINITIAL_HASHTABLE_ORDER=3 -c ./*.c &&
    ar rcs "$directory/libjansson.a" ./*.o)
}

rm -rf "$work"
mkdir "$work"
if get_source >"$log" 2>&1 && build_archive >>"$log" 2>&1; then
  rm -rf "$work"
  echo "$1/libjansson.a" >"$directory/link"
else
  echo "No source of jansson to be had (see $log): the plugin will need the shared libjansson." \
    "Remove $directory to try again." >&2
  echo -ljansson >"$directory/link"
fi
