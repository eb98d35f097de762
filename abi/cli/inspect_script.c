// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Colours of Okabe and Ito, and a dash each.

#include "inspect_along.h"
#include "inspect_plots.h"
#include "inspect_warnings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char *const COLOURS[INSPECT_MOST_EFFECTS] = {
    "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#808080"};

// -------------------------------------------------------------------------------------- log-ratios

// Bins of one width around 0, which is an edge. What lies beyond is in the last ones.
enum { BINS = 80 };
#define FURTHEST 10.0

typedef struct bin {
  int64_t valid;
  int64_t masked;  // by the first effect
  int64_t clipped; // likewise
} bin;

typedef struct histogram {
  double reach;      // the bins go from -reach to reach
  bin bins[2][BINS]; // advantage > 0, < 0
  int64_t tokens[2];
  int64_t most;
  int64_t masked;
  int64_t clipped;
} histogram;

static double reach_of(const inspect_batch *batch)
{
  double reach = 0;
  for (int64_t i = 0; i < batch->positions; ++i) {
    if (batch->advantage[i] != 0) {
      reach = fmax(reach, fabs(batch->log_ratio[i]));
    }
  }
  return reach == 0 ? 0.01 : fmin(reach, FURTHEST);
}

static int bin_of(double log_ratio, double reach)
{
  const int index = (int)floor((fmax(-reach, fmin(log_ratio, reach)) + reach) / (2 * reach) * BINS);
  return index < BINS ? index : BINS - 1;
}

static void count(const inspect_batch *batch, const inspect_effect *effect, histogram *counts)
{
  // What another policy's log-ratio decides is no part of these.
  const bool same = effect->log_ratio == batch->log_ratio;
  *counts = (histogram){.reach = reach_of(batch)};
  for (int64_t i = 0; i < batch->positions; ++i) {
    if (batch->valid[i] && batch->advantage[i] != 0) {
      const int sign = batch->advantage[i] < 0;
      // One of 0 is no move with the advantage.
      const int nudge = sign == 0 && batch->log_ratio[i] == 0;
      bin *const in = &counts->bins[sign][bin_of(batch->log_ratio[i], counts->reach) - nudge];
      in->valid += 1;
      in->masked += same && effect->states[i] == INSPECT_MASKED;
      in->clipped += same && effect->states[i] == INSPECT_CLIPPED;
      counts->tokens[sign] += 1;
      counts->most = in->valid > counts->most ? in->valid : counts->most;
    }
  }
  counts->masked = same ? effect->masked_tokens : 0;
  counts->clipped = same ? effect->clipped_tokens : 0;
}

static void write_bins(const histogram *counts, FILE *file)
{
  const double width = 2 * counts->reach / BINS;
  for (int sign = 0; sign < 2; ++sign) {
    fprintf(file, "$sign%d << END\n", sign);
    for (int i = 0; i < BINS; ++i) {
      const bin *const in = &counts->bins[sign][i];
      fprintf(file, "%.9g %" PRId64 " %" PRId64 " %" PRId64 "\n",
              (width * (i + 0.5)) - counts->reach, in->valid, in->masked, in->masked + in->clipped);
    }
    fputs("END\n", file);
  }
}

// Whether an effect masks a token in the half of a panel: of this sign of advantage and log-ratio.
static bool masks_in(const inspect_batch *batch, const inspect_effect *effect, int sign, int half)
{
  for (int64_t i = 0; i < batch->positions; ++i) {
    if (effect->states[i] == INSPECT_MASKED && batch->advantage[i] != 0 &&
        (batch->advantage[i] < 0) == sign && (effect->log_ratio[i] < 0) == half) {
      return true;
    }
  }
  return false;
}

static void write_cuts(const inspect_report *report, int sign, FILE *file)
{
  fputs("unset arrow\n", file);
  for (int i = 0; i < report->count; ++i) {
    const inspect_effect *const effect = &report->effects[i];
    for (int half = 0; half < 2 && effect->log_ratio == report->batch->log_ratio; ++half) {
      if (masks_in(report->batch, effect, sign, half)) {
        const double at = half ? -effect->cut : effect->cut;
        fprintf(file,
                "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead front linecolor rgb '%s' "
                "linewidth 2 dashtype (10,5)\n",
                at, at, COLOURS[i]);
      }
    }
  }
}

