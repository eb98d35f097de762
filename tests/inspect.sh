#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # jq and perl have variables of their own
#
# rft inspect: its numbers against the exact answers of tests/vectors, its warnings, its plots.
set -u

rft=$BUILD/rft plugins=$BUILD/plugins vectors=tests/vectors
batch=$vectors/smollm2_k16.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RFT_PLUGIN_PATH

# check NAME COMMAND...: one test, passed when the command succeeds
check() {
  local name=$1
  shift
  if "$@" >"$work/why" 2>&1; then
    echo "ok - rft inspect $name"
  else
    echo "not ok - rft inspect $name"
    sed 's/^/# /' "$work/why"
  fi
}

# expect CODE ARGUMENTS...: runs rft inspect; its output is left in $work/out and $work/err
expect() {
  local wanted=$1 status
  shift
  "$rft" inspect --plugins "${from:-$plugins}" "$@" >"$work/out" 2>"$work/err" </dev/null
  status=$?
  head -c 3000 "$work/out"
  cat "$work/err"
  [ "$status" -eq "$wanted" ] || { echo "exit status $status, expected $wanted"; return 1; }
}

says() { grep -qF -e "$1" "$work/out"; }
complains() { grep -qF -e "$1" "$work/err"; }
silent() { [ ! -s "$work/err" ]; }
holds() { jq -e "$@" "$work/out" >/dev/null || { echo "does not hold: $*"; return 1; }; }
warns() { holds --arg code "$1" 'any(.warnings[]; .code == $code)'; }
does_not_warn() { holds '.warnings == []'; }

# edit FILE PERL: $work/edited is FILE after the code, which has the subs get TENSOR, put TENSOR,
# BYTES, add TENSOR, DTYPE, SHAPE, BYTES, and the header's text in $header
edit() {
  perl -e '
    my ($in, $code, $out) = @ARGV;
    open(my $file, "<:raw", $in) or die $!;
    my $all = do { local $/; <$file> };
    my $size = unpack("Q<", $all);
    our $header = substr($all, 8, $size);
    our $data = substr($all, 8 + $size);
    sub at { $header =~ /"$_[0]":\{"dtype":"\w+","shape":[^]]*\],"data_offsets":\[(\d+),(\d+)\]/; ($1, $2 - $1) }
    sub get { my ($start, $length) = at($_[0]); substr($data, $start, $length) }
    sub put { my ($start, $length) = at($_[0]); substr($data, $start, $length) = $_[1] }
    sub add {
      my ($name, $dtype, $shape, $bytes) = @_;
      my ($start, $end) = (length($data), length($data) + length($bytes));
      $header =~ s/\}\s*$/,"$name":{"dtype":"$dtype","shape":[$shape],"data_offsets":[$start,$end]}}/;
      $data .= $bytes;
    }
    eval $code;
    die $@ if $@;
    open(my $result, ">:raw", $out) or die $!;
    $header .= " " x (-length($header) % 8);
    print $result pack("Q<", length($header)), $header, $data;
    close($result) or die $!' "$1" "$2" "$work/edited.safetensors"
}
edited=$work/edited.safetensors

# Filling at what the mask leaves out, as a trainer pads; and no texts.
fill='my @mask = unpack("C*", get("mask"));
  for my $name ("logprob", "old_logprob", "advantages") {
    my @values = unpack("f<*", get($name));
    $values[$_] *= $mask[$_] for 0 .. $#mask;
    put($name, pack("f<*", @values));
  }
  $header =~ s/"token_text"/"other_text"/;'
late='put("mask", "\0" . substr(get("mask"), 0, -1));'
early='put("mask", substr(get("mask"), 1) . "\0");'

# ------------------------------------------------------------------------------------------ numbers

