#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# rft check as an author meets it, and its documentation. plugins.sh judges its verdicts.
set -u

: "${BUILD:=$PWD/build}" "${SANITIZE:=}"
rft=$BUILD/rft fixtures=$BUILD/conformance/plugins readme=abi/check/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    echo "ok - check: $name"
  else
    echo "not ok - check: $name"
    sed 's/^/# /' "$work/why"
  fi
}

expect() { # CODE ARGUMENTS...
  local wanted=$1 status
  shift
  "$rft" check "$@" >"$work/out" 2>&1 </dev/null
  status=$?
  head -n 20 "$work/out"
  [ "$status" -eq "$wanted" ] || { echo "exit status $status, expected $wanted"; return 1; }
}
says() { grep -qE -e "$1" "$work/out"; }

documents_each_check() {
  "$rft" check --list >"$work/list" &&
    sed -n '/^```text$/,/^```$/p' $readme | sed '1d;$d' | diff - "$work/list"
}
has_a_fixture_for_each_check() {
  local name missing=0
  for name in $("$rft" check --list | awk '{ print $2 }'); do
    [ -e "tests/conformance/plugins/$name.c" ] || grep -q "^| \`$name\` |" $readme ||
      { echo "$name"; missing=1; }
  done
  return $missing
}
cites_rules_for_each_check() {
  ! "$rft" check --list | grep -vE '^[0-9]+ [a-z0-9_]+ +P[0-9]+'
}
numbers_ascend() {
  "$rft" check --list | awk '{ print $1 }' | sort -cnu
}
judges_a_crash() {
  expect 1 "$fixtures/random_text.so" --only random_text --seed 1 && says 'FAILED: killed by SIG[A-Z]+ \[P10, P12\]'
}
judges_an_exit() {
  expect 1 "$fixtures/survives.so" --only ' survives$' && says 'FAILED: exited with 3'
}
judges_a_hang() {
  expect 1 "$BUILD/conformance/host/constructor_hangs.so" --only ' opens$' --timeout 1 &&
    says 'FAILED: timed out after 1 s'
}
shows_what_was_printed() {
  expect 1 "$fixtures/prints_nothing.so" --only 'evaluates$|prints' && says 'evaluates +passed' &&
    says 'prints_nothing +FAILED: something was printed in check 601 evaluates: evaluating'
}
judges_a_file_that_is_no_plugin() {
  expect 1 abi/check/check.h && says '101 shared_object +FAILED: it is not an ELF' &&
    says 'skipped: needs 101 shared_object' && says '^0 passed, 1 failed, '
}
passes_with_advice() {
  expect 0 "$fixtures/no_forbidden_import.so" --only '^1' && says 'advice: it uses exit' &&
    says '^11 passed, 0 failed, 0 skipped, 1 advised$'
}
repeats_with_a_seed() {
  expect 0 "$fixtures/good.so" --only '^[67]' --seed 12345 && says 'seed 12345' &&
    cp "$work/out" "$work/first" && expect 0 "$fixtures/good.so" --only '^[67]' --seed 12345 &&
    cmp "$work/first" "$work/out"
}
tells_all_in_json() {
  expect 1 "$fixtures/bits_repeat.so" --json --seed 7 --only bits && says '"failed": 1' &&
    says '"seed": 7' && says '"name": "bits_repeat"' && says '"status": "failed"' &&
    expect 0 --list --json && says '"rules": "P18"'
}
runs_a_check_in_its_own_process() {
  expect 0 "$fixtures/good.so" --in-process evaluates && says '^passed$' &&
    expect 1 "$fixtures/bits_repeat.so" --in-process 702 && says '^failed: loss "fixture": the same call'
}
colors_on_a_terminal_only() {
  expect 0 "$fixtures/good.so" --only opens && ! grep -q $'\033' "$work/out" &&
    script -qec "$rft check $fixtures/good.so --only opens" /dev/null </dev/null |
      grep -q $'\033\[32mpassed'
}
knows_its_options() {
  expect 2 && expect 2 "$fixtures/good.so" --only '(' && says 'regular expression' &&
    expect 2 "$fixtures/good.so" --in-process nothing && says 'no check is called "nothing"' &&
    expect 2 "$fixtures/good.so" --timeout 0 && expect 2 "$fixtures/good.so" --seed x &&
    expect 1 /nowhere.so && says '/nowhere.so: No such file' && expect 0 --help && says 'usage: rft check'
}

check 'each check is documented' documents_each_check
check 'each check has a fixture, or a reason why not' has_a_fixture_for_each_check
check 'each check cites rules' cites_rules_for_each_check
check 'numbers of checks are unique and ascend' numbers_ascend
if [ -n "$SANITIZE" ]; then
  echo "ok - check: verdicts # SKIP plugins are judged as they are shipped, not instrumented"
  exit
fi
check 'a crash is a verdict' judges_a_crash
check 'an exit is a verdict' judges_an_exit
check 'a hang is a verdict' judges_a_hang
check 'what a plugin prints is shown and judged' shows_what_was_printed
check 'a file that is no plugin fails one check' judges_a_file_that_is_no_plugin
check 'advice does not fail a plugin' passes_with_advice
check 'a seed repeats a run' repeats_with_a_seed
check 'all is there in JSON' tells_all_in_json
check 'a check runs in its own process for a debugger' runs_a_check_in_its_own_process
check 'colors are for terminals' colors_on_a_terminal_only
check 'wrong command lines have exit code 2' knows_its_options