static void plot_panel(const inspect_report *report, const histogram *counts, int sign, FILE *file)
{
  const char *const inside = sign ? "<" : ">";
  write_cuts(report, sign, file);
  fprintf(file,
          "set title 'advantage %s 0: %" PRId64 " tokens'\n"
          "plot $sign%d using ($1 %s 0 ? NaN : $1):2 with boxes linecolor rgb '#b8b8b8' "
          "title 'moves against the advantage', "
          "$sign%d using ($1 %s 0 ? $1 : NaN):2 with boxes linecolor rgb '#56B4E9' "
          "title 'moves as the advantage pushes'",
          sign ? "<" : ">", counts->tokens[sign], sign, inside, sign, inside);
  if (counts->clipped > 0) {
    fprintf(file, ", $sign%d using 1:4 with boxes linecolor rgb '#E69F00' title 'clipped by %s'",
            sign, report->effects[0].name);
  }
  if (counts->masked > 0) {
    fprintf(file, ", $sign%d using 1:3 with boxes linecolor rgb '#D55E00' title 'masked by %s'",
            sign, report->effects[0].name);
  }
  for (int i = 0; i < report->count; ++i) {
    const inspect_effect *const effect = &report->effects[i];
    if (!isnan(effect->cut) && effect->log_ratio == report->batch->log_ratio) {
      fprintf(file,
              ", NaN with lines linecolor rgb '%s' linewidth 2 dashtype (10,5) title 'cut of %s, "
              "%.3g'",
              COLOURS[i], effect->name, effect->cut);
    }
  }
  fputs("\n", file);
}

static void plot_log_ratios(const inspect_report *report, const histogram *counts, FILE *file)
{
  fprintf(file,
          "set multiplot\nset size 1, 0.5\nset xrange [%.9g:%.9g]\nset logscale y\n"
          "set yrange [0.5:%.9g]\nset ylabel 'tokens'\nset style fill solid 1 noborder\n"
          "set boxwidth %.9g\nset key top left samplen 2 spacing 1.2 font ',11'\n"
          "set origin 0, 0.5\nset bmargin 2\n",
          -counts->reach, counts->reach, 2.0 * (double)(counts->most + 1),
          1.8 * counts->reach / BINS);
  plot_panel(report, counts, 0, file);
  fprintf(file,
          "set origin 0, 0\nset bmargin 4\nset xlabel 'log-ratio: log-prob now less log-prob when "
          "sampled%s'\nunset key\n",
          counts->reach < FURTHEST ? "" : " (what is beyond stands in the last bars)");
  plot_panel(report, counts, 1, file);
  fputs("unset multiplot\nunset arrow\nunset logscale\nset size 1, 1\nset bmargin 4\n", file);
}

// ------------------------------------------------------------------------------------ other plots

static double threshold_of(const inspect_effect *effect)
{
  return json_number_value(json_object_get(effect->config, INSPECT_THRESHOLD));
}

static void write_data(const inspect_report *report, FILE *file)
{
  for (int i = 0; i < report->count; ++i) {
    const inspect_effect *const effect = &report->effects[i];
    inspect_stretch stretches[INSPECT_MOST_STRETCHES];
    const int stretch_count = inspect_along(report->batch, effect, stretches);
    // Without a point, gnuplot gives up.
    fprintf(file, "$along%d << END\n%s", i, stretch_count == 0 ? "0 0 0 0\n" : "");
    for (int j = 0; j < stretch_count; ++j) {
      const inspect_stretch *const stretch = &stretches[j];
      fprintf(file, "%.9g %.9g %.9g %" PRId64 "\n", (double)(stretch->first + stretch->last) / 2,
              inspect_fraction(stretch->masked_tokens, stretch->valid_tokens),
              inspect_fraction(stretch->clipped_tokens, stretch->valid_tokens),
              stretch->valid_tokens);
    }
    fprintf(file, "END\n$sweep%d << END\n", i);
    for (int j = 0; effect->swept && j < INSPECT_SWEEP_POINTS; ++j) {
      fprintf(file, "%.9g %.9g\n", inspect_sweep_threshold(j), effect->sweep[j]);
    }
    fprintf(file, "END\n$dot%d << END\n%.9g %.9g\nEND\n", i, threshold_of(effect),
            inspect_fraction(effect->masked_tokens, report->batch->valid_tokens));
  }
}

