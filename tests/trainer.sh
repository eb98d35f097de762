#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# rft-train from outside: both modes, interrupted and resumed runs, refusals, the record.
set -u

train=$BUILD/rft-train
rft=$BUILD/rft
plugins=$BUILD/plugins
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

report() { # NAME STATUS: after a failure, what was found follows
  if [ "$2" -eq 0 ]; then
    echo "ok - trainer: $1"
  else
    failures=$((failures + 1))
    echo "not ok - trainer: $1"
    sed 's/^/  /' "$scratch/output"
  fi
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
refused() { # NAME MESSAGE FLAG...: exit code 1, and the message on standard error
  local name=$1 message=$2 status
  shift 2
  run "$@" --updates 1 >"$scratch/output" 2>&1
  status=$?
  [ $status -eq 1 ] && grep -qF -- "$message" "$scratch/output"
  report "$name" $?
}

# A task small enough to be learnt in a second.
cat >"$scratch/config.yaml" <<END
plugins_dir: $plugins
task: {digits: 2, held_out: 200}
model: {embedding: 8, hidden: 32}
warm_start: {target_accuracy: 0.2, batch: 256, learning_rate: 3e-3, file: $scratch/base}
trainer: {updates: 40, prompts: 16, samples: 4, micro_batches: 4, learning_rate: 3e-3}
rollout: {staleness: 6}
output: {evaluate_every: 10}
END
small=("$train" "$scratch/config.yaml" --quiet)
run() { # FLAG...
  "${small[@]}" "$@"
}
values() { # KEY FILE: the values of a key, one a line
  sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$2"
}
value_at() { # KEY FILE UPDATE
  values "$1" "$2" | sed -n "$3p"
}
without_time() { # FILE: a log that two equal runs share
  sed 's/"seconds": [^,]*, //' "$1"
}

# ------------------------------------------------------------------------------------- both modes

check 'a run in mode stale' run --log "$scratch/stale" --threads 1
same 'the log has a line for each update' 40 "$(wc -l <"$scratch/stale")"
same 'staleness grows to what was asked for, and stays' '0 1 2 3 4 5 6 6 6' \
  "$(values staleness "$scratch/stale" | head -n 9 | paste -s -d ' ')"
same 'accuracy is measured at the first update and every ten' '1 10 20 30 40' \
  "$(grep '"accuracy"' "$scratch/stale" | sed 's/.*"update": \([0-9]*\).*/\1/' | paste -s -d ' ')"
run --log "$scratch/threads" --threads 3 >"$scratch/output" 2>&1
same 'no number depends on the threads' "$(without_time "$scratch/stale")" \
  "$(without_time "$scratch/threads")"
run --log "$scratch/seed" --seed 1 --warm-start "$scratch/base-1" >"$scratch/output" 2>&1
[ "$(without_time "$scratch/stale")" != "$(without_time "$scratch/seed")" ]
report 'another seed gives another run' $?

check 'a run in mode async' run --log "$scratch/async" --mode async --set rollout.queue=4 \
  --set rollout.threads=2 --set rollout.publish_every=5
same 'its log has a line for each update' 40 "$(wc -l <"$scratch/async")"
# At most the batches in flight and the updates since the weights were published.
same 'its staleness is measured, and bounded by queue and publication' '' \
  "$(values staleness "$scratch/async" | awk '$1 < 0 || $1 > 4 + 5')"

# --------------------------------------------------------------------------- interrupted, resumed

# The runs below take a second or more, and are hit somewhere in the middle.
total=1500
[ -z "$SANITIZE" ] || total=400
long=(--updates "$total" --set output.checkpoint_every=10)
lines_of() { # FILE
  if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi
}
hit() { # NAME SIGNAL LINES FLAG...: starts a run, sends the signal once its log is that long
  local name=$1 signal=$2 lines=$3 pid
  shift 3
  "${small[@]}" "${long[@]}" --log "$scratch/$name.log" --checkpoint "$scratch/$name" "$@" \
    >"$scratch/$name.out" 2>&1 &
  pid=$!
  while [ "$(lines_of "$scratch/$name.log")" -lt "$lines" ] && kill -0 $pid 2>/dev/null; do
    sleep 0.01
  done
  kill "-$signal" $pid 2>/dev/null
  wait $pid 2>/dev/null
}
resume() { # NAME
  run "${long[@]}" --log "$scratch/$1.log" --checkpoint "$scratch/$1" --resume
}
same_run() { # NAME: as if it had never been interrupted
  cmp "$scratch/whole" "$scratch/$1" &&
    [ "$(without_time "$scratch/whole.log")" = "$(without_time "$scratch/$1.log")" ]
}

check 'a run with checkpoints' run "${long[@]}" --log "$scratch/whole.log" \
  --checkpoint "$scratch/whole"

hit sigint INT 100
same 'SIGINT ends a run with exit code 130' 130 $?
check 'the message tells how to go on' grep -q 'saved: --resume goes on' "$scratch/sigint.out"
check 'the run is resumed' resume sigint
check 'it ends bit-equal to one that was not interrupted' same_run sigint

hit killed KILL 105
same 'SIGKILL ends a run' 137 $?
check 'the run is resumed from its last checkpoint' resume killed
check 'it ends bit-equal to one that was not killed' same_run killed

# A checkpoint at every update: most kills hit while one is written.
long=(--updates "$total" --set output.checkpoint_every=1)
hit often KILL 20
for lines in 60 100 140 180; do
  hit often KILL "$lines" --resume
done
same 'SIGKILL while checkpoints are written ends a run' 137 $?
long=(--updates "$total" --set output.checkpoint_every=10)
check 'a run killed again and again is resumed' resume often
check 'and ends bit-equal' same_run often
same 'every line of its log is whole' $total "$(grep -c '^{"update": .*}$' "$scratch/often.log")"

refuse_resume() { # NAME MESSAGE FLAG...
  local name=$1 message=$2
  shift 2
  cp "$scratch/whole" "$scratch/copy"
  refused "$name" "$message" --checkpoint "$scratch/copy" --resume "$@"
}
refuse_resume 'a checkpoint of another config is refused by the key that differs' \
  'made with algorithm.policy_loss_fn_args.m2_threshold = the number 0.04, the config has' \
  --set algorithm.policy_loss_fn_args.m2_threshold=0.02
refuse_resume 'a checkpoint of another seed is refused' 'made with trainer.seed = ' --seed 1
refused 'a base policy of another task is refused' 'made with task.digits = ' --set task.digits=1
head -c 1000 "$scratch/whole" >"$scratch/cut"
refused 'a checkpoint that was cut is refused' "$scratch/cut" --checkpoint "$scratch/cut" --resume
refused 'a checkpoint is no base policy' 'expected a file of format' --warm-start "$scratch/whole"
refused 'nothing to resume from is an error' "$scratch/nothing" --checkpoint "$scratch/nothing" \
  --resume

# ------------------------------------------------------------------------------ presets and configs

refused 'a misspelt key is named with the nearest one' \
  'trainer: config key "learning_rat" is not known: the nearest known key is "learning_rate"' \
  --set trainer.learning_rat=1
refused 'so is a misspelt argument of the policy loss' \
  'config key "m2_treshold" is not known: the nearest known key is "m2_threshold"' \
  --set algorithm.policy_loss_fn_args.m2_treshold=0.1
refused 'so is a misspelt preset' 'the nearest known one is "m2po"' --algorithm m2pq
refused 'a task that there is none of is refused' 'task: config key "name"' \
  --set task.name=subtraction

mkdir "$scratch/plugins"
install -m 755 "$BUILD/fixtures/trainer_presets.so" "$scratch/plugins"
refused 'a preset that wants a critic is refused' 'preset "wants_critic" sets use_critic to true' \
  --plugins "$scratch/plugins" --algorithm wants_critic
refused 'a preset that wants a reference model is refused' \
  'preset "wants_reference" sets use_reference to true' \
  --plugins "$scratch/plugins" --algorithm wants_reference
refused 'a preset that wants a KL loss is refused' 'preset "wants_kl" sets kl_loss_fn to' \
  --plugins "$scratch/plugins" --algorithm wants_kl
refused 'a preset that wants another advantage is refused' 'preset "wants_gae" sets advantage_fn to' \
  --plugins "$scratch/plugins" --algorithm wants_gae
check 'a policy loss that selects nothing trains too' run --plugins "$scratch/plugins" \
  --algorithm plain --log "$scratch/plain"
same 'and its metrics are logged' 192.0 "$(value_at positions "$scratch/plain" 1)"

"$train" "$scratch/config.yaml" --no-such-flag >"$scratch/output" 2>&1
same 'a wrong command line is exit code 2' 2 $?

# --------------------------------------------------------------------------- threshold and record

masked() { # THRESHOLD: masked tokens at update 7
  run --updates 7 --log "$scratch/masked" --set "algorithm.policy_loss_fn_args.m2_threshold=$1" \
    >"$scratch/output" 2>&1
  value_at masked_tokens "$scratch/masked" 7
}
loose=$(masked 0.01) tight=$(masked 0.001) none=$(masked null)
printf 'masked at 0.01: %s, at 0.001: %s, at null: %s\n' "$loose" "$tight" "$none" \
  >"$scratch/output"
awk -v a="$tight" -v b="$loose" -v c="$none" 'BEGIN { exit !(a > b && b > 0 && c == 0) }'
report 'm2_threshold decides how many tokens are masked' $?

refused 'a record of an update that never comes is refused' \
  'output: config key "record_update": expected at most trainer.updates = 1, found 2' \
  --record "$scratch/never" --record-update 2
check 'a batch is recorded' run --updates 12 --log "$scratch/recorded" --record "$scratch/batch" \
  --record-update 12
"$rft" evaluate "$scratch/batch" --plugins "$plugins" --micro-batches 4 --json \
  >"$scratch/evaluated" 2>"$scratch/output"
report 'rft evaluate reads it' $?
for key in loss valid_tokens trust_region_tokens masked_tokens m2_before m2_after ratio_sum; do
  same "rft evaluate gives the $key that the trainer logged" \
    "$(value_at $key "$scratch/recorded" 12)" "$(values $key "$scratch/evaluated" | tail -n 1)"
done


# -------------------------------------------------------------------- proximal policy, second task

check 'm2po_areal trains: the policy before the step is the proximal one' run --updates 12 \
  --algorithm m2po_areal --log "$scratch/areal" --record "$scratch/areal_batch" --record-update 12
"$rft" evaluate "$scratch/areal_batch" --plugins "$plugins" --preset m2po_areal --micro-batches 4 --json \
  >"$scratch/evaluated" 2>"$scratch/output"
report 'its record holds the proximal policy' $?
for key in loss masked_tokens m2_after; do
  same "rft evaluate gives the $key that m2po_areal logged" \
    "$(value_at $key "$scratch/areal" 12)" "$(values $key "$scratch/evaluated" | tail -n 1)"
done

words() {
  "$train" examples/trainer/word_problems.yaml --plugins "$plugins" --quiet \
    --set task.steps=2 --set task.held_out=200 --set warm_start.target_accuracy=0.1 "$@"
}
check 'word problems are learnt as well' words --updates 12 --staleness 4 --log "$scratch/words" \
  --record "$scratch/stories" --record-update 12
grep -aqE 'prompt_text.*A [a-z]+ has [0-9]+ [a-z]+, .* How many' "$scratch/stories"
report 'a record of them holds the stories' $?

[ "$failures" -eq 0 ]
