// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // uselocale

#include "json.h"

#include "error.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// jansson has a buffer for the token that it reads, and when the buffer can't grow it takes the
// token to be a shorter one, or writes behind its end. So it first gets a string longer than any
// token of the text, whose last byte lies where the buffer has room, and it gets it byte by byte:
// only between two bytes does errno tell that an allocation has failed.
enum { PAD_SPARE = 8, TEXT_SPARE = 16, LEAST_PAD = 32 };

typedef struct padded_text {
  const char *text;
  int64_t length;
  int64_t pad;  ///< bytes of the string, without quotes
  int64_t next; ///< position in `["aaa...", TEXT]`, counted from the string's first byte
  bool starved; ///< an allocation has failed
} padded_text;

static int byte_at(const padded_text *source, int64_t position)
{
  static const char before[] = "[\"";
  static const char between[] = "\",";
  if (position < 0) {
    return before[position + 2];
  }
  if (position < source->pad + 2) {
    return position < source->pad ? 'a' : between[position - source->pad];
  }
  const int64_t index = position - source->pad - 2;
  return index < source->length    ? (unsigned char)source->text[index]
         : index == source->length ? ']'
                                   : -1;
}

static size_t read_byte(void *buffer, size_t size, void *context)
{
  padded_text *const source = context;
  source->starved = source->starved || errno == ENOMEM;
  const int byte = byte_at(source, source->next++);
  if (size == 0 || source->starved || byte == -1) {
    return 0;
  }
  *(char *)buffer = (char)byte;
  return 1;
}

enum { LOAD_FLAGS = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY };

// The value, or NULL: then the text is wrong, or memory ran out.
static json_t *load_padded(const char *text, int64_t length, bool *starved)
{
  padded_text source = {.text = text, .length = length, .pad = LEAST_PAD, .next = -2};
  while (source.pad < length + TEXT_SPARE) {
    source.pad *= 2;
  }
  source.pad -= PAD_SPARE;
  errno = 0;
  json_t *const both = json_load_callback(read_byte, &source, LOAD_FLAGS, NULL);
  *starved = source.starved || (both == NULL && errno == ENOMEM);
  json_t *const value = json_array_size(both) == 2 ? json_incref(json_array_get(both, 1)) : NULL;
  json_decref(both);
  return value;
}

// jansson reads numbers by the locale's decimal point, and stops the process where that point is
// longer than a byte. The C locale is set for this thread alone and only while jansson parses.
static json_t *load_in_c_locale(const char *text, int64_t length, bool *starved,
                                json_error_t *problem)
{
  const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  const locale_t previous = uselocale(c_locale);
  json_t *value = load_padded(text, length, starved);
  if (value == NULL && !*starved) {
    value = json_loadb(text, (size_t)length, LOAD_FLAGS, problem); // says what is wrong
  }
  uselocale(previous);
  freelocale(c_locale);
  return value;
}

// The text of the key that ends just before `end`. jansson names a duplicated key only where it is
// short.
static const char *key_before(const char *text, int end, int *length)
{
  const int close = end - 1;
  int start = close - 1;
  for (; start > 0; --start) {
    int backslashes = 0;
    while (backslashes < start && text[start - 1 - backslashes] == '\\') {
      ++backslashes;
    }
    if (text[start] == '"' && backslashes % 2 == 0) {
      break;
    }
  }
  *length = close - start - 1;
  return text + start + 1;
}

static int32_t fail_parse(const char *what, const char *text, const json_error_t *problem,
                          rft_error *error)
{
  if (problem->text[0] == '\0') {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory while reading JSON", what);
  }
  if (json_error_code(problem) == json_error_duplicate_key) {
    int length = 0;
    const char *const key = key_before(text, problem->position, &length);
    const int shown = length > 60 ? 60 : length;
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s key \"%.*s\" is given twice (line %d)", what,
                    shown, key, problem->line);
  }
  return rft_fail(error, RFT_INVALID_ARGUMENT, "%s is not valid JSON: line %d, column %d: %s", what,
                  problem->line, problem->column, problem->text);
}

int32_t rft_json_parse(const char *what, const char *text, int64_t length, json_t **value,
                       rft_error *error)
{
  if (text == NULL || length < 0 || length > INT_MAX) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected JSON text of at most %d bytes, found %s of %" PRId64, what,
                    INT_MAX, text == NULL ? "a null pointer and a length" : "a length", length);
  }
  const char *const nul = memchr(text, '\0', (size_t)length);
  if (nul != NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s is not valid JSON: byte %td is NUL", what,
                    nul - text);
  }
  json_error_t problem = {.line = 0};
  bool starved = false;
  json_t *const parsed = load_in_c_locale(text, length, &starved, &problem);
  if (starved) {
    json_decref(parsed);
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory while reading JSON", what);
  }
  if (parsed == NULL) {
    return fail_parse(what, text, &problem, error);
  }
  *value = parsed;
  return RFT_OK;
}

// -------------------------------------------------------------------------------------------- text

static void write_value(FILE *out, const json_t *value, int indent, int depth);

