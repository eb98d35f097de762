// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "yaml_reader.h"

#include "support/error.h"
#include "support/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { MAX_DEPTH = 16 };

typedef struct yaml_reader {
  yaml_parser_t parser;
  const char *what;
  rft_error *error;
  int32_t code;
} yaml_reader;

// ----------------------------------------------------------------------------------------- errors

static json_t *fail_at(yaml_reader *reader, yaml_mark_t mark, const char *problem,
                       const char *detail)
{
  reader->code = rft_fail(reader->error, RFT_INVALID_ARGUMENT, "%s, line %zu: %s%s", reader->what,
                          mark.line + 1, problem, detail);
  return NULL;
}

static json_t *checked(yaml_reader *reader, json_t *value)
{
  if (value == NULL) {
    reader->code =
        rft_fail(reader->error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", reader->what);
  }
  return value;
}

static bool stored(yaml_reader *reader, int status)
{
  if (status != 0) {
    checked(reader, NULL);
  }
  return status == 0;
}

// The collection, or NULL where reading it has failed.
static json_t *whole(const yaml_reader *reader, json_t *collection)
{
  if (reader->code == RFT_OK) {
    return collection;
  }
  json_decref(collection);
  return NULL;
}

static bool next_event(yaml_reader *reader, yaml_event_t *event)
{
  if (yaml_parser_parse(&reader->parser, event)) {
    return true;
  }
  const char *const problem = reader->parser.problem;
  const bool has_mark = reader->parser.error != YAML_READER_ERROR;
  fail_at(reader, has_mark ? reader->parser.problem_mark : reader->parser.mark,
          "not valid YAML: ", problem == NULL ? "out of memory" : problem);
  return false;
}

// ---------------------------------------------------------------------------------------- scalars

static const char *skip_digits(const char *text)
{
  while (isdigit((unsigned char)*text)) {
    ++text;
  }
  return text;
}

static const char *skip_sign(const char *text)
{
  return *text == '-' || *text == '+' ? text + 1 : text;
}

// [-+]? [0-9]+
static bool is_integer(const char *text)
{
  const char *const digits = skip_sign(text);
  const char *const end = skip_digits(digits);
  return end != digits && *end == '\0';
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
static bool is_real(const char *text)
{
  const char *const whole = skip_sign(text);
  const char *end = skip_digits(whole);
  bool has_digits = end != whole;
  if (*end == '.') {
    const char *const fraction = end + 1;
    end = skip_digits(fraction);
    has_digits = has_digits || end != fraction;
  }
  if (has_digits && (*end == 'e' || *end == 'E')) {
    const char *const exponent = skip_sign(end + 1);
    end = skip_digits(exponent);
    has_digits = end != exponent;
  }
  return has_digits && *end == '\0';
}

static bool is_one_of(const char *text, const char *const *words)
{
  for (; *words != NULL; ++words) {
    if (strcmp(text, *words) == 0) {
      return true;
    }
  }
  return false;
}

static json_t *read_plain(yaml_reader *reader, const yaml_event_t *event)
{
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
  static const char *const trues[] = {"true", "True", "TRUE", NULL};
  static const char *const falses[] = {"false", "False", "FALSE", NULL};
  const char *const text = (const char *)event->data.scalar.value;

  if (is_one_of(text, nulls)) {
    return json_null();
  }
  if (is_one_of(text, trues) || is_one_of(text, falses)) {
    return json_boolean(is_one_of(text, trues));
  }
  errno = 0;
  if (is_integer(text)) {
    const long long number = strtoll(text, NULL, 10);
    return errno == 0 ? checked(reader, json_integer(number))
                      : fail_at(reader, event->start_mark, "integer out of range: ", text);
  }
  if (is_real(text)) {
    const double number = strtod(text, NULL);
    return isfinite(number) ? checked(reader, json_real(number))
                            : fail_at(reader, event->start_mark, "number out of range: ", text);
  }
  return checked(reader, json_string(text));
}

static json_t *read_scalar(yaml_reader *reader, const yaml_event_t *event)
{
  const char *const text = (const char *)event->data.scalar.value;
  if (event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL) {
    return fail_at(reader, event->start_mark, "anchors and tags are not supported", "");
  }
  if (strlen(text) != event->data.scalar.length) {
    return fail_at(reader, event->start_mark, "a NUL character in a string", "");
  }
  return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? read_plain(reader, event)
                                                             : checked(reader, json_string(text));
}

// ------------------------------------------------------------------------------------ collections

static json_t *read_node(yaml_reader *reader, const yaml_event_t *event, int depth);

static bool read_pair(yaml_reader *reader, const yaml_event_t *key, json_t *object, int depth)
{
  if (key->type != YAML_SCALAR_EVENT) {
    fail_at(reader, key->start_mark, "a key must be a plain name", "");
    return false;
  }
  const char *const name = (const char *)key->data.scalar.value;
  char quoted[RFT_JSON_BRIEF_SIZE];
  if (json_object_get(object, name) != NULL) {
    fail_at(reader, key->start_mark, "duplicated key ", rft_json_quote(quoted, name));
    return false;
  }
  yaml_event_t event;
  if (!next_event(reader, &event)) {
    return false;
  }
  json_t *const value = read_node(reader, &event, depth);
  yaml_event_delete(&event);
  return value != NULL && stored(reader, json_object_set_new(object, name, value));
}

static json_t *read_mapping(yaml_reader *reader, int depth)
{
  json_t *const object = checked(reader, json_object());
  bool more = object != NULL;
  while (more) {
    yaml_event_t event;
    if (!next_event(reader, &event)) {
      break;
    }
    more = event.type != YAML_MAPPING_END_EVENT && read_pair(reader, &event, object, depth);
    yaml_event_delete(&event);
  }
  return whole(reader, object);
}

static json_t *read_sequence(yaml_reader *reader, int depth)
{
  json_t *const array = checked(reader, json_array());
  bool more = array != NULL;
  while (more) {
    yaml_event_t event;
    if (!next_event(reader, &event)) {
      break;
    }
    more = event.type != YAML_SEQUENCE_END_EVENT;
    if (more) {
      json_t *const value = read_node(reader, &event, depth);
      more = value != NULL && stored(reader, json_array_append_new(array, value));
    }
    yaml_event_delete(&event);
  }
  return whole(reader, array);
}

// The value that starts with `event`, or NULL with reader->code set.
static json_t *read_node(yaml_reader *reader, const yaml_event_t *event, int depth)
{
  if (depth == MAX_DEPTH) {
    return fail_at(reader, event->start_mark, "nested too deeply", "");
  }
  switch (event->type) {
  case YAML_SCALAR_EVENT:
    return read_scalar(reader, event);
  case YAML_MAPPING_START_EVENT:
    return event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL
               ? fail_at(reader, event->start_mark, "anchors and tags are not supported", "")
               : read_mapping(reader, depth + 1);
  case YAML_SEQUENCE_START_EVENT:
    return event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL
               ? fail_at(reader, event->start_mark, "anchors and tags are not supported", "")
               : read_sequence(reader, depth + 1);
  default:
    return fail_at(reader, event->start_mark, "aliases are not supported", "");
  }
}

static json_t *read_document(yaml_reader *reader)
{
  yaml_event_t event;
  json_t *value = NULL;
  bool more = true;
  while (more && next_event(reader, &event)) {
    switch (event.type) {
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
      break;
    case YAML_DOCUMENT_START_EVENT:
      if (value != NULL) {
        fail_at(reader, event.start_mark, "expected one document, found another", "");
      }
      break;
    case YAML_STREAM_END_EVENT:
      value = value == NULL ? json_null() : value;
      more = false;
      break;
    default:
      value = read_node(reader, &event, 0);
    }
    more = more && reader->code == RFT_OK;
    yaml_event_delete(&event);
  }
  return whole(reader, value);
}

int32_t yaml_parse(const char *what, const char *text, int64_t length, json_t **value,
                   rft_error *error)
{
  yaml_reader reader = {.what = what, .error = error};
  if (!yaml_parser_initialize(&reader.parser)) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", what);
  }
  yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, (size_t)length);
  json_t *const parsed = read_document(&reader);
  yaml_parser_delete(&reader.parser);
  if (reader.code == RFT_OK) {
    *value = parsed;
  }
  return reader.code;
}