// Lines of the masked fraction, and of the clipped one where tokens are.
static void plot_along(const inspect_report *report, FILE *file)
{
  fprintf(
      file,
      "set multiplot\nset origin 0, 0.35\nset size 1, 0.65\nset bmargin 1\nset tmargin 3\n"
      "set title 'Tokens that lose their gradient, along the sequence'\n"
      "set xrange [0:%" PRId64 "]\nset yrange [0:*<1]\nset ylabel 'share of valid tokens'\n"
      "unset xlabel\nset format x ''\nset key top right samplen 4 spacing 1.2\nplot NaN notitle",
      report->batch->longest + 1);
  for (int i = 0; i < report->count; ++i) {
    const inspect_effect *const effect = &report->effects[i];
    if (effect->masked_tokens > 0 || effect->clipped_tokens == 0) {
      fprintf(file,
              ", $along%d using 1:2 with linespoints pointtype 7 pointsize 0.5 linewidth 2 "
              "linecolor rgb '%s' title '%s, masked'",
              i, COLOURS[i], effect->name);
    }
    if (effect->clipped_tokens > 0) {
      fprintf(file,
              ", $along%d using 1:3 with linespoints pointtype 6 pointsize 0.5 linewidth 2 "
              "dashtype (8,4) linecolor rgb '%s' title '%s, clipped'",
              i, COLOURS[i], effect->name);
    }
  }
  fputs("\nset origin 0, 0\nset size 1, 0.35\nset bmargin 4\nset tmargin 1\nset format x '%g'\n"
        "unset title\nset xlabel 'valid token of its sequence'\nset ylabel 'valid tokens'\n"
        "unset key\nset boxwidth 0.9 relative\nset yrange [0:*]\n"
        "plot $along0 using 1:4 with boxes fillstyle solid linecolor rgb '#b8b8b8'\n"
        "unset multiplot\nset size 1, 1\nset tmargin 3\n",
        file);
}

static void plot_sweep(const inspect_report *report, FILE *file)
{
  fprintf(file,
          "set title 'Masked tokens against the threshold'\nset xlabel '" INSPECT_THRESHOLD "'\n"
          "set ylabel 'share of valid tokens'\nset logscale x\nset xrange [%.9g:%.9g]\n"
          "set yrange [0:0.25<*]\nset xtics (0.00125, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, "
          "0.16, 0.32, 0.64, 1.28)\n"
          "set key top right samplen 4 spacing 1.2\n"
          "plot %.9g with lines linecolor rgb '#808080' dashtype (3,3) title 'warning above'",
          inspect_sweep_threshold(0), inspect_sweep_threshold(INSPECT_SWEEP_POINTS - 1),
          INSPECT_MUCH_MASKED);
  for (int i = 0; i < report->count; ++i) {
    const inspect_effect *const effect = &report->effects[i];
    if (effect->swept) {
      fprintf(file,
              ", $sweep%d using 1:2 with lines linewidth 2.5 linecolor rgb '%s' title '%s'"
              ", $dot%d using 1:2 with points pointtype 7 pointsize 1.2 linecolor rgb '%s' "
              "title 'as configured, %.4g'",
              i, COLOURS[i], effect->name, i, COLOURS[i], threshold_of(effect));
    }
  }
  fputs("\nunset logscale\nset xtics autofreq\n", file);
}

// ------------------------------------------------------------------------------------------ script

static void plot_all(const inspect_report *report, const histogram *counts, const char *terminal,
                     const char *extension, FILE *file)
{
  fprintf(file, "reset\n%s\n", terminal);
  fputs("set border 3 linecolor rgb '#606060'\nset tics nomirror out\n"
        "set grid back linecolor rgb '#d8d8d8' linetype 1\nset lmargin 11\nset rmargin 3\n",
        file);
  fprintf(file, "set output 'log-ratios.%s'\n", extension);
  plot_log_ratios(report, counts, file);
  fprintf(file, "set output 'masked-along.%s'\n", extension);
  plot_along(report, file);
  fprintf(file, "set output 'threshold-sweep.%s'\n", extension);
  plot_sweep(report, file);
  fputs("set output\n", file);
}

void inspect_script_write(const inspect_report *report, FILE *file)
{
  histogram counts;
  count(report->batch, &report->effects[0], &counts);
  write_bins(&counts, file);
  write_data(report, file);
  plot_all(report, &counts,
           "set terminal svg noenhanced size 900,640 font 'sans-serif,14' background rgb 'white'",
           "svg", file);
  plot_all(report, &counts,
           "set terminal pngcairo noenhanced size 1350,960 font 'Sans,14' background rgb 'white'",
           "png", file);
}
