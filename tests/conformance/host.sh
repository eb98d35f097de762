#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# Puts each fixture of host/expectations.tsv into a directory beside a plugin that keeps every rule,
# has a host scan that directory, and judges what the host says. host/README.md tells how to name
# another host than `rft list`.
set -u

: "${CC:=cc}" "${BUILD:=$PWD/build}"
host=${RFT_CONFORMANCE_HOST:-$BUILD/rft list --json --plugins}
here=tests/conformance/host
built=$BUILD/conformance/host
limit=60 # seconds for one scan: a host that waits for a fixture has to give up earlier
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RFT_PLUGIN_PATH

# ---------------------------------------------------------------------------------- the fixtures
#
# place_NAME puts the fixture into the directory $1; without one, the fixture is a shared object
# that was built from NAME.c. 77: it can't be placed here, and what is printed says why.

place() { # DIRECTORY FIXTURE FILE
  local source=$built/$2.so
  [ -e "$source" ] || source=$BUILD/fixtures/$2.so
  install -m 755 "$source" "$1/$3"
}
place_good() {
  place "$1" good "${2:-fault.so}"
}
patch_bytes() { # FILE OFFSET BYTES
  printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
compile() {
  "$CC" -o "$@" 2>&1
}
as_root() {
  [ "$(id -u)" -eq 0 ] || { echo 'only root can give a file away'; return 77; }
}

place_byte_order() {
  place_good "$1" fault.so && place "$1" newer_minor B.so
}
place_duplicate_id() {
  place "$1" good a.so && place "$1" newer_minor fault.so
}
place_same_loss() {
  place "$1" good a.so && place "$1" same_loss fault.so
}
place_other_suffixes() {
  place_good "$1" fault.so.1 && place_good "$1" fault.txt && place_good "$1" fault.SO
}
place_borrows_symbol() {
  place "$1" lends_symbol a.so && place "$1" borrows_symbol fault.so
}
place_vanishes() {
  place "$1" remover a.so && place_good "$1" vanishes.so
}
place_needs_library() {
  echo 'int nowhere(void) { return 0; }' >"$work/nowhere.c"
  echo 'int nowhere(void); int call(void); int call(void) { return nowhere(); }' >"$work/call.c"
  compile "$work/libnowhere.so" -shared -fPIC -Wl,-soname,libnowhere.so "$work/nowhere.c" &&
    compile "$1/fault.so" -shared -fPIC "$work/call.c" -L"$work" -lnowhere &&
    rm "$work/libnowhere.so"
}
place_text() {
  echo 'not a plugin' >"$1/fault.so"
}
place_empty() {
  : >"$1/fault.so"
}
place_truncated_header() {
  place_good "$1" && truncate -s 20 "$1/fault.so"
}
place_truncated_segment() {
  place_good "$1" && truncate -s 5000 "$1/fault.so"
}
# Junk where the dynamic section is: only the dynamic loader reads it, and it may crash on it.
place_damaged() {
  local offset
  place_good "$1" &&
    offset=$(readelf -lW "$1/fault.so" | awk '$1 == "DYNAMIC" {print $2}') &&
    patch_bytes "$1/fault.so" $((offset + 8)) '\xab\xab\xab\xab\xab\xab\xab\xab'
}
place_other_machine() { # e_machine: AArch64, and on that x86-64
  place_good "$1" && case $(uname -m) in
  aarch64) patch_bytes "$1/fault.so" 18 '\x3e\x00' ;;
  *) patch_bytes "$1/fault.so" 18 '\xb7\x00' ;;
  esac
}
place_other_class() {
  place_good "$1" && patch_bytes "$1/fault.so" 4 '\x01'
}
place_other_byte_order() {
  place_good "$1" && patch_bytes "$1/fault.so" 5 '\x02'
}
place_executable() {
  echo 'int main(void) { return 0; }' >"$work/main.c" && compile "$1/fault.so" -no-pie "$work/main.c"
}
place_position_independent_executable() {
  echo 'int main(void) { return 0; }' >"$work/main.c" &&
    compile "$1/fault.so" -fPIE -pie "$work/main.c"
}
place_object_file() {
  compile "$1/fault.so" -c -fPIC -Iabi/include tests/fixtures/good.c
}
place_archive() {
  compile "$work/good.o" -c -fPIC -Iabi/include tests/fixtures/good.c && ar rcs "$1/fault.so" "$work/good.o"
}
place_directory() {
  mkdir "$1/fault.so"
}
place_fifo() {
  mkfifo "$1/fault.so"
}
place_socket() {
  perl -MIO::Socket::UNIX -e 1 || { echo 'no perl to make a socket with'; return 77; }
  perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1)' "$1/fault.so"
}
place_device() {
  ln -s /dev/null "$1/fault.so"
}
place_dangling_link() {
  ln -s nowhere "$1/fault.so"
}
place_link_loop() {
  ln -s fault.so "$1/fault.so"
}
place_unreadable() {
  [ "$(id -u)" -ne 0 ] || { echo 'root can read everything'; return 77; }
  place_good "$1" && chmod 000 "$1/fault.so"
}
place_strange_name() {
  echo 'not a plugin' >"$1/"$'\xff\n"fault.so'
}
place_two_links() {
  place_good "$1" a.so && ln -s a.so "$1/fault.so"
}
place_two_hard_links() {
  place_good "$1" a.so && ln "$1/a.so" "$1/fault.so"
}
place_writable_file() {
  place_good "$1" && chmod 646 "$1/fault.so"
}
place_foreign_file() {
  as_root && place_good "$1" && chown 12345 "$1/fault.so"
}
place_link_into_writable_directory() {
  mkdir "$1/open" && place_good "$1/open" x && ln -s open/x "$1/fault.so" && chmod 777 "$1/open"
}
place_writable_directory() {
  place_good "$1" && chmod 777 "$1"
}
place_writable_parent() {
  place_good "$1" && chmod 777 "$1/.."
}
place_foreign_directory() {
  as_root && place_good "$1" && chown 12345 "$1"
}
place_missing_directory() {
  rm -r "$1"
}
place_file_for_directory() {
  rm -r "$1" && place "${1%/*}" good "${1##*/}"
}

