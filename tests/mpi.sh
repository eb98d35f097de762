#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# One optimizer batch over many processes: the selection, rft-evaluate-mpi, rft-train-mpi. All of
# them on this machine, more processes than cores.
set -u

plugins=$BUILD/plugins
batch=tests/vectors/smollm2_k16.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RFT_PLUGIN_PATH

skip=
command -v mpirun >/dev/null && [ -x "$BUILD/test-mpi" ] || skip='Open MPI is not installed'
case $SANITIZE in *thread*) skip='Open MPI is not instrumented for ThreadSanitizer' ;; esac
if [ -n "$skip" ]; then
  echo "ok - mpi # SKIP $skip"
  exit 0
fi

# What Open MPI leaves allocated at the end is not ours.
export ASAN_OPTIONS=detect_leaks=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# No process waits longer than this for another.
limit=100

mpi() { # RANKS PROGRAM ARGUMENTS...
  local ranks=$1 program=$2
  shift 2
  timeout -k 5 "$limit" mpirun --oversubscribe --mca mpi_yield_when_idle 1 --mca btl self,vader \
    --mca btl_vader_single_copy_mechanism none -n "$ranks" "$BUILD/$program" "$@" </dev/null
}
check() { # NAME COMMAND...: one test, passed when the command succeeds
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    echo "ok - mpi: $name"
  else
    echo "not ok - mpi: $name"
    sed 's/^/# /' "$work/why"
  fi
}
# What a program says, without what mpirun adds; its exit status.
fails() { # STATUS RANKS PROGRAM ARGUMENTS...: the message is left in $work/err
  local wanted=$1 status
  shift
  mpi "$@" >"$work/out" 2>"$work/err"
  status=$?
  cat "$work/out" "$work/err"
  [ "$status" -eq "$wanted" ] || { echo "exit status $status, expected $wanted" && return 1; }
}
complains() { # TEXT: once, whatever the number of ranks
  [ "$(grep -cF -e "$1" "$work/err")" -eq 1 ]
}

# ----------------------------------------------------------------------------------- the selection

for ranks in 1 2 3 4 7; do
  mpi $ranks test-mpi "$plugins" tests/vectors/m2po_cases.json >"$work/tests" 2>"$work/err"
  status=$?
  sed 's/^\(not ok\|ok\) - /&mpi: /' "$work/tests"
  if [ $status -ne 0 ]; then
    echo "not ok - mpi: $ranks ranks: exit status $status"
    sed 's/^/# /' "$work/err"
  fi
done

# mpirun ends what waits for a process that is gone.
nobody_outlives_a_rank_that_dies() {
  limit=20
  fails 3 3 test-mpi "$plugins" none die
  local status=$?
  limit=100
  [ $status -eq 0 ] && ! grep -q 'went on' "$work/out"
}
check 'a rank that dies ends the job' nobody_outlives_a_rank_that_dies

# Columns: ranks, tokens of each, dtype, dropped, reductions, KiB that a rank puts in.
simulated_costs_are_bounded() {
  "$BUILD/rft-simulate-ranks" "$plugins" >"$work/out" && grep -q '^| 4096 ' "$work/out" &&
    awk -F '|' '/float/ { wide = $4 ~ 64; ++rows
        if ($6 > (wide ? 10 : 6) || $7 + 0 > (wide ? 128 : 64)) { print; bad = 1 } }
      END { exit bad || rows < 13 }' "$work/out"
}
# Thousands of threads, which a sanitizer has no room for.
[ -n "$SANITIZE" ] || check '2 to 4096 simulated ranks keep within the bounds' \
  simulated_costs_are_bounded

# --------------------------------------------------------------------------------- rft-evaluate-mpi

