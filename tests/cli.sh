#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# The rft command as a user meets it. tests/run says what the environment holds.
set -u

rft=$BUILD/rft plugins=$BUILD/plugins fixture=$BUILD/fixtures/good.so
batch=tests/vectors/smollm2_k16.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RFT_PLUGIN_PATH

# check NAME COMMAND...: one test, passed when the command succeeds
check() {
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    echo "ok - $name"
  else
    echo "not ok - $name"
    sed 's/^/# /' "$work/why"
  fi
}

# expect CODE ARGUMENTS...: runs rft; its output is left in $work/out and $work/err
expect() {
  local wanted=$1 status
  shift
  "$rft" "$@" >"$work/out" 2>"$work/err" </dev/null
  status=$?
  cat "$work/out" "$work/err"
  [ "$status" -eq "$wanted" ] || { echo "exit status $status, expected $wanted"; return 1; }
}

says() { grep -qF -e "$1" "$work/out"; }
complains() { grep -qF -e "$1" "$work/err"; }
silent() { [ ! -s "$work/err" ]; }

lists_what_is_there() {
  expect 0 list --plugins "$plugins" && silent && says m2po_areal && says grpo &&
    says 'policy loss  m2po' && says '1 loaded, 0 refused' &&
    expect 0 list "$plugins" --json && says '"refused": []'
}

lists_what_was_refused() {
  mkdir "$work/mixed" && cp "$fixture" "$work/mixed" && echo text >"$work/mixed/text.so" &&
    expect 3 list "$work/mixed" && says "refused $work/mixed/text.so" && says 'not an ELF' &&
    says org.example.fixture && expect 3 list "$work/mixed" --json && says '"code": "INVALID_ARGUMENT"'
}

prints_a_schema() {
  expect 0 schema m2po --plugins "$plugins" && says '"additionalProperties": false' &&
    expect 1 schema m2p0 --plugins "$plugins" && complains 'the nearest known one is "m2po"'
}

prints_a_table_on_a_terminal() {
  script -qec "$rft schema m2po --plugins $plugins" /dev/null >"$work/out" </dev/null &&
    says MEANING && says 'number >= 0 or null.' && ! says additionalProperties
}

prints_a_preset() {
  expect 0 preset grpo --plugins "$plugins" && says '"m2_threshold": null' &&
    says '"log_ratio_clip"' && expect 1 preset gppo --plugins "$plugins" &&
    complains 'the nearest known one is "grpo"'
}

splits_change_no_bit() {
  expect 0 evaluate $batch --plugins "$plugins" -o "$work/whole" || return 1
  for split in '3 1' '8 2' '128 3'; do
    read -r parts threads <<<"$split"
    expect 0 evaluate $batch --plugins "$plugins" --micro-batches "$parts" --threads "$threads" \
      -o "$work/split" && cmp "$work/whole" "$work/split" || return 1
  done
}

tells_all_in_json() {
  expect 0 evaluate $batch --plugins "$plugins" --config '{"m2_threshold": 0.01}' --json &&
    silent && says '"m2_threshold": 0.01' && says '"valid_tokens": 3394' && says '"loss": ' &&
    says '"policy_loss": "m2po"' && ! grep -qiE '\b(nan|inf)' "$work/out"
}

lays_a_config_over_a_preset() {
  echo '{"clip_range_low": 0.1}' >"$work/config.json" &&
    expect 0 evaluate $batch --plugins "$plugins" --preset grpo --config "@$work/config.json" \
      --json && says '"clip_range_low": 0.1' && says '"m2_threshold": null' && says '"preset": "grpo"'
}

refuses_a_misspelt_key() {
  expect 1 evaluate $batch --plugins "$plugins" --config '{"m2_treshold": 1}' -o "$work/none" &&
    complains '"m2_treshold" is not known: the nearest known key is "m2_threshold"' &&
    [ ! -e "$work/none" ] && [ ! -s "$work/out" ]
}

