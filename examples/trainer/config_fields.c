// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "config_fields.h"

#include "config.h"

#include <string.h>

#define AT(member) offsetof(train_config, member)

// Maxima keep every product of sizes far within an int64_t.
const config_field config_fields[] = {
    {"algorithm", "algorithm_type", FIELD_NAME, 0, 0, "m2po", "algorithm preset of a plugin",
     AT(algorithm_type)},
    {"algorithm", "policy_loss_fn_args", FIELD_OBJECT, 0, 0, NULL,
     "over the preset's: see rft schema", AT(policy_loss_fn_args)},
    {"task", "name", FIELD_TASK, 0, 0, "addition", "what the policy learns", AT(task_name)},
    {"task", "digits", FIELD_COUNT, TASK_MAX_SIZE, 3, NULL, "addition: digits of each addend",
     AT(digits)},
    {"task", "steps", FIELD_COUNT, TASK_MAX_SIZE, 5, NULL, "word_problems: steps of each story",
     AT(steps)},
    {"task", "held_out", FIELD_COUNT, 1e6, 1000, NULL, "problems that accuracy is measured on",
     AT(held_out)},
    {"model", "embedding", FIELD_COUNT, 4096, 16, NULL, "numbers that a symbol becomes",
     AT(embedding)},
    {"model", "hidden", FIELD_COUNT, 16384, 128, NULL, "width of both hidden layers", AT(hidden)},
    {"warm_start", "target_accuracy", FIELD_FRACTION, 0, 0.35, NULL,
     "supervised training until this held-out accuracy; 0: none", AT(warm_start_target)},
    {"warm_start", "batch", FIELD_COUNT, 1e6, 512, NULL, "problems of a supervised step",
     AT(warm_start_batch)},
    {"warm_start", "max_steps", FIELD_COUNT, 1e9, 5000, NULL, "give up after these",
     AT(warm_start_max_steps)},
    {"warm_start", "learning_rate", FIELD_POSITIVE, 0, 1e-3, NULL, "of AdamW",
     AT(warm_start_learning_rate)},
    {"warm_start", "file", FIELD_PATH, 0, 0, NULL,
     "base policy: read where it exists, else trained and written", AT(warm_start_file)},
    {"trainer", "updates", FIELD_COUNT, 1e9, 1500, NULL, "optimizer steps of the run", AT(updates)},
    {"trainer", "prompts", FIELD_COUNT, 65536, 64, NULL, "problems of an optimizer batch",
     AT(prompts)},
    {"trainer", "samples", FIELD_COUNT, 4096, 8, NULL, "answers to each problem: a group",
     AT(samples)},
    {"trainer", "micro_batches", FIELD_COUNT, 4096, 4, NULL, "parts of an optimizer batch",
     AT(micro_batches)},
    {"trainer", "learning_rate", FIELD_POSITIVE, 0, 1e-3, NULL, "of AdamW", AT(learning_rate)},
    {"trainer", "beta1", FIELD_FRACTION, 0, 0.9, NULL, "of AdamW", AT(beta1)},
    {"trainer", "beta2", FIELD_FRACTION, 0, 0.999, NULL, "of AdamW", AT(beta2)},
    {"trainer", "weight_decay", FIELD_NOT_NEGATIVE, 0, 0, NULL, "of AdamW", AT(weight_decay)},
    {"trainer", "grad_clip", FIELD_NOT_NEGATIVE, 0, 1, NULL, "largest gradient norm; 0: any",
     AT(grad_clip)},
    {"trainer", "seed", FIELD_INTEGER, 9e15, 0, NULL, "of every random number", AT(seed)},
    {"trainer", "threads", FIELD_INTEGER, 1024, 0, NULL,
     "0: one for each CPU; no result depends on it", AT(threads)},
    {"rollout", "mode", FIELD_MODE, 0, 0, "stale",
     "rollouts of an exact age, or from threads beside the learner", AT(mode)},
    {"rollout", "staleness", FIELD_INTEGER, 1e5, 0, NULL, "stale: age of a rollout in updates",
     AT(staleness)},
    {"rollout", "threads", FIELD_COUNT, 1024, 1, NULL, "async: rollout threads",
     AT(rollout_threads)},
    {"rollout", "queue", FIELD_COUNT, 1e5, 8, NULL, "async: batches in flight, at most", AT(queue)},
    {"rollout", "publish_every", FIELD_COUNT, 1e6, 1, NULL,
     "async: updates between two publications of the weights", AT(publish_every)},
    {"output", "log", FIELD_PATH, 0, 0, NULL, "one JSON line an update", AT(log)},
    {"output", "checkpoint", FIELD_PATH, 0, 0, NULL, "where the run is saved, and resumed from",
     AT(checkpoint)},
    {"output", "checkpoint_every", FIELD_COUNT, 1e9, 100, NULL, "updates between two saves",
     AT(checkpoint_every)},
    {"output", "evaluate_every", FIELD_COUNT, 1e9, 50, NULL,
     "updates between two measurements of accuracy", AT(evaluate_every)},
    {"output", "record", FIELD_PATH, 0, 0, NULL, "one update's batch, for rft evaluate",
     AT(record)},
    {"output", "record_update", FIELD_COUNT, 1e9, 1, NULL, "the update to record",
     AT(record_update)},
    {"", "plugins_dir", FIELD_PATH, 0, 0, NULL,
     "directory of plugins; null: RFT_PLUGIN_PATH, else the installed one", AT(plugins_dir)},
};

const int64_t config_field_count = sizeof config_fields / sizeof config_fields[0];

static json_t *property_schema(const config_field *field)
{
  switch (field->kind) {
  case FIELD_COUNT:
  case FIELD_INTEGER:
    return json_pack("{s:s, s:i, s:f, s:f}", "type", "integer", "minimum",
                     field->kind == FIELD_COUNT ? 1 : 0, "maximum", field->maximum, "default",
                     field->number);
  case FIELD_POSITIVE:
    return json_pack("{s:s, s:i, s:f}", "type", "number", "exclusiveMinimum", 0, "default",
                     field->number);
  case FIELD_NOT_NEGATIVE:
    return json_pack("{s:s, s:i, s:f}", "type", "number", "minimum", 0, "default", field->number);
  case FIELD_FRACTION:
    return json_pack("{s:s, s:i, s:i, s:f}", "type", "number", "minimum", 0, "exclusiveMaximum", 1,
                     "default", field->number);
  case FIELD_NAME:
    return json_pack("{s:s, s:s}", "type", "string", "default", field->text);
  case FIELD_PATH:
    return json_pack("{s:[s, s], s:n}", "type", "string", "null", "default");
  case FIELD_MODE:
    return json_pack("{s:s, s:[s, s], s:s}", "type", "string", "enum", "stale", "async", "default",
                     field->text);
  case FIELD_TASK:
    return json_pack("{s:s, s:[s, s], s:s}", "type", "string", "enum", task_addition.name,
                     task_word_problems.name, "default", field->text);
  case FIELD_OBJECT:
    return json_pack("{s:s, s:n}", "type", "null", "default");
  }
  return NULL;
}

json_t *config_section_schema(const char *section)
{
  json_t *const properties = json_object();
  for (int64_t i = 0; i < config_field_count; ++i) {
    const config_field *const field = &config_fields[i];
    if (strcmp(field->section, section) == 0) {
      json_t *const property = property_schema(field);
      json_object_set_new(property, "description", json_string(field->describe));
      json_object_set_new(properties, field->key, property);
    }
  }
  return json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0, "properties",
                   properties);
}