# A packed batch of 4 sequences, one of them empty, 6 tokens; with a bad token for $1 = nan.
make_packed() { # NUMBER FILE
  local half='\x00\x00\x00\x3f' one='\x00\x00\x80\x3f' zero='\0\0\0\0' bad
  [ "$1" = nan ] && bad='\x00\x00\xc0\x7f' || bad=$half
  local f='"dtype":"F32","shape":[6]'
  local header="{\"logprob\":{$f,\"data_offsets\":[0,24]},\"old_logprob\":{$f,\"data_offsets\":[24,48]},\
\"advantages\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[48,64]},\
\"cu_seqlens\":{\"dtype\":\"I32\",\"shape\":[5],\"data_offsets\":[64,84]},\
\"mask\":{\"dtype\":\"BOOL\",\"shape\":[6],\"data_offsets\":[84,90]}}"
  {
    printf "\\x$(printf %02x $((${#header} % 256)))\\x$(printf %02x $((${#header} / 256)))\0\0\0\0\0\0"
    printf %s "$header"
    printf "$zero$half$half$half$bad$half$zero$zero$zero$zero$zero$zero$one$one$one$one"
    printf '\0\0\0\0\x2\0\0\0\x2\0\0\0\x3\0\0\0\x6\0\0\0\1\1\1\1\1\1'
  } >"$2"
}

# Loss and metrics of two JSON results, to 1e-12 of each other; counts and extremes are equal.
same_numbers() { # FILE FILE
  jq -s -e '[.[] | {loss, valid_tokens, kept_tokens, sequences} + .metrics] | .[0] as $a | .[1]
    | to_entries | all(.value as $b | $a[.key] as $a
        | ($a - $b | if . < 0 then -. else . end) <= 1e-12 * ($a | if . < 0 then -. else . end))' \
    "$1" "$2"
}
evaluates_the_same() { # FILE ARGUMENTS...
  "$BUILD/rft" evaluate "$1" --plugins "$plugins" --json -o "$work/alone" "${@:2}" \
    >"$work/alone.json" || return 1
  for ranks in 1 2 3 4 7; do
    rm -f "$work/ranks"
    mpi $ranks rft-evaluate-mpi "$1" --plugins "$plugins" --json -o "$work/ranks" "${@:2}" \
      --threads $((ranks % 2 + 1)) >"$work/ranks.json" && cmp "$work/alone" "$work/ranks" &&
      same_numbers "$work/alone.json" "$work/ranks.json" &&
      jq -e ".ranks | length == $ranks and all(.reductions <= 6 and .bytes <= 65536)" \
        "$work/ranks.json" || return 1
  done
}
packed_batches() {
  make_packed 0.5 "$work/packed" && evaluates_the_same "$work/packed"
}
prints_what_ranks_have_sent() {
  mpi 3 rft-evaluate-mpi $batch --plugins "$plugins" >"$work/out" &&
    grep -q '^rank 2 *5 reductions, *22680 bytes' "$work/out" &&
    mpi 3 rft-evaluate-mpi $batch --plugins "$plugins" --config '{"m2_threshold": 100}' \
      >"$work/out" && grep -q '^rank 0 *1 reductions, *1176 bytes' "$work/out"
}
a_bad_token_is_told_once() {
  make_packed nan "$work/bad"
  fails 1 3 rft-evaluate-mpi "$work/bad" --plugins "$plugins" -o "$work/none" &&
    complains "rft: rank 2 of 3: $work/bad: logprob at index 1" && [ ! -e "$work/none" ]
}
mistakes_are_told_once() {
  fails 1 3 rft-evaluate-mpi "$work/nothing" --plugins "$plugins" && complains 'cannot open' &&
    fails 2 3 rft-evaluate-mpi $batch --micro-batch 2 && complains 'the nearest known option' &&
    fails 1 3 rft-evaluate-mpi $batch --plugins "$plugins" --micro-batches 129 &&
    complains 'expected at most 128 micro-batches' &&
    fails 1 3 rft-evaluate-mpi $batch --plugins "$plugins" --config '{"m2_treshold": 1}' &&
    complains 'the nearest known key is "m2_threshold"' &&
    fails 1 3 rft-evaluate-mpi $batch --plugins "$plugins" -o "$work/no/where" &&
    complains 'cannot write'
}
helps() {
  fails 0 2 rft-evaluate-mpi --help && grep -q '^usage: mpirun' "$work/out" &&
    [ "$(grep -c 'Exit codes:' "$work/out")" -eq 1 ]
}
selects_nothing() {
  mkdir "$work/plain" && cp "$BUILD/fixtures/good.so" "$work/plain" &&
    "$BUILD/rft" evaluate $batch --plugins "$work/plain" -o "$work/alone" &&
    mpi 3 rft-evaluate-mpi $batch --plugins "$work/plain" -o "$work/ranks" &&
    cmp "$work/alone" "$work/ranks"
}
check 'rft-evaluate-mpi gives what rft evaluate does' evaluates_the_same $batch --micro-batches 3
check 'also of packed sequences, and with more ranks than rows' packed_batches
check 'also where nothing selects' selects_nothing
check 'it prints what each rank has put into reductions' prints_what_ranks_have_sent
check 'a bad token is told once, with its rank, and nothing is written' a_bad_token_is_told_once
check 'mistakes are told once' mistakes_are_told_once
check 'it explains itself' helps

