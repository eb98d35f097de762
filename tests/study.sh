#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# make study: its quick form, interrupted and resumed, and what it makes of logs that are known.
set -u

if [ -n "$SANITIZE" ]; then
  echo "ok - study # SKIP its own code has no C, and trainer.sh runs the trainer"
  exit 0
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=examples/study
python=/usr/bin/python3

report() { # NAME STATUS: after a failure, what was found follows
  if [ "$2" -eq 0 ]; then
    echo "ok - study: $1"
  else
    failures=$((failures + 1))
    echo "not ok - study: $1"
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
study=("$python" examples/study/study.py "$scratch")
quick=("${study[@]}" quick)
refused() { # NAME MESSAGE COMMAND...: exit code 1, and the message on standard error
  local name=$1 message=$2 status
  shift 2
  "$@" >"$scratch/output" 2>&1
  status=$?
  [ $status -eq 1 ] && grep -qF -- "$message" "$scratch/output" &&
    ! grep -q Traceback "$scratch/output"
  report "$name" $?
}

# A copy of the build: the study's results lie beside it.
refused 'a missing trainer is an error that names it' "$scratch/rft-train: expected what" "${study[@]}"
mkdir "$scratch/plugins"
cp "$BUILD/rft-train" "$BUILD/librft_host.so.1" "$scratch"
cp "$BUILD/plugins/libm2po_plugin.so" "$scratch/plugins"
refused 'a study that there is none of is an error with those that there are' \
  'STUDY: expected one of all, quick, report, addition' "${study[@]}" nonsense

# --------------------------------------------------------------------------- killed, and resumed

directory=$scratch/study/quick
runs=$directory/runs
made() { # when each log was made, by name: two runs differ in it
  stat -c '%n %y %z %i' "$runs"/*.jsonl 2>/dev/null | sed "s,$runs/,,"
}
count() {
  find "$runs" -name '*.json' 2>/dev/null | wc -l
}
leave() { # SIGNAL RUNS: the study gets it when so many are finished
  local pid
  "${quick[@]}" >"$scratch/output" 2>&1 &
  pid=$!
  while [ "$(count)" -lt "$2" ] && kill -0 $pid 2>/dev/null; do
    sleep 0.05
  done
  sleep 0.1 # the next ones have begun
  kill "-$1" $pid
  wait $pid 2>/dev/null
}

leave KILL 2
same 'SIGKILL ends a study' 137 $?
sleep 0.05
same 'and no run goes on' '' "$(grep -l "$scratch/study/quick/trainer" /proc/[0-9]*/cmdline 2>/dev/null)"
finished=$(count)
[ "$finished" -ge 2 ] && [ "$finished" -lt 6 ]
report 'a part of the runs is finished' $?
made >"$scratch/before"
leave TERM 6
same 'SIGTERM ends a study' 143 $?
same 'and leaves nothing half' '' "$(find "$directory" -name '*.partial')"
check 'the study is resumed' "${quick[@]}"
same 'all runs are there' 14 "$(count)"
made >"$scratch/after"
same 'those that were finished were not repeated' '' \
  "$(sort "$scratch/after" | comm -23 <(sort "$scratch/before") -)"
check 'once more, and there is nothing to do' "${quick[@]}"
same 'so that no log is touched' "$(cat "$scratch/after")" "$(made)"
same 'an equal run of two experiments is one log' 2 \
  "$(find "$runs" -name 'addition-m2po-s256-seed?.jsonl' | wc -l)"
for file in tables.md summary.json addition-accuracy.svg addition-accuracy.png threshold.svg; do
  check "it writes $file" test -s "$directory/$file"
done
check 'the tables have a row for each cell' grep -q '^| m2po at 256, tau 0.01 | 2 of 2 |' \
  "$directory/tables.md"

# ----------------------------------------------------------------------- logs of something else

remade() { # NAME SED-SCRIPT: changes what the first log says that it was made with
  local name=addition-grpo-s0-seed0
  sed -i "$2" "$runs/$name.json"
  made >"$scratch/before"
  "${quick[@]}" >"$scratch/output" 2>&1
  made >"$scratch/after"
  same "$1" "$name.jsonl" "$(comm -13 "$scratch/before" "$scratch/after" | cut -d ' ' -f 1)"
}
remade 'a log of other settings is made again, and no other' 's/"trainer.updates": 100/"trainer.updates": 90/'
remade 'so is a log of another plugin' 's/"libm2po_plugin.so": "./&0/'
remade 'so is a log of another config file' 's/"config": "./&0/'
sed -i '$d' "$runs/addition-grpo-s0-seed0.jsonl"
remade 'so is a log that was cut' ''
remade 'so is one whose record was cut' '$d'
sed -i 's/"trainer.updates": 100/"trainer.updates": 90/' "$runs/addition-grpo-s0-seed0.json"
mkdir "$scratch/other"
cp -r "$scratch/study" "$scratch/other"
check 'a report needs the logs alone' env LC_ALL=C "$python" - "$scratch/other" <<'END'
import pathlib, sys
import experiments, report

print(report.make(experiments.QUICK, pathlib.Path(sys.argv[1]) / "study" / "quick"))
END
check 'and says which are missing' grep -q '^Missing runs: 1 of grpo at 0\.$' \
  "$scratch/other/study/quick/tables.md"

exec 9>"$directory/lock"
flock 9
refused 'two studies in one directory are refused' "$directory: another study is at work in it" \
  "${quick[@]}"
flock -u 9

# ------------------------------------------------------------------------- runs that do not end well

# RATE PRESET: one run of the quick study with other settings.
run_alone() {
  "$python" - "$scratch" "$1" "$2" <<'END'
import dataclasses, pathlib, sys
import experiments
from logs import read
from measures import measure
from runs import Failure, Runs, logs_in
from trainer import Trainer

build, rate, preset = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
run = experiments.QUICK[0].runs()[0]
changes = {experiments.RATE: rate, "algorithm.algorithm_type": preset, "rollout.staleness": 16}
run = dataclasses.replace(run, settings={**run.settings, **changes})
directory = build / "alone"
try:
    Runs(directory, Trainer(build, directory / "trainer")).make([run])
except Failure as failure:
    print(failure)
else:
    log = read(logs_in(directory), run)
    measures = measure(log)
    print(f"ended at {measures.ended}, final {measures.final}, unstable {measures.unstable}")
END
}
same 'a run whose numbers overflow is a result: unstable' 'ended at 1, final 0.0, unstable True' \
  "$(run_alone 1e6 m2po 2>/dev/null)"
same 'a run that ends well is none' 'ended at None' "$(run_alone 1e-5 m2po 2>/dev/null | cut -d , -f 1)"
run_alone 1e-3 m2pq >"$scratch/output" 2>&1
grep -q 'seed0: exit status 1: .*the nearest known one is "m2po".*, after 0 of 100 updates' "$scratch/output"
report 'any other failure stops the study with its message' $?

# ------------------------------------------------------------------------------- logs that are known

# Two seeds of two algorithms, ten evaluations each. grpo: 0.5 throughout, and 0.7. m2po: 0.9, and rising
# to 0.9 from 0.1 at the last five.
check 'logs made by hand give the known mean, spread and verdicts' "$python" - "$scratch/known" <<'END'
import json, pathlib, sys
import claims, experiments, tables
from experiments import EVALUATE_EVERY, Experiment
from measures import results, spread
from runs import logs_in

accuracies = {
    ("grpo", 0): [0.5] * 10,
    ("grpo", 1): [0.7] * 10,
    ("m2po", 0): [0.9] * 10,
    ("m2po", 1): [0.1] * 5 + [0.9] * 5,
}
experiment = Experiment("addition", "?", "addition", (256,), ("grpo", "m2po"), seeds=2, updates=10 * EVALUATE_EVERY)
store = logs_in(pathlib.Path(sys.argv[1]))
for (algorithm, seed), values in accuracies.items():
    run = next(run for run in experiment.runs() if run.name == f"addition-{algorithm}-s256-seed{seed}")
    lines = []
    for update in range(1, run.updates + 1):
        fractions = {"clip_fraction": 0.25 if algorithm == "grpo" else 0.0, "masked_fraction": 0.125 * seed}
        line = {"update": update, "gradient_norm": 1.0, "metrics": {**fractions, "ratio_max": None}}
        if update % EVALUATE_EVERY == 0:
            line["accuracy"] = values[update // EVALUATE_EVERY - 1]
        lines.append(json.dumps(line))
    store.partial(run.name).write_text("\n".join(lines))
    made_with = {"settings": run.settings, "build": {"version": "none"}}
    store.keep(run.name, made_with, outcome="finished", updates=run.updates, seconds=1.0)

found = results(experiment, store)
grpo, m2po = found


def near(value, expected):
    assert abs(value - expected) < 1e-12, (value, expected)


final = spread(grpo.values("final"))
near(final.mean, 0.6)
near(final.deviation, 0.02**0.5)
assert (final.least, final.most) == (0.5, 0.7), final
near(spread(m2po.values("final")).mean, 0.9)
near(m2po.measures[1].over_run, 0.5)
near(m2po.measures[1].fall, 0.0)
near(m2po.measures[1].masked, 0.125)
assert m2po.measures[1].reached == 6 * EVALUATE_EVERY, m2po.measures[1].reached
assert grpo.measures[0].reached is None
verdicts = {verdict.claim.text: verdict for verdict in claims.judge({"addition": found})}
words = [(text, verdict.word) for text, verdict in verdicts.items()]
assert verdicts["grpo ends more than 0.02 below m2po"].holds is True, words
assert "+0.300 (+0.400 +0.200)" in str(verdicts["grpo ends more than 0.02 below m2po"].numbers), words
# By 0.1 in the mean, but in one seed of two.
assert verdicts["and its mean accuracy over the run is more than 0.02 below"].holds is False, words
assert sum(verdict.holds is None for verdict in verdicts.values()) == 4, words
text = "\n".join(tables.document([experiment], {"addition": found}, list(verdicts.values())))
assert "| grpo at 256 | 2 of 2 | 0.600 +- 0.141 | 0.500 .. 0.700 |" in text, text
END

[ "$failures" -eq 0 ]
