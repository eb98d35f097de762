// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "cli.h"
#include "inspect_along.h"
#include "inspect_report.h"

static json_t *whole(int64_t value)
{
  return json_integer((json_int_t)value);
}

// ------------------------------------------------------------------------------------------- batch

static json_t *spread_json(const inspect_spread *spread)
{
  json_t *const quantiles = json_array();
  for (int i = 0; i < INSPECT_QUANTILES; ++i) {
    json_array_append_new(quantiles, json_pack("{s:o, s:o}", "level",
                                               cli_json_number(inspect_quantile_levels[i]), "value",
                                               cli_json_number(spread->quantiles[i])));
  }
  return json_pack("{s:o, s:o, s:o}", "mean", cli_json_number(spread->mean), "root_mean_square",
                   cli_json_number(spread->root_mean_square), "quantiles", quantiles);
}

static json_t *batch_json(const inspect_batch *batch)
{
  inspect_spread log_ratio;
  inspect_spread ratio;
  inspect_batch_spread(batch, &log_ratio, &ratio);
  const bool known = batch->staleness != INSPECT_STALENESS_UNKNOWN;
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "path",
                   cli_json_string(batch->source->path), "sequences", whole(batch->source->rows),
                   "positions", whole(batch->positions), "valid_tokens", whole(batch->valid_tokens),
                   "staleness", known ? whole(batch->staleness) : json_null(), "has_text",
                   batch->text != NULL, "log_ratio", spread_json(&log_ratio), "ratio",
                   spread_json(&ratio));
}

// ------------------------------------------------------------------------------------------ losses

static json_t *tokens_json(const inspect_report *report, int index)
{
  const inspect_batch *const batch = report->batch;
  const inspect_effect *const effect = &report->effects[index];
  json_t *const tokens = json_array();
  for (int64_t i = 0; i < report->losses[index].token_count; ++i) {
    const int64_t at = report->losses[index].tokens[i];
    const int64_t row = inspect_batch_row(batch, at);
    json_array_append_new(tokens,
                          json_pack("{s:o, s:o, s:s?, s:o, s:o, s:s}", "sequence", whole(row),
                                    "position", whole(at - cli_batch_positions(batch->source, row)),
                                    "text", inspect_batch_text(batch, row, at), "advantage",
                                    cli_json_number(batch->advantage[at]), "log_ratio",
                                    cli_json_number(effect->log_ratio[at]), "state",
                                    effect->states[at] == INSPECT_MASKED ? "masked" : "clipped"));
  }
  return tokens;
}

static json_t *groups_json(const inspect_group *groups, int64_t count)
{
  json_t *const all = json_array();
  for (int64_t i = 0; i < count; ++i) {
    const inspect_group *const group = &groups[i];
    json_t *const one =
        json_pack("{s:o, s:o, s:o}", "valid_tokens", whole(group->valid_tokens), "masked_tokens",
                  whole(group->masked_tokens), "clipped_tokens", whole(group->clipped_tokens));
    if (group->text != NULL) {
      json_object_set_new(one, "text", json_string(group->text));
    } else {
      json_object_set_new(one, "sequence", whole(group->row));
    }
    json_array_append_new(all, one);
  }
  return all;
}

// ------------------------------------------------------------------------------------------ effect

static json_t *along_json(const inspect_batch *batch, const inspect_effect *effect)
{
  inspect_stretch stretches[INSPECT_MOST_STRETCHES];
  const int count = inspect_along(batch, effect, stretches);
  json_t *const all = json_array();
  for (int i = 0; i < count; ++i) {
    const inspect_stretch *const stretch = &stretches[i];
    json_array_append_new(all, json_pack("{s:o, s:o, s:o, s:o, s:o}", "first",
                                         whole(stretch->first), "last", whole(stretch->last),
                                         "valid_tokens", whole(stretch->valid_tokens),
                                         "masked_tokens", whole(stretch->masked_tokens),
                                         "clipped_tokens", whole(stretch->clipped_tokens)));
  }
  return all;
}

static json_t *sweep_json(const inspect_effect *effect)
{
  json_t *const points = json_array();
  for (int i = 0; effect->swept && i < INSPECT_SWEEP_POINTS; ++i) {
    json_array_append_new(points, json_pack("{s:o, s:o}", INSPECT_THRESHOLD,
                                            cli_json_number(inspect_sweep_threshold(i)),
                                            "masked_fraction", cli_json_number(effect->sweep[i])));
  }
  return points;
}

static json_t *metrics_json(const inspect_effect *effect)
{
  json_t *const metrics = json_object();
  for (int64_t i = 0; i < effect->subject.loss->metric_count; ++i) {
    json_object_set_new(metrics, effect->subject.loss->metrics[i]->name,
                        cli_json_number(effect->metrics[i]));
  }
  return metrics;
}

static json_t *effect_json(const inspect_report *report, int index)
{
  const inspect_effect *const effect = &report->effects[index];
  const inspect_losses *const losses = &report->losses[index];
  json_t *const all = json_pack(
      "{s:s, s:s?, s:O, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "policy_loss",
      effect->subject.loss->name, "preset", effect->preset, "config", effect->config, "loss",
      cli_json_number(effect->loss), "trust_region_tokens", whole(effect->trust_region_tokens),
      "masked_tokens", whole(effect->masked_tokens), "clipped_tokens",
      whole(effect->clipped_tokens), "masked_fraction",
      cli_json_number(inspect_fraction(effect->masked_tokens, report->batch->valid_tokens)),
      "m2_before", cli_json_number(effect->m2_before), "m2_after",
      cli_json_number(effect->m2_after), "cut", cli_json_number(effect->cut), "metrics",
      metrics_json(effect));
  json_object_set_new(all, "tokens", tokens_json(report, index));
  json_object_set_new(all, "texts", groups_json(losses->texts, losses->text_count));
  json_object_set_new(all, "sequences", groups_json(losses->sequences, losses->sequence_count));
  json_object_set_new(all, "along", along_json(report->batch, effect));
  json_object_set_new(all, "sweep", sweep_json(effect));
  return all;
}

int inspect_print_json(const inspect_report *report)
{
  json_t *const effects = json_array();
  for (int i = 0; i < report->count; ++i) {
    json_array_append_new(effects, effect_json(report, i));
  }
  return cli_print_json(json_pack("{s:o, s:o, s:O, s:O?}", "batch", batch_json(report->batch),
                                  "effects", effects, "warnings", report->warnings, "files",
                                  report->files));
}