# ----------------------------------------------------------------------------------- rft-train-mpi

cat >"$work/config.yaml" <<END
plugins_dir: $plugins
task: {digits: 2, held_out: 200}
model: {embedding: 8, hidden: 32}
warm_start: {target_accuracy: 0.2, batch: 256, learning_rate: 3e-3, file: $work/base}
trainer: {updates: 40, prompts: 16, samples: 4, micro_batches: 4, learning_rate: 3e-3}
rollout: {staleness: 6}
output: {evaluate_every: 10}
END
numbers() { # FILE: a log that two equal runs share
  sed 's/"seconds": [^,]*, //' "$1"
}
trains() { # RANKS ARGUMENTS...
  mpi "$1" rft-train-mpi "$work/config.yaml" --quiet --check-selection --log "$work/log" "${@:2}"
}
ranks_end_with_the_same_bits() {
  "$BUILD/rft-train" "$work/config.yaml" --quiet --log "$work/plain.log" || return 1
  for ranks in 1 2 4; do
    trains $ranks && [ "$(numbers "$work/plain.log")" = "$(numbers "$work/log")" ] || return 1
  done
}
a_base_policy_is_made_once() {
  rm -f "$work/base"
  trains 2 && [ "$(numbers "$work/plain.log")" = "$(numbers "$work/log")" ]
}
ranks_that_divide_nothing() {
  for ranks in 3 7; do
    trains $ranks --updates 20 && [ "$(wc -l <"$work/log")" -eq 20 ] || return 1
  done
}
refuses_what_one_process_does() {
  fails 1 2 rft-train-mpi "$work/config.yaml" --mode async && complains 'rollout.mode async' &&
    fails 1 2 rft-train-mpi "$work/config.yaml" --checkpoint "$work/saved" &&
    complains 'output.checkpoint: expected one process, found 2' &&
    fails 1 3 rft-train-mpi "$work/config.yaml" --set trainer.prompts=2 &&
    complains 'expected one or more for each of 3 processes, found 2' &&
    fails 1 2 rft-train-mpi "$work/config.yaml" --algorithm m2pq && complains '"m2po"' &&
    fails 2 2 rft-train-mpi "$work/config.yaml" --no-such-flag && complains 'is not known'
}
# A selection that each rank makes for itself.
the_check_finds_a_difference() {
  mkdir "$work/alone.d" && cp "$BUILD/fixtures/selects_alone.so" "$work/alone.d" &&
    trains 1 --plugins "$work/alone.d" --algorithm reinforce --updates 3 &&
    fails 1 2 rft-train-mpi "$work/config.yaml" --plugins "$work/alone.d" --algorithm reinforce \
      --check-selection &&
    complains 'sequence 32, token 0 is dropped over the ranks and kept in one process'
}
check '1, 2 and 4 ranks train to the bits of rft-train' ranks_end_with_the_same_bits
check 'rank 0 makes the base policy for all' a_base_policy_is_made_once
check '3 and 7 ranks train, every selection is that of one process' ranks_that_divide_nothing
check 'what works in one process only is refused' refuses_what_one_process_does
check 'the check of the selection finds a difference' the_check_finds_a_difference
