// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "config.h"

#include "config_fields.h"
#include "support/error.h"
#include "support/json.h"
#include "support/schema.h"
#include "yaml_reader.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char args_key[] = "policy_loss_fn_args";

// ------------------------------------------------------------------------------------------- file

static int32_t read_stream(FILE *file, const char *path, char **text, size_t *length,
                           rft_error *error)
{
  char *data = NULL;
  size_t size = 0;
  char chunk[4096];
  FILE *const memory = open_memstream(&data, &size);
  if (memory == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", path);
  }
  size_t got = 0;
  bool stored = true;
  while ((got = fread(chunk, 1, sizeof chunk, file)) > 0) {
    stored = fwrite(chunk, 1, got, memory) == got && stored;
  }
  stored = fclose(memory) == 0 && stored;
  if (ferror(file) || !stored) {
    free(data);
    return rft_fail(error, RFT_UNAVAILABLE, "%s: cannot be read: %s", path, strerror(errno));
  }
  *text = data;
  *length = size;
  return RFT_OK;
}

static int32_t read_file(const char *path, json_t **value, rft_error *error)
{
  FILE *const file = fopen(path, "rb");
  if (file == NULL) {
    return rft_fail(error, RFT_NOT_FOUND, "%s: cannot be opened: %s", path, strerror(errno));
  }
  char *text = NULL;
  size_t length = 0;
  int32_t code = read_stream(file, path, &text, &length, error);
  (void)fclose(file);
  if (code == RFT_OK) {
    code = yaml_parse(path, text, (int64_t)length, value, error);
    free(text);
  }
  return code;
}

// -------------------------------------------------------------------------------------- overrides

// The object at `name` inside `object`, made where there is none; NULL where something else is.
static json_t *enter(json_t *object, const char *name)
{
  json_t *const inner = json_object_get(object, name);
  if (inner == NULL || json_is_null(inner)) {
    json_t *const made = json_object();
    return json_object_set_new(object, name, made) == 0 ? made : NULL;
  }
  return json_is_object(inner) ? inner : NULL;
}

static int32_t set_path(json_t *root, const char *path, json_t *value, rft_error *error)
{
  json_t *object = root;
  char name[256];
  const char *rest = path;
  for (const char *dot = strchr(rest, '.'); dot != NULL; dot = strchr(rest, '.')) {
    const size_t length = (size_t)(dot - rest);
    if (length == 0 || length >= sizeof name) {
      return rft_fail(error, RFT_INVALID_ARGUMENT, "override %s: expected names joined by dots",
                      path);
    }
    memcpy(name, rest, length);
    name[length] = '\0';
    object = enter(object, name);
    if (object == NULL) {
      return rft_fail(error, RFT_INVALID_ARGUMENT, "override %s: %s is not a section", path, name);
    }
    rest = dot + 1;
  }
  if (*rest == '\0') {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "override %s: expected names joined by dots",
                    path);
  }
  return json_object_set(object, rest, value) == 0
             ? RFT_OK
             : rft_fail(error, RFT_INVALID_ARGUMENT, "override %s: not a valid name", path);
}

static int32_t apply(json_t *root, const config_override *override, rft_error *error)
{
  json_t *value = NULL;
  int32_t code = RFT_OK;
  if (override->literal) {
    value = json_string(override->value);
    code = value != NULL ? RFT_OK
                         : rft_fail(error, RFT_INVALID_ARGUMENT, "override %s: not valid UTF-8",
                                    override->path);
  } else {
    code = yaml_parse(override->path, override->value, (int64_t)strlen(override->value), &value,
                      error);
  }
  if (code == RFT_OK) {
    code = set_path(root, override->path, value, error);
  }
  json_decref(value);
  return code;
}

// --------------------------------------------------------------------------------------- sections

// Puts where a message belongs before it.
static int32_t fail_in(const char *path, const char *section, const rft_error *cause,
                       rft_error *error)
{
  return rft_fail(error, cause->code, "%s: %s%s%s", path, section, section[0] == '\0' ? "" : ": ",
                  cause->message);
}

static int32_t resolve_section(const char *section, const json_t *given, json_t **resolved,
                               rft_error *error)
{
  json_t *const schema = config_section_schema(section);
  char *const schema_text = rft_json_text(schema, 0);
  char *const text = rft_json_text(given, 0);
  const int32_t code =
      schema_text == NULL || text == NULL
          ? rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory")
          : rft_schema_resolve(schema_text, text, (int64_t)strlen(text), resolved, NULL, error);
  free(text);
  free(schema_text);
  json_decref(schema);
  return code;
}

// Takes the arguments of the policy loss out of the section: they have a schema of their own.
static int32_t take_args(json_t *root, json_t **args, rft_error *error)
{
  json_t *const section = json_object_get(root, "algorithm");
  json_t *const found = json_object_get(section, args_key);
  char brief[RFT_JSON_BRIEF_SIZE];
  if (found != NULL && !json_is_object(found) && !json_is_null(found)) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "config key \"%s\": expected an object, found %s",
                    args_key, rft_json_brief(brief, found));
  }
  *args = json_is_object(found) ? json_incref(found) : json_object();
  json_object_del(section, args_key);
  return RFT_OK;
}