static void write_string(FILE *out, const char *text)
{
  fputc('"', out);
  for (const char *c = text; *c != '\0'; ++c) {
    const unsigned char byte = (unsigned char)*c;
    if (byte == '"' || byte == '\\') {
      fprintf(out, "\\%c", byte);
    } else if (byte == '\n') {
      fputs("\\n", out);
    } else if (byte < 0x20U || byte == 0x7FU) {
      fprintf(out, "\\u%04x", byte);
    } else {
      fputc(byte, out);
    }
  }
  fputc('"', out);
}

static void write_real(FILE *out, double value)
{
  if (!isfinite(value)) {
    fputs("null", out);
    return;
  }
  char text[RFT_NUMBER_TEXT_SIZE];
  rft_number_text(text, value);
  fputs(text, out);
  if (strpbrk(text, ".e") == NULL) {
    fputs(".0", out);
  }
}

static void write_break(FILE *out, int indent, int depth)
{
  if (indent > 0) {
    fprintf(out, "\n%*s", indent * depth, "");
  }
}

static void write_object(FILE *out, const json_t *object, int indent, int depth)
{
  const char *separator = "";
  const char *key = NULL;
  json_t *value = NULL;
  fputc('{', out);
  json_object_foreach((json_t *)object, key, value)
  {
    fputs(separator, out);
    separator = indent > 0 ? "," : ", ";
    write_break(out, indent, depth + 1);
    write_string(out, key);
    fputs(": ", out);
    write_value(out, value, indent, depth + 1);
  }
  if (json_object_size(object) > 0) {
    write_break(out, indent, depth);
  }
  fputc('}', out);
}

static bool holds_containers(const json_t *array)
{
  const json_t *const first = json_array_get(array, 0);
  return json_is_object(first) || json_is_array(first);
}

// A list of names or numbers stays on one line.
static void write_array(FILE *out, const json_t *array, int indent, int depth)
{
  const int own_indent = holds_containers(array) ? indent : 0;
  fputc('[', out);
  for (size_t i = 0; i < json_array_size(array); ++i) {
    fputs(i == 0 ? "" : own_indent > 0 ? "," : ", ", out);
    write_break(out, own_indent, depth + 1);
    write_value(out, json_array_get(array, i), own_indent, depth + 1);
  }
  write_break(out, own_indent, depth);
  fputc(']', out);
}

static void write_value(FILE *out, const json_t *value, int indent, int depth)
{
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    write_object(out, value, indent, depth);
    break;
  case JSON_ARRAY:
    write_array(out, value, indent, depth);
    break;
  case JSON_STRING:
    write_string(out, json_string_value(value));
    break;
  case JSON_INTEGER:
    fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    break;
  case JSON_REAL:
    write_real(out, json_real_value(value));
    break;
  case JSON_TRUE:
    fputs("true", out);
    break;
  case JSON_FALSE:
    fputs("false", out);
    break;
  case JSON_NULL:
    fputs("null", out);
    break;
  }
}

char *rft_json_text(const json_t *value, int indent)
{
  char *text = NULL;
  size_t length = 0;
  FILE *const out = open_memstream(&text, &length);
  if (out == NULL) {
    return NULL;
  }
  write_value(out, value, indent, 0);
  const int failed = ferror(out);
  if (fclose(out) != 0 || failed) {
    free(text);
    return NULL;
  }
  return text;
}

int32_t rft_json_take_text(json_t *value, int indent, char **text, rft_error *error)
{
  char *const made = value == NULL ? NULL : rft_json_text(value, indent);
  json_decref(value);
  if (made == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for JSON text");
  }
  *text = made;
  return RFT_OK;
}

// ---------------------------------------------------------------------------------------- messages

#define BRIEF_TEXT_BYTES 40

const char *rft_json_quote(char text[RFT_JSON_BRIEF_SIZE], const char *name)
{
  size_t used = 0;
  text[used++] = '"';
  for (; *name != '\0' && used < BRIEF_TEXT_BYTES; ++name) {
    const bool is_control = (unsigned char)*name < 0x20U || *name == 0x7F;
    text[used] = *name;
    if (is_control) {
      text[used] = '?';
    }
    ++used;
  }
  // The rest of a character that the cut went through.
  while (((unsigned char)*name & 0xC0U) == 0x80U && used < BRIEF_TEXT_BYTES + 3) {
    text[used++] = *name++;
  }
  snprintf(text + used, RFT_JSON_BRIEF_SIZE - used, "%s\"", *name == '\0' ? "" : "...");
  return text;
}

const char *rft_json_brief(char text[RFT_JSON_BRIEF_SIZE], const json_t *value)
{
  char part[RFT_JSON_BRIEF_SIZE];
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    return strcpy(text, "an object");
  case JSON_ARRAY:
    return strcpy(text, "an array");
  case JSON_STRING:
    snprintf(text, RFT_JSON_BRIEF_SIZE, "the string %s",
             rft_json_quote(part, json_string_value(value)));
    return text;
  case JSON_INTEGER:
    snprintf(text, RFT_JSON_BRIEF_SIZE, "the number %" JSON_INTEGER_FORMAT,
             json_integer_value(value));
    return text;
  case JSON_REAL:
    snprintf(text, RFT_JSON_BRIEF_SIZE, "the number %s",
             rft_number_text(part, json_real_value(value)));
    return text;
  case JSON_TRUE:
    return strcpy(text, "true");
  case JSON_FALSE:
    return strcpy(text, "false");
  case JSON_NULL:
    break;
  }
  return strcpy(text, "null");
}
