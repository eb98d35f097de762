#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# An author's way: the commands of examples/plugin_template/README.md, in an empty directory, against
# what `make install` puts in place.
set -u

if [ -n "${SANITIZE:-}" ]; then
  echo "ok - template # SKIP a build with sanitizers is not what plugins are built with"
  exit 0
fi

batch=$PWD/tests/vectors/smollm2_k16.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/root/usr/local
rft=$prefix/bin/rft
unset RFT_PLUGIN_PATH

check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    echo "ok - template: $name"
  else
    echo "not ok - template: $name"
    sed 's/^/# /' "$work/why"
  fi
}

is_short() {
  wc -l "$work/my_loss/template.c"
  [ "$(wc -l <"$work/my_loss/template.c")" -lt 150 ]
}
builds() { # DIRECTORY
  PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root make -C "$1" CC="$CC"
}
needs_little() {
  local needed
  needed=$(readelf -dW "$work/my_loss/my_loss.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | xargs)
  echo "needs: $needed"
  [ "$needed" = 'libc.so.6 libm.so.6' ] || grep -q ljansson build/jansson/link
}
is_listed() {
  "$rft" list --plugins "$work/my_loss" | tee "$work/out" && grep -q 'policy loss  my_loss' "$work/out"
}
evaluates() {
  "$rft" evaluate "$batch" --plugins "$work/my_loss" --loss my_loss --config '{"ratio_cap": 2}' --json \
    >"$work/out" && cat "$work/out" && jq -e '.loss != 0 and .valid_tokens == 3394' "$work/out"
}
splits() {
  "$rft" evaluate "$batch" --plugins "$work/my_loss" -o "$work/whole" &&
    "$rft" evaluate "$batch" --plugins "$work/my_loss" --micro-batches 5 --threads 3 -o "$work/split" &&
    cmp "$work/whole" "$work/split"
}
is_renamed() {
  cp -r examples/plugin_template "$work/other" && sed -i s/my_loss/other/g "$work/other"/{template.c,Makefile} &&
    builds "$work/other" && "$rft" schema other --plugins "$work/other"
}

passes_all_checks() {
  "$rft" check "$work/my_loss/my_loss.so" --seed 1
}

# ---------------------------------------------------------------------------------- broken copies
#
# Each breaks one rule, as an author might, and `rft check` has to say which.

# breaks NAME RULE CHECK SED...: the template, edited by the sed scripts, fails the check
breaks() {
  local name=$1 rule=$2 wanted=$3 copy=$work/$1
  shift 3
  cp -r examples/plugin_template "$copy"
  if check_names_it "$copy" "$wanted" "$@" >"$work/why" 2>&1; then
    echo "ok - template: $name fails $wanted ($rule)"
  else
    echo "not ok - template: $name fails $wanted ($rule)"
    sed 's/^/# /' "$work/why"
  fi
}
check_names_it() { # DIRECTORY CHECK SED...
  local copy=$1 wanted=$2 script
  shift 2
  for script in "$@"; do
    sed -i -e "$script" "$copy/template.c" "$copy/Makefile"
  done
  if diff -r examples/plugin_template "$copy"; then
    echo 'the scripts change nothing'
    return 1
  fi
  builds "$copy" || return 1
  "$rft" check "$copy/my_loss.so" --only " $wanted\$" --seed 1 --json >"$copy/out"
  cat "$copy/out"
  jq -e --arg wanted "$wanted" 'any(.checks[]; .name == $wanted and .status == "failed")' "$copy/out"
}

# Where the scripts put code.
in_create='s/^  (void)host;$/&\n  '
in_evaluate='s/^  return rft_evaluate_token_mean(/  '
in_refusal='s/^  if (code != RFT_OK) {$/&\n    '
in_of_token='s/^  const rft_instance \*const instance = context;$/&\n  '
before_destroy='s/^static void destroy(/'
including='s/^#include <stdlib.h>$/&\n#include '
linking='s/^ldflags = -shared/& '

broken_copies() {
  breaks no_struct_size P1 tables_are_whole '/^    .struct_size = RFT_STRUCT_SIZE(rft_policy_loss/d'
  breaks takes_short_host P1 entry_refuses_a_short_host \
    's/^      rft_check_table(host.*$/      host == NULL || error == NULL ? RFT_INTERNAL : RFT_OK;/'
  breaks reads_too_far P2 evaluate_reads_no_further \
    "${in_evaluate}"'(void)(batch != NULL \&\& ((const volatile char *)batch)[batch->struct_size]);\n&/'
  breaks ignores_tail P3 evaluate_refuses_unknown_requests "${in_evaluate}"'rft_batch known;\
  if (batch != NULL \&\& batch->struct_size > sizeof known) {\
    known = *batch;\
    known.struct_size = sizeof known;\
    batch = \&known;\
  }\
&/'
  breaks has_every_extension P4 unknown_extension 's/^  return NULL;$/  return id;/'
  breaks other_major P5 opens \
    's/^int32_t rft_plugin_entry_v1/RFT_PLUGIN_EXPORT int32_t rft_plugin_entry_v2/'
  breaks second_symbol P6 one_export \
    "${before_destroy}"'RFT_PLUGIN_EXPORT int another(void);\nint another(void)\n{\n  return 0;\n}\n\n&/'
  breaks half_a_selection P7 functions_are_set \
    's/^    .evaluate = evaluate,$/&\n    .selection_end = (void (*)(rft_selection *))destroy,/'
  breaks says_nothing P8 messages_are_complete \
    "${in_refusal}"'if (error != NULL) {\n      error->message[0] = 0;\n    }/'
  breaks writes_early P9 outputs_stay_on_errors \
    "${in_evaluate}"'if (output != NULL) {\n    output->loss = -1;\n  }\n&/'
  breaks leaks_on_refusal P9 refusal_frees_all "${in_refusal}"'void *volatile lost = malloc(100);\n    (void)lost;/'
  breaks prints P10 prints_nothing "$including<stdio.h>/" "${in_evaluate}"'puts("evaluating");\n&/'
  breaks exits P10 unknown_key "${in_refusal}"'_Exit(1);/'
  breaks aborts P10 unknown_key "${in_refusal}"'abort();/'
  breaks sets_locale P10 use_leaves_locale "$including<locale.h>/" "${in_create}"'setlocale(LC_ALL, "C.UTF-8");/'
  breaks sets_signal P10 use_leaves_signals "$including<signal.h>/" "${in_create}"'signal(SIGUSR1, SIG_IGN);/'
  breaks sets_rounding P10 use_leaves_floats "$including<fenv.h>/" "${in_create}"'fesetround(FE_UPWARD);/'
  breaks leaves_file_open P10 use_leaves_files "$including<stdio.h>/" "${in_create}"'(void)!fopen("\/dev\/null", "r");/'
  breaks opens_schema P11 schema_is_closed 's/\\"additionalProperties\\": false, //'
  breaks misses_default P11 defaults_pass 's/\\"default\\": 10.0/\\"default\\": -1.0/'
  breaks describes_nothing P11 schema_is_documented 's/\\"description\\": .*$/\\"description\\": \\"\\"}"/'
  breaks takes_any_key P12 unknown_key 's/loss->config_schema, config, config_length/loss->config_schema, NULL, 0/'
  breaks takes_any_value P12 bounds_hold 's/\(loss->config_schema\), config, config_length/\1, NULL, 0/'
  breaks leaks_instance P13 destroy_frees_all 's/^  free(instance);$/  (void)instance;/'
  breaks writes_input P13 inputs_may_be_read_only \
    "${in_evaluate}"'if (batch != NULL \&\& batch->logprob != NULL) {\n    *(volatile char *)batch->logprob->data = 0;\n  }\n&/'
  breaks changes_tables P13 entry_gives_the_same_tables \
    's/^    \*tables = &plugin;$/    static rft_plugin copies[2];\n    static int next;\n    next = 1 - next;\
    copies[next] = plugin;\n    *tables = \&copies[next];/'
  breaks wrong_sign P13 gradient_is_the_derivative 's/\.slope = capped ? 0.0 : loss/.slope = capped ? 0.0 : -loss/'
  breaks counts_calls P14 bits_repeat "${in_of_token}"'static double calls;\n  calls += 1;/' \
    's/token->advantage;$/token->advantage + 1e-9 * calls;/'
  breaks shares_config P14 instances_are_independent 's/^  made->ratio_cap = /  made->ratio_cap = shared = /' \
    's/^struct rft_instance {$/static double shared;\n&/' 's/instance->ratio_cap/shared/g'
  breaks starts_thread P15 use_starts_no_thread "$including<pthread.h>\n#include <unistd.h>/" \
    's/^struct rft_instance {$/static void *idle(void *nothing)\n{\n  pause();\n  return nothing;\n}\n\n&/' \
    "${in_create}"'pthread_t thread;\n  pthread_create(\&thread, NULL, idle, NULL);/' 's/-std=c11/-std=gnu11 -pthread/'
  breaks needs_log P16 creates \
    "${in_create}"'const rft_log *const log = host->get_service(host, RFT_HOST_LOG);\n  log->write(log, RFT_LOG_INFO, "hello");/'
  breaks needs_library P18 needed_libraries "${linking}"'-Wl,--no-as-needed -lresolv/'
  breaks has_search_path P19 no_search_path "${linking}"'-Wl,-rpath,\/opt/'
  breaks has_constructor P19 no_constructor \
    "${before_destroy}"'__attribute__((constructor)) static void begin(void)\n{\n  (void)getenv("HOME");\n}\n\n&/'
  breaks stack_is_executable P19 no_executable_stack 's/-z,noexecstack/-z,execstack/'
  breaks is_fast_and_wrong P20 load_leaves_floats 's/^cflags = /&-ffast-math /'
  breaks moves_fields P21 tables_are_whole 's/(rft_policy_loss, evaluate)/(rft_policy_loss, selection_end)/'
}

# ------------------------------------------------------------------------------------------- tests

check 'make install' make install DESTDIR="$work/root" PREFIX=/usr/local
cp -r examples/plugin_template "$work/my_loss"
check 'it is shorter than 150 lines' is_short
check 'a copy builds' builds "$work/my_loss"
check 'it needs libc and libm only (P18)' needs_little
check 'a host loads it' is_listed
check 'it evaluates a recorded batch' evaluates
check 'splits and threads change no bit of the gradient' splits
check 'it can be renamed' is_renamed
check 'it passes every check' passes_all_checks
broken_copies