names_the_tensors_of_a_wrong_file() {
  expect 0 evaluate $batch --plugins "$plugins" -o "$work/result.safetensors" &&
    expect 1 evaluate "$work/result.safetensors" --plugins "$plugins" &&
    complains "$work/result.safetensors: expected a tensor \"logprob\", found \"gradient\", \"mask\""
}

counts_rows_before_splitting() {
  expect 1 evaluate $batch --plugins "$plugins" --micro-batches 129 &&
    complains 'expected at most 128 micro-batches'
}

runs_a_loss_that_selects_nothing() {
  mkdir "$work/fixture" && cp "$fixture" "$work/fixture" &&
    expect 0 evaluate $batch --plugins "$work/fixture" -o "$work/whole" --json &&
    says '"kept_tokens": 3394' &&
    expect 0 evaluate $batch --plugins "$work/fixture" --micro-batches 5 -o "$work/split" &&
    cmp "$work/whole" "$work/split"
}

asks_which_loss_is_meant() {
  mkdir "$work/both" && cp "$fixture" "$plugins"/*.so "$work/both" &&
    expect 1 evaluate $batch --plugins "$work/both" && complains 'expected --loss or --preset' &&
    expect 0 evaluate $batch --plugins "$work/both" --loss m2po
}

finds_plugins_by_environment() {
  RFT_PLUGIN_PATH=$plugins expect 0 schema m2po &&
    RFT_PLUGIN_PATH=plugins expect 1 schema m2po && complains 'as entry 1'
}

knows_its_options() {
  expect 2 evaluate $batch --micro-batch 3 && complains 'the nearest known option is --micro-batches' &&
    expect 2 evaluate $batch --threads 0 && complains '--threads: expected a whole number' &&
    expect 2 evaluate && expect 2 schema a b && expect 2 list --plugins &&
    expect 2 evaluate $batch --loss a --preset b && expect 2 lst &&
    complains 'the nearest known one is list' && expect 2
}

helps() {
  for command in list schema preset evaluate; do
    expect 0 $command --help && silent && says "usage: rft $command" || return 1
  done
  expect 0 --help && says 'Exit codes:' && expect 0 --version && says 'plugin ABI 1.1'
}

notices_that_output_is_lost() {
  ! "$rft" preset grpo --plugins "$plugins" >/dev/full &&
    expect 1 evaluate $batch --plugins "$plugins" -o "$work/nowhere/out" && complains 'cannot write' &&
    expect 1 evaluate $batch --plugins "$plugins" -o /dev/null && complains 'not a regular file' &&
    [ -c /dev/null ]
}

check 'rft lists the loss and the presets of a plugin' lists_what_is_there
check 'rft lists refused files with reasons, and says so in its exit code' lists_what_was_refused
check 'rft prints the JSON Schema of a loss' prints_a_schema
check 'rft prints a table of the schema on a terminal' prints_a_table_on_a_terminal
check 'rft prints a resolved preset' prints_a_preset
check 'rft gives the same mask and gradient for any split and thread count' splits_change_no_bit
check 'rft tells loss, metrics and config in one JSON object' tells_all_in_json
check 'rft lays a config over a preset' lays_a_config_over_a_preset
check 'rft refuses a misspelt key by name and writes nothing' refuses_a_misspelt_key
check 'rft names the tensors that a wrong file has' names_the_tensors_of_a_wrong_file
check 'rft refuses more micro-batches than rows' counts_rows_before_splitting
check 'rft runs a loss that selects nothing' runs_a_loss_that_selects_nothing
check 'rft asks which of several losses is meant' asks_which_loss_is_meant
check 'rft finds plugins by RFT_PLUGIN_PATH' finds_plugins_by_environment
check 'rft refuses wrong command lines with exit code 2' knows_its_options
check 'rft explains itself' helps
check 'rft notices that its output is lost' notices_that_output_is_lost
