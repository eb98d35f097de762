#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# usage: demo.sh BUILD      `make demo` calls it, from the checkout's root
#
# Drops the plugin into a directory, evaluates a recorded batch, trains three runs from one base
# policy, and draws them. Everything is made in BUILD/demo/partial and renamed when it is whole.
set -euo pipefail
export LC_ALL=C

build=$1
demo=$build/demo
partial=$demo/partial
plugins=$demo/plugins
batch=tests/vectors/smollm2_k16.safetensors
staleness=256
updates=2000
runs='on-policy grpo m2po'

finish() {
  local pids
  pids=$(jobs -p)
  # shellcheck disable=SC2086 # a list
  [ -z "$pids" ] || { kill $pids; wait; } 2>/dev/null || true
  rm -rf "$partial"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step() {
  printf '\n== %s\n' "$*"
}
show() {
  echo "\$ $*"
  "$@"
}

drop_in() {
  step 'A plugin is a file in a directory'
  install -m 755 "$build/plugins/libm2po_plugin.so" "$partial"
  mkdir -p "$plugins"
  mv "$partial/libm2po_plugin.so" "$plugins"
  show "$build/rft" list --plugins "$plugins"
}

# The mask must not depend on how the batch is split, nor on the number of threads.
evaluate() {
  local split
  step 'A batch from a language model, 16 updates stale, in 1, 3 and 8 micro-batches'
  show "$build/rft" evaluate "$batch" --plugins "$plugins" --micro-batches 1 \
    -o "$partial/evaluated-1.safetensors"
  for split in 3 8; do
    "$build/rft" evaluate "$batch" --plugins "$plugins" --micro-batches "$split" --threads 2 \
      -o "$partial/evaluated-$split.safetensors" >/dev/null
    cmp "$partial/evaluated-1.safetensors" "$partial/evaluated-$split.safetensors"
    echo "$split micro-batches, 2 threads: the same mask and gradient, bit for bit"
  done
}

train() { # NAME FLAG...
  local name=$1
  shift
  "$build/rft-train" examples/trainer/addition.yaml --plugins "$plugins" \
    --warm-start "$partial/base.safetensors" --set output.evaluate_every=20 \
    --log "$partial/$name.jsonl" --quiet "$@" >"$partial/$name.out" 2>&1
}

progress() { # END
  local name line=
  for name in $runs; do
    line+=$(printf '   %s %4d/%d' "$name" "$(cat "$partial/$name.jsonl" 2>/dev/null | wc -l)" \
      "$updates")
  done
  printf '%s%s' "$line" "$1"
}

train_all() {
  local name pid seconds=0
  local -A pids
  step "Three-digit addition, from one base policy; grpo and m2po learn from rollouts $staleness" \
    'updates old'
  train base --updates 1 || { cat "$partial/base.out" && return 1; }
  train on-policy --algorithm grpo --staleness 0 --updates $updates --threads 1 &
  pids[on-policy]=$!
  for name in grpo m2po; do
    train $name --algorithm $name --staleness $staleness --updates $updates --threads 1 &
    pids[$name]=$!
  done
  while [ -n "$(jobs -pr)" ]; do
    if [ -t 1 ]; then
      progress $'\r'
    elif [ $((seconds % 20)) -eq 19 ]; then
      progress $'\n'
    fi
    sleep 1
    seconds=$((seconds + 1))
  done
  progress $'\n'
  for name in $runs; do
    pid=${pids[$name]}
    wait "$pid" || { cat "$partial/$name.out" && return 1; }
  done
}

# Log lines to rows of 10 updates: update, accuracy or nan, mean of a fraction.
rows() { # FRACTION
  awk -v fraction="\"$1\": " '
    function value(key) {
      return match($0, key "[-+.e0-9]+") ? substr($0, RSTART + length(key)) + 0 : "nan"
    }
    { sum += value(fraction); if (value("\"accuracy\": ") != "nan") accuracy = value("\"accuracy\": ") }
    NR % 10 == 0 {
      printf "%d\t%s\t%.6f\n", NR, accuracy == "" ? "nan" : accuracy, sum / 10
      accuracy = ""; sum = 0
    }'
}

summary() { # NAME WHAT
  awk -F '\t' -v name="$1" -v what="$2" -v seconds="$3" '
    $2 != "nan" { last = $2; if ($2 > best) best = $2; if (!reached && $2 >= 0.8) reached = $1 }
    { sum += $3 }
    END {
      printf "%-10s %9.3f %9.3f %12s   %6.3f %-8s %7.1f\n", name, last, best,
             reached ? reached : "-", sum / NR, what, seconds
    }' "$partial/$1.tsv"
}

seconds_of() { # NAME
  grep -o '"seconds": [0-9.e-]*' "$partial/$1.jsonl" | awk '{ sum += $2 } END { print sum }'
}

report() {
  local name
  for name in $runs; do
    case $name in m2po) rows masked_fraction ;; *) rows clip_fraction ;; esac \
      <"$partial/$name.jsonl" >"$partial/$name.tsv"
  done
  gnuplot -e "runs='$partial'; staleness=$staleness" examples/trainer/plot.gp
  step 'Result'
  echo "One seed, $updates updates each"
  echo '            accuracy  accuracy   updates to   tokens without          s'
  echo 'run             last      best          0.8   gradient'
  summary on-policy clipped "$(seconds_of on-policy)"
  summary grpo clipped "$(seconds_of grpo)"
  summary m2po masked "$(seconds_of m2po)"
  for name in $runs; do
    mv "$partial/$name.jsonl" "$partial/$name.tsv" "$demo"
  done
  mv "$partial/demo.svg" "$partial/demo.png" "$demo"
  printf '\nPlot: %s and demo.png; logs beside it\n' "$demo/demo.svg"
}

rm -rf "$partial"
mkdir -p "$partial"
drop_in
evaluate
train_all
report
