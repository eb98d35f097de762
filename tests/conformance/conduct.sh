#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# What a host does with a plugin that it has loaded (H6 to H13). host/witness.c is a plugin that
# writes down every call. host/README.md tells how to name another host than `rft evaluate`.
set -u

: "${BUILD:=$PWD/build}"
rft=$BUILD/rft
batch=tests/vectors/smollm2_k16.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RFT_PLUGIN_PATH
mkdir "$work/plugins"
install -m 755 "$BUILD/conformance/host/witness.so" "$work/plugins"
trace=$work/trace
export RFT_WITNESS_TRACE=$trace

check() { # NAME COMMAND...
  local name=$1
  shift
  : >"$trace"
  if "$@" >"$work/why" 2>&1; then
    echo "ok - conduct: $name"
  else
    echo "not ok - conduct: $name"
    sed 's/^/# /' "$work/why" "$trace"
  fi
}
skip() { # NAME REASON
  echo "ok - conduct: $1 # SKIP $2"
}

# One optimizer batch of three micro-batches through the loss "witness"; JSON to $work/out.
run() { # CONFIG
  if [ -n "${RFT_CONFORMANCE_RUN:-}" ]; then
    # shellcheck disable=SC2086 # a command and its arguments
    $RFT_CONFORMANCE_RUN "$work/plugins" "$batch" "$1"
  else
    "$rft" evaluate "$batch" --plugins "$work/plugins" --micro-batches 3 --config "$1" --json
  fi >"$work/out" 2>"$work/err" </dev/null
}
traced() { # AWK: what its program says of the trace
  awk "$1" "$trace" || { echo 'the trace is:'; return 1; }
}

checks_configs() {
  local config
  for config in '{"factr": 1}' '{"factor": "1"}' '{"factor": 1, "factor": 2}' '{"factor": 1'; do
    run "$config" && { echo "accepted $config"; return 1; }
    cat "$work/err"
    [ "$config" = '{"factor": 1' ] || grep -q 'fact' "$work/err" || return 1
  done
  ! grep create "$trace"
}
hands_configs_over() {
  run '{ "factor" : 2.50 }' && grep -qxF 'create { "factor" : 2.50 }' "$trace"
}
selects_once() {
  run '{}' && traced '
    $1 == "begin" {begins++}
    $1 == "add" {bad = bad || finishes || begins != 1; added[adds++] = $2}
    $1 == "finish" {finishes++}
    $1 == "mask" {bad = bad || finishes != 1}
    $1 == "evaluate" {bad = bad || finishes != 1 || $2 != added[evaluations++]}
    $1 == "end" {ends++}
    END {exit !(begins == 1 && adds == 3 && finishes == 1 && evaluations == 3 && ends == 1 && !bad)}'
}
divides_by_the_report() {
  run '{}' && traced '$1 == "evaluate" && $3 " " $4 " " $5 " " $6 != "masked 1000 900 7" {exit 1}' &&
    jq -e '.loss == 6' "$work/out"
}
combines_metrics() {
  run '{}' && jq -e '.metrics | .final == 42 and .sum == 6 and .weight == 30 and .ratio == 0.2 and
    .largest == 3 and .smallest == 1 and .none == 0' "$work/out"
}
outlives_instances() {
  run '{}' && tail -n 1 "$trace" | grep -q '^destroy .' && [ "$(grep -c ^create "$trace")" -eq 1 ]
}
never_closes() {
  ! nm -D --undefined-only "$BUILD/librft_host.so" | grep -w dlclose
}
trusts_no_relative_path() {
  local list
  for list in plugins . "$work/plugins:" ":$work/plugins" "$work/plugins::$work/plugins"; do
    RFT_PLUGIN_PATH=$list "$rft" list --json >"$work/out" 2>"$work/err" &&
      { echo "accepted $list"; return 1; }
    grep RFT_PLUGIN_PATH "$work/err" && [ ! -s "$work/out" ] || return 1
  done
  RFT_PLUGIN_PATH=$work/plugins:$work/plugins "$rft" list --json
}
replaces_whole_files() {
  echo old >"$work/result" &&
    ! "$rft" evaluate "$batch" --plugins "$work/plugins" --config '{"factr": 1}' -o "$work/result" &&
    ! (ulimit -f 1 && exec "$rft" evaluate "$batch" --plugins "$work/plugins" -o "$work/result") &&
    [ "$(cat "$work/result")" = old ] || return 1
  "$rft" evaluate "$batch" --plugins "$work/plugins" -o "$work/result" &&
    [ "$(stat -c %s "$work/result")" -gt 1024 ]
}

check 'a config is checked before create sees it (H7)' checks_configs
check 'a config is handed over as it was given (H7)' hands_configs_over
check 'rft_host outlives the instance (H9)' outlives_instances
check 'one selection sees every micro-batch in order (H10)' selects_once
check 'means divide by the counts of the report, and parts add up (H11)' divides_by_the_report
check 'metrics are combined as described, ratios last (H12)' combines_metrics
if [ -n "${RFT_CONFORMANCE_RUN:-}" ]; then
  skip 'the rules that only librft_host can be asked about (H6, H8, H13)' 'this is another host'
else
  check 'RFT_PLUGIN_PATH never means the current directory (H6)' trusts_no_relative_path
  check 'librft_host closes no shared object (H8)' never_closes
  check 'a result file is the old one or the new one (H13)' replaces_whole_files
fi