# ------------------------------------------------------------------------------------ the verdicts

scan() { # CASE
  # shellcheck disable=SC2086 # a command and its arguments
  timeout "$limit" $host "$1/plugins" >"$1/out" 2>"$1/err" </dev/null
  echo $? >"$1/status"
}

prepare() { # FIXTURE: its case, ready to be scanned
  local case=$work/$1
  mkdir -p "$case/plugins"
  {
    place "$case/plugins" neighbour zz_neighbour.so
    if declare -F "place_$1" >/dev/null; then
      "place_$1" "$case/plugins"
    else
      place "$case/plugins" "$1" fault.so
    fi
  } >"$case/placing" 2>&1
  echo $? >"$case/placed"
  [ "$(cat "$case/placed")" -eq 0 ]
}

ask() { # FILTER: of jq, over the host's answer
  jq -e --arg fault "$case/plugins/fault.so" "$1" "$case/out" >/dev/null 2>&1
}
names() { # TEXT: does it hold each of the expressions in $wanted?
  local rest=$wanted
  while [ -n "$rest" ]; do
    grep -qiE -e "${rest%% & *}" <<<"$1" || { echo "nothing there names: ${rest%% & *}"; return 1; }
    [[ $rest == *' & '* ]] || return 0
    rest=${rest#* & }
  done
}
expect() { # STATUS WHAT FILTER...: the exit status, and what holds of the answer
  local status
  status=$(cat "$case/status")
  [ "$status" -eq "$1" ] || { echo "exit status $status, expected $1"; return 1; }
  shift
  while [ $# -gt 0 ]; do
    ask "$2" || { echo "not so: $1"; return 1; }
    shift 2
  done
}

loaded='[.plugins[].path] | index($fault) != null'
neighbour='[.plugins[].id] | index("org.example.neighbour") != null'
refused='any(.refused[]; .path == $fault)'
clean='.refused == []'

judge_load() {
  expect 0 'it is loaded' "$loaded" 'the neighbour is loaded' "$neighbour" 'nothing is refused' "$clean"
}
judge_pass() {
  expect 0 'only the neighbour is loaded' '.plugins | length == 1' \
    'the neighbour is loaded' "$neighbour" 'nothing is refused' "$clean"
}
judge_refuse() {
  expect 3 'one file is refused' '.refused | length == 1' \
    'it is the fixture' "$refused or (.refused[0].path | contains(\"fault.so\"))" \
    'it is not loaded' "$loaded | not" 'the neighbour is loaded' "$neighbour" &&
    names "$(jq -r '.refused[].reason' "$case/out")"
}
judge_duplicate() {
  judge_refuse && expect 3 'the first one is loaded' 'any(.plugins[]; .id == "org.example.fixture")'
}
judge_hidden() {
  judge_load && expect 0 'the name is reported, and where it is hidden' \
    'any(.hidden[]; .path == $fault and .name == "reinforce")'
}
judge_once() {
  expect 0 'it is loaded once' '[.plugins[].id] | map(select(. == "org.example.fixture")) | length == 1' \
    'the neighbour is loaded' "$neighbour" 'nothing is refused' "$clean"
}
judge_cope() {
  [[ $(cat "$case/status") =~ ^[03]$ ]] || { echo "exit status $(cat "$case/status")"; return 1; }
  ask "$neighbour" || { echo 'the neighbour is not loaded'; return 1; }
  ask "$clean" || names "$(jq -r '.refused[].reason' "$case/out")"
}
judge_fail() {
  expect 1 && names "$(cat "$case/err")" || return 1
  grep -qF -e "$case" "$case/err" || { echo 'the directory is not named'; return 1; }
}

judge() { # FIXTURE RULE VERDICT NAMES
  local case=$work/$1 wanted=${4:-} why
  if [ "$(cat "$case/placed")" -eq 77 ]; then
    echo "ok - host: $1 ($2) # SKIP $(cat "$case/placing")"
  elif [ "$(cat "$case/placed")" -ne 0 ]; then
    echo "not ok - host: $1 ($2): the fixture can't be made: $(cat "$case/placing")"
  elif why=$("judge_$3"); then
    echo "ok - host: $1 ($2)"
  else
    echo "not ok - host: $1 ($2): expected \"$3\"; $why"
    sed 's/^/# /' "$case/status" "$case/out" "$case/err"
  fi
}

expectations() {
  grep -v '^#' "$here/expectations.tsv"
}

# What may hang is scanned beside the rest.
while IFS=$'\t' read -r fixture rule verdict wanted; do
  prepare "$fixture" || continue
  case $fixture in
  *_hangs) scan "$work/$fixture" & ;;
  *) scan "$work/$fixture" ;;
  esac
done < <(expectations)
wait

while IFS=$'\t' read -r fixture rule verdict wanted; do
  judge "$fixture" "$rule" "$verdict" "$wanted"
done < <(expectations)