// The section's keys, checked and completed, become a section of `document`. Section "" is what the
// others leave of `root`.
static int32_t take_section(const char *section, json_t *root, json_t *document, rft_error *error)
{
  const bool is_top = section[0] == '\0';
  json_t *const found = is_top ? root : json_object_get(root, section);
  json_t *const given = found == NULL || json_is_null(found) ? json_object() : json_incref(found);
  json_t *resolved = NULL;
  const int32_t code = resolve_section(section, given, &resolved, error);
  json_decref(given);
  if (code == RFT_OK && is_top) {
    json_object_update(document, resolved);
    json_decref(resolved);
  } else if (code == RFT_OK) {
    json_object_del(root, section);
    json_object_set_new(document, section, resolved);
  }
  return code;
}

// What may stand at the top: sections, and keys of section "".
static json_t *known_names(void)
{
  json_t *const known = json_object();
  for (int64_t i = 0; i < config_field_count; ++i) {
    const config_field *const field = &config_fields[i];
    json_object_set_new(known, field->section[0] == '\0' ? field->key : field->section,
                        json_object());
  }
  return known;
}

static int32_t check_names(const json_t *root, rft_error *error)
{
  if (!json_is_object(root)) {
    char found[RFT_JSON_BRIEF_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT, "expected sections, found %s",
                    rft_json_brief(found, root));
  }
  json_t *const known = known_names();
  int32_t code = RFT_OK;
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)root, key, value)
  {
    if (code == RFT_OK && json_object_get(known, key) == NULL) {
      char quoted[RFT_JSON_BRIEF_SIZE];
      const char *const nearest = rft_nearest_name(known, key);
      code = rft_fail(error, RFT_INVALID_ARGUMENT, "section %s is not known%s%s%s",
                      rft_json_quote(quoted, key), nearest == NULL ? "" : ": the nearest is \"",
                      nearest == NULL ? "" : nearest, nearest == NULL ? "" : "\"");
    }
  }
  json_decref(known);
  return code;
}

// ------------------------------------------------------------------------------------------ struct

static void fill_struct(const json_t *document, train_config *config)
{
  for (int64_t i = 0; i < config_field_count; ++i) {
    const config_field *const field = &config_fields[i];
    const json_t *const section =
        field->section[0] == '\0' ? document : json_object_get(document, field->section);
    const json_t *const value = json_object_get(section, field->key);
    char *const target = (char *)config + field->offset;
    switch (field->kind) {
    case FIELD_COUNT:
    case FIELD_INTEGER:
      *(int64_t *)(void *)target = json_integer_value(value);
      break;
    case FIELD_POSITIVE:
    case FIELD_NOT_NEGATIVE:
    case FIELD_FRACTION:
      *(double *)(void *)target = json_number_value(value);
      break;
    case FIELD_NAME:
    case FIELD_PATH:
    case FIELD_MODE:
    case FIELD_TASK:
      *(const char **)(void *)target = json_string_value(value);
      break;
    case FIELD_OBJECT:
      *(const json_t **)(void *)target = value;
      break;
    }
  }
}

// What no section can check alone.
static int32_t check_together(const train_config *config, rft_error *error)
{
  const int64_t sequences = config->prompts * config->samples;
  if (config->micro_batches > sequences) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "trainer: config key \"micro_batches\": expected at most prompts x samples = "
                    "%lld, found %lld",
                    (long long)sequences, (long long)config->micro_batches);
  }
  if (config->record != NULL && config->record_update > config->updates) {
    return rft_fail(
        error, RFT_INVALID_ARGUMENT,
        "output: config key \"record_update\": expected at most trainer.updates = %lld, "
        "found %lld",
        (long long)config->updates, (long long)config->record_update);
  }
  return RFT_OK;
}

// ------------------------------------------------------------------------------------------- whole

static int32_t resolve(const char *path, json_t *root, train_config *config, rft_error *error)
{
  rft_error cause = {.struct_size = sizeof cause};
  const char *section = "";
  json_t *args = NULL;
  json_t *const document = json_object();

  int32_t code = check_names(root, &cause);
  if (code == RFT_OK) {
    section = "algorithm";
    code = take_args(root, &args, &cause);
  }
  for (int64_t i = 0; code == RFT_OK && i < config_field_count; ++i) {
    if (i == 0 || strcmp(config_fields[i].section, section) != 0) {
      section = config_fields[i].section;
      code = take_section(section, root, document, &cause);
    }
  }
  train_config made = {.document = document};
  json_object_set_new(json_object_get(document, "algorithm"), args_key, args);
  if (code == RFT_OK) {
    section = "";
    fill_struct(document, &made);
    code = check_together(&made, &cause);
  }
  if (code != RFT_OK) {
    json_decref(document);
    return fail_in(path, section, &cause, error);
  }
  *config = made;
  return RFT_OK;
}

int32_t config_load(const char *path, const config_override *overrides, int64_t count,
                    train_config *config, rft_error *error)
{
  json_t *root = NULL;
  int32_t code = read_file(path, &root, error);
  if (code == RFT_OK && json_is_null(root)) {
    root = json_object();
  }
  for (int64_t i = 0; code == RFT_OK && i < count; ++i) {
    code = apply(root, &overrides[i], error);
  }
  if (code == RFT_OK) {
    code = resolve(path, root, config, error);
  }
  json_decref(root);
  return code;
}

void config_free(train_config *config)
{
  json_decref(config->document);
  *config = (train_config){0};
}

bool config_is_async(const train_config *config)
{
  return strcmp(config->mode, "async") == 0;
}

train_task config_task(const train_config *config)
{
  return strcmp(config->task_name, task_word_problems.name) == 0
             ? task_make(&task_word_problems, config->steps)
             : task_make(&task_addition, config->digits);
}