agrees_with_exact_answers() {
  local i file threshold
  for i in $(jq '.batches | keys[]' $vectors/recorded_batches.json); do
    jq ".batches[$i]" $vectors/recorded_batches.json >"$work/exact"
    file=$(jq -r .file "$work/exact") threshold=$(jq .m2_threshold "$work/exact")
    expect 0 "$vectors/$file" --config "{\"m2_threshold\": $threshold}" --top 9999 --json || return 1
    holds --slurpfile exact "$work/exact" '
      def near($a; $b): ($a - $b | fabs) <= 1e-9 * ($b | fabs);
      $exact[0] as $e | .effects[0] |
      (.trust_region_tokens == $e.trust_region_tokens) and (.masked_tokens == $e.masked_tokens) and
      near(.m2_before; $e.m2_before) and near(.m2_after; $e.m2_after) and near(.loss; $e.loss) and
      ([.tokens[] | 32 * .sequence + .position] | sort) == $e.masked_positions and
      .cut == ([.tokens[].log_ratio | fabs] | min) and
      .masked_tokens == ([.sequences[].masked_tokens] | add // 0) and
      .masked_tokens == ([.texts[].masked_tokens] | add // 0) and
      .masked_tokens == ([.along[].masked_tokens] | add) and
      ([.along[].valid_tokens] | add) == $e.valid_tokens' || return 1
    holds --slurpfile exact "$work/exact" '.batch.valid_tokens == $exact[0].valid_tokens' || return 1
  done
}

sweeps_to_exact_answers() {
  local file
  for file in smollm2_k2 smollm2_k8 smollm2_k16; do
    expect 0 $vectors/$file.safetensors --json || return 1
    holds --arg file $file.safetensors --slurpfile exact $vectors/recorded_batches.json '
      .effects[0].sweep as $sweep | .batch.valid_tokens as $valid |
      [$exact[0].batches[] | select(.file == $file)] |
      length == 3 and all(.[]; . as $e |
        any($sweep[]; (.m2_threshold - $e.m2_threshold | fabs) < 1e-12 and
          .masked_fraction == $e.masked_tokens / $valid))' || return 1
  done
}

keeps_tokens_below_the_cut() {
  expect 0 $batch --top 9999 --json && cp "$work/out" "$work/all" &&
    expect 0 $batch --config '{"m2_threshold": 0}' --top 9999 --json &&
    holds --slurpfile all "$work/all" '$all[0].effects[0] as $m2po | .effects[0].tokens |
      [.[] | select((.log_ratio | fabs) >= $m2po.cut)] | length == $m2po.masked_tokens'
}

puts_presets_side_by_side() {
  expect 0 $batch --preset m2po,grpo --json && silent &&
    holds '[.effects[].preset] == ["m2po", "grpo"] and .effects[0].masked_tokens == 167 and
      .effects[0].clipped_tokens == 0 and .effects[1].masked_tokens == 0 and
      .effects[1].clipped_tokens == .effects[1].metrics.clipped_tokens and
      .effects[1].cut == null and .effects[1].sweep == []' &&
    expect 0 $batch --preset m2po,grpo && says '167 (4.92 %)' && says '319 (9.40 %)' &&
    says 'm2po: sequences that lost most' && says 'grpo: sequences that lost most'
}

lays_a_config_over_each_preset() {
  expect 0 $batch --preset m2po,grpo --config '{"log_ratio_clip": 5}' --json &&
    holds 'all(.effects[]; .config.log_ratio_clip == 5)'
}

looks_at_the_proximal_policy() {
  edit $batch 'add("proximal_logprob", "F32", "128,32", get("logprob"))' &&
    expect 0 "$edited" --preset m2po_areal --top 9999 --json &&
    holds --slurpfile areal $vectors/areal_masks.json '
      ($areal[0].batches[] | select(.file == "smollm2_k16.safetensors" and .m2_threshold == 0.04)) as $e |
      ([.effects[0].tokens[] | select(.state == "masked") | 32 * .sequence + .position] | sort) ==
        $e.masked_positions' &&
    edit $batch 'add("proximal_logprob", "F32", "128,32", get("old_logprob"))' &&
    expect 0 "$edited" --preset m2po_areal --staleness 16 --json && warns same_logprobs &&
    holds '.effects[0].m2_before == 0'
}

leaves_the_proximal_policy_to_its_presets() {
  edit $batch 'add("proximal_logprob", "F32", "128,32", get("logprob"))' &&
    expect 0 "$edited" --preset m2po,grpo --json &&
    holds '.effects[0].masked_tokens == 167 and .effects[1].clipped_tokens == 319'
}

tells_any_loss_by_signs() {
  mkdir "$work/fixture" && cp "$BUILD/fixtures/good.so" "$work/fixture" &&
    from=$work/fixture expect 0 $batch --json &&
    holds '.effects[0] | .trust_region_tokens == 720 and .masked_tokens == 0 and .sweep == [] and
      (.m2_before - 0.5590197329844652 | fabs) < 1e-7 and .m2_after == .m2_before'
}

reads_packed_batches() {
  expect 0 $batch --json && jq 'del(.batch.path)' "$work/out" >"$work/padded" &&
    edit $batch '$header =~ s/\[128,32\]/[4096]/g;
      add("cu_seqlens", "I32", "129", pack("l<*", map { 32 * $_ } 0 .. 128))' &&
    expect 0 "$edited" --json && jq 'del(.batch.path)' "$work/out" | cmp - "$work/padded"
}

# --------------------------------------------------------------------------------------------- text

shows_texts() {
  expect 0 $batch --staleness 16 && says '16 updates stale' && says "'The'" && says '[To][ solve]' &&
    says 'no warnings' && expect 0 $batch && says 'staleness not known' &&
    expect 0 $batch --top 0 && ! says 'sequences that lost most'
}

lists_without_texts() {
  edit $batch '$header =~ s/"token_text"/"other_text"/' && expect 0 "$edited" &&
    says 'sequence 31: 7 masked' && ! says 'texts without a gradient'
}

shows_control_characters() {
  edit $batch '$header =~ s/"To\\",/"\\\\u001b[2J\\\\u009b\\",/g' && expect 0 "$edited" --plots "$work/escape" &&
    says '[?[2J?][ solve]' && ! grep -q $'\x1b' "$work/out" "$work/escape/tokens.html"
}

reads_staleness_from_the_file() {
  edit $batch '$header =~ s/"staleness":"\w*"/"staleness":"16"/' &&
    expect 0 "$edited" && says '16 updates stale' && expect 0 "$edited" --staleness 3 &&
    says '3 updates stale'
}

# ----------------------------------------------------------------------------------------- warnings

warns_of_much_masked() {
  expect 0 $batch --config '{"selection": "all_tokens", "m2_threshold": 0.01}' --json &&
    warns masked_much && expect 0 $batch --config '{"selection": "all_tokens"}' --json &&
    does_not_warn && expect 0 $batch --config '{"selection": "all_tokens", "m2_threshold": 0.01}' &&
    says 'warning: m2po masks 33.0 % of the valid tokens'
}

warns_of_same_logprobs() {
  edit $batch 'put("old_logprob", get("logprob"))' && expect 0 "$edited" --staleness 16 --json &&
    warns same_logprobs && expect 0 "$edited" --json && does_not_warn &&
    expect 0 "$edited" --staleness 0 --json && does_not_warn &&
    expect 0 $batch --staleness 16 --json && does_not_warn
}

warns_of_disagreement() {
  expect 0 $vectors/smollm2_k2.safetensors --staleness 0 --json && warns logprobs_disagree &&
    expect 0 $vectors/smollm2_k2.safetensors --staleness 2 --json && does_not_warn &&
    expect 0 $vectors/smollm2_k0_bf16weights.safetensors --staleness 0 --json && does_not_warn
}

warns_of_a_shift_by_filling() {
  edit $batch "$fill" && expect 0 "$edited" --json && does_not_warn &&
    edit $batch "$fill $late" && expect 0 "$edited" --json && warns mask_shifted &&
    expect 0 "$edited" && says 'it ends one position late' && says logprob &&
    edit $batch "$fill $early" && expect 0 "$edited" && says 'it ends one position early' || return 1
  # Only the advantages are filled.
  edit $batch "my @kept = (get('logprob'), get('old_logprob')); $fill
      put('logprob', \$kept[0]); put('old_logprob', \$kept[1]); $late" &&
    expect 0 "$edited" && says 'it ends one position late' && says 'what advantages is filled with'
}

warns_of_a_shift_by_end_markers() {
  edit $batch "$late" && expect 0 "$edited" && says 'it ends one position late' && says 'end marker' &&
    edit $batch "$early" && expect 0 "$edited" && says 'it ends one position early' || return 1
  # Another text pads after the end marker.
  local other='$header =~ s/(\\"<\|im_end\|>\\", )(?=\\"<)/$seen = 1; "\x01"/ge;
    $header =~ s/\x01((?:\x01)*)\\"<\|im_end\|>\\"/
      "\\\"<|im_end|>\\\", " . ("\\\"<pad>\\\", " x length($1)) . "\\\"<pad>\\\""/ge;'
  edit $batch "$other" && grep -qaF '<pad>' "$edited" && expect 0 "$edited" --json &&
    does_not_warn && edit $batch "$other $late" && expect 0 "$edited" --json && warns mask_shifted
}

# Tokens that the policy is sure of have a log-prob of 0, and are no filling.
tells_sure_tokens_from_filling() {
  edit $batch "$fill"' my @values = unpack("f<*", get("logprob"));
      for (0 .. $#values) { $values[$_] = 0 if $_ % 3 == 0 }
      put("logprob", pack("f<*", @values));' &&
    expect 0 "$edited" --json && does_not_warn
}

warns_of_texts_that_do_not_fit() {
  edit $batch '$header =~ s/\\"To\\", //' && expect 0 "$edited" --json && warns token_text_unused &&
    holds '.batch.has_text == false' &&
    edit $batch '$header =~ s/"token_text":"\[/"token_text":"{/' && expect 0 "$edited" &&
    says 'token_text is not used: the text is not valid JSON'
}

# -------------------------------------------------------------------------------------------- plots

nothing_but_plots() { # DIRECTORY
  [ "$(find "$1" -mindepth 1 -printf '%f\n' | LC_ALL=C sort | paste -s -d ' ')" = \
    'log-ratios.png log-ratios.svg masked-along.png masked-along.svg threshold-sweep.png threshold-sweep.svg tokens.html' ]
}

draws() {
  expect 0 $batch --preset m2po,grpo --plots "$work/plots" && silent &&
    says "wrote $work/plots/tokens.html" && nothing_but_plots "$work/plots" || return 1
  for plot in log-ratios masked-along threshold-sweep; do
    tail -n 2 "$work/plots/$plot.svg" | grep -q '</svg>' &&
      head -c 4 "$work/plots/$plot.png" | grep -qa PNG || return 1
  done
  grep -q 'cut of m2po, 0.506' "$work/plots/log-ratios.svg" &&
    grep -q 'grpo, clipped' "$work/plots/masked-along.svg" &&
    grep -q 'as configured, 0.04' "$work/plots/threshold-sweep.svg" &&
    [ "$(grep -o "<b [^>]* m0[ ']" "$work/plots/tokens.html" | wc -l)" -eq 167 ] &&
    [ "$(grep -o "<b [^>]* c1[ ']" "$work/plots/tokens.html" | wc -l)" -eq 319 ] &&
    [ "$(grep -o '<section' "$work/plots/tokens.html" | wc -l)" -eq 128 ] &&
    expect 0 $batch --plots "$work/plots" --json && holds '.files | length == 7' &&
    nothing_but_plots "$work/plots"
}

draws_extremes() {
  edit $batch 'put("mask", "\0" x 4096)' && expect 0 "$edited" --plots "$work/none" && silent &&
    nothing_but_plots "$work/none" &&
    edit $batch 'put("advantages", "\0" x 16384)' && expect 0 "$edited" --plots "$work/zero" &&
    silent && nothing_but_plots "$work/zero" &&
    expect 0 $batch --preset grpo --plots "$work/grpo" && silent &&
    expect 0 $batch --config '{"m2_threshold": 0}' --plots "$work/budget" && silent &&
    edit $batch '$header =~ s/\[128,32\]/[0,32]/g; $header =~ s/"(rewards|token_ids)"[^}]*\},//g;
      $header =~ s/"data_offsets":\[\d+,\d+\]/"data_offsets":[0,0]/g; $data = "";
      $header =~ s/"token_text"/"other_text"/' &&
    expect 0 "$edited" --plots "$work/empty" && silent && nothing_but_plots "$work/empty"
}

marks_up_nothing_of_a_text() {
  edit $batch '$header =~ s/"To\\",/"<script>\x27&\\",/' && expect 0 "$edited" --plots "$work/markup" &&
    grep -qF '&#60;script&#62;&#39;&#38;' "$work/markup/tokens.html" &&
    ! grep -qi '<script' "$work/markup/tokens.html"
}

draws_all_or_nothing() {
  mkdir "$work/bin" "$work/kept" && echo old >"$work/kept/tokens.html" &&
    printf '#!/bin/sh\necho "no such terminal" >&2\nexit 3\n' >"$work/bin/gnuplot" &&
    chmod +x "$work/bin/gnuplot" || return 1
  PATH=$work/bin:$PATH expect 1 $batch --plots "$work/kept" &&
    complains 'gnuplot ended with status 3: no such terminal' && [ ! -s "$work/out" ] &&
    [ "$(find "$work/kept" -mindepth 1)" = "$work/kept/tokens.html" ] &&
    [ "$(cat "$work/kept/tokens.html")" = old ] &&
    PATH=$work expect 1 $batch --plots "$work/unmade" &&
    complains 'cannot run gnuplot, which draws them (package gnuplot-nox): No such file' &&
    [ ! -e "$work/unmade" ]
}

names_a_directory_that_it_cannot_use() {
  expect 1 $batch --plots "$work/no/such" && complains "cannot make $work/no/such: No such file" &&
    echo text >"$work/file" && expect 1 $batch --plots "$work/file" &&
    complains "cannot write to $work/file: Not a directory" &&
    mkdir -p "$work/taken/tokens.html" && expect 1 $batch --plots "$work/taken" &&
    complains "cannot write $work/taken/tokens.html: Is a directory" && [ ! -s "$work/out" ] &&
    expect 1 $batch --plots /proc/sys && complains 'cannot write to /proc/sys'
}

# ------------------------------------------------------------------------------------------- errors

refuses_what_it_cannot_read() {
  expect 1 "$work/nowhere" && complains "$work/nowhere" &&
    edit $batch 'my @v = unpack("f<*", get("logprob")); $v[33] = "nan"; put("logprob", pack("f<*", @v))' &&
    expect 1 "$edited" && complains 'tensor "logprob" at valid token 1 of sequence 1: expected a finite number, found' &&
    edit $batch '$header =~ s/"mask":\{"dtype":"BOOL"/"mask":{"dtype":"U8"/; put("mask", get("mask"))' &&
    expect 0 "$edited" &&
    edit $batch '$header =~ s/"logprob":\{"dtype":"F32"/"logprob":{"dtype":"I32"/' &&
    expect 1 "$edited" && complains 'logprob'
}

names_the_preset_that_fails() {
  expect 1 $batch --preset m2po,m2po_areal && complains 'preset m2po_areal: ' &&
    complains 'proximal_logprob' && [ ! -s "$work/out" ] &&
    expect 1 $batch --preset m2po,gppo && complains 'the nearest known one is "grpo"' &&
    expect 1 $batch --config '{"m2_treshold": 1}' && complains 'the nearest known key is "m2_threshold"'
}

knows_its_options() {
  expect 2 $batch --preset m2po,m2po && complains 'with a name twice' &&
    expect 2 $batch --preset m2po, && complains 'with an empty name' &&
    expect 2 $batch --preset a,b,c,d,e,f,g,h,i && complains 'with more' &&
    expect 2 $batch --staleness -1 && complains '--staleness: expected a whole number' &&
    expect 2 $batch --top x && expect 2 && expect 2 $batch --loss m2po --preset m2po &&
    expect 2 $batch --plot x && complains 'the nearest known option is --plots'
}

explains_itself() {
  expect 0 --help && says 'usage: rft inspect' && says mask_shifted &&
    "$rft" --help | grep -q '^  inspect BATCH' &&
    ! "$rft" inspect --plugins "$plugins" $batch >/dev/full
}

check 'agrees with the exact answers for the recorded batches' agrees_with_exact_answers
check 'sweeps the threshold to the exact answers' sweeps_to_exact_answers
check 'has a cut that parts masked from kept tokens' keeps_tokens_below_the_cut
check 'puts presets side by side' puts_presets_side_by_side
check 'leaves the proximal policy to presets that ask for it' leaves_the_proximal_policy_to_its_presets
check 'lays a config over each preset' lays_a_config_over_each_preset
check 'looks at the policy that the selection looks at' looks_at_the_proximal_policy
check 'tells the trust region of any loss by signs' tells_any_loss_by_signs
check 'reads packed batches' reads_packed_batches
check 'shows the texts that were lost' shows_texts
check 'lists tokens and sequences without texts' lists_without_texts
check 'sends no control characters of texts anywhere' shows_control_characters
check 'reads the staleness from the metadata' reads_staleness_from_the_file
check 'warns of more than 20 % masked' warns_of_much_masked
check 'warns of m2 = 0 in a batch said to be stale' warns_of_same_logprobs
check 'warns of log-probs that disagree at staleness 0' warns_of_disagreement
check 'warns of a shifted mask by what tensors are filled with' warns_of_a_shift_by_filling
check 'warns of a shifted mask by end markers' warns_of_a_shift_by_end_markers
check 'tells sure tokens from filling' tells_sure_tokens_from_filling
check 'warns of texts that do not fit' warns_of_texts_that_do_not_fit
check 'draws' draws
check 'draws a batch without tokens, advantages, sequences' draws_extremes
check 'takes no markup from texts' marks_up_nothing_of_a_text
check 'draws all or nothing' draws_all_or_nothing
check 'names a directory that it cannot use' names_a_directory_that_it_cannot_use
check 'refuses what it cannot read' refuses_what_it_cannot_read
check 'names the preset that fails' names_the_preset_that_fails
check 'refuses wrong command lines' knows_its_options
check 'explains itself' explains_itself
