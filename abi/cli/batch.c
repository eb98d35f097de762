// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "batch.h"

#include "cli.h"
#include "support/error.h"
#include "support/json.h"
#include "support/phrase.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_TEXT_SIZE = 96 };

static const char *shape_text(char text[SHAPE_TEXT_SIZE], const rft_tensor *tensor)
{
  rft_phrase out = rft_phrase_in(text, SHAPE_TEXT_SIZE);
  rft_phrase_add(&out, "[");
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    rft_phrase_add(&out, "%s%" PRId64, i == 0 ? "" : ", ", tensor->shape[i]);
  }
  rft_phrase_add(&out, "]");
  return text;
}

// ----------------------------------------------------------------------------------------- tensors

static int32_t find_tensor(const cli_batch *batch, const char *name, const rft_tensor **tensor,
                           rft_error *error)
{
  *tensor = rft_safetensors_tensor(batch->file, name);
  if (*tensor != NULL) {
    return RFT_OK;
  }
  char found[RFT_ERROR_MESSAGE_SIZE];
  char quoted[RFT_JSON_BRIEF_SIZE];
  rft_phrase list = rft_phrase_in(found, sizeof found / 2);
  const int64_t count = rft_safetensors_count(batch->file);
  for (int64_t i = 0; i < count; ++i) {
    rft_phrase_add(&list, "%s%s", i == 0 ? "" : ", ",
                   rft_json_quote(quoted, rft_safetensors_name(batch->file, i)));
  }
  return rft_fail(error, RFT_NOT_FOUND, "%s: expected a tensor \"%s\", found %s", batch->path, name,
                  count == 0 ? "none at all" : found);
}

static int32_t find_tensors(cli_batch *batch, rft_error *error)
{
  batch->proximal_logprob = rft_safetensors_tensor(batch->file, "proximal_logprob");
  batch->cu_seqlens = rft_safetensors_tensor(batch->file, "cu_seqlens");
  int32_t code = find_tensor(batch, "logprob", &batch->logprob, error);
  if (code == RFT_OK) {
    code = find_tensor(batch, "old_logprob", &batch->old_logprob, error);
  }
  if (code == RFT_OK) {
    code = find_tensor(batch, "advantages", &batch->advantages, error);
  }
  return code == RFT_OK ? find_tensor(batch, "mask", &batch->mask, error) : code;
}

// ------------------------------------------------------------------------------------------ layout

static int64_t integer_at(const rft_tensor *tensor, int64_t index)
{
  return tensor->dtype.bits == 64 ? ((const int64_t *)tensor->data)[index]
                                  : ((const int32_t *)tensor->data)[index];
}

// The sequences of a packed batch. Without cu_seqlens it is one.
static int32_t read_offsets(cli_batch *batch, rft_error *error)
{
  const rft_tensor *const cu_seqlens = batch->cu_seqlens;
  const int64_t tokens = batch->logprob->shape[0];
  batch->rows = cu_seqlens == NULL ? 1 : cu_seqlens->shape[0] - 1;
  batch->offsets = cli_allocate((size_t)batch->rows + 1, sizeof *batch->offsets);
  batch->offsets[batch->rows] = tokens;
  for (int64_t i = 0; cu_seqlens != NULL && i <= batch->rows; ++i) {
    const int64_t offset = integer_at(cu_seqlens, i);
    const int64_t least = i == 0 ? 0 : batch->offsets[i - 1];
    const int64_t most = i == 0 ? 0 : tokens;
    if (offset < least || offset > most || (i == batch->rows && offset != tokens)) {
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "%s: tensor \"cu_seqlens\": expected values that start at 0, never fall and "
                      "end with %" PRId64 ", found %" PRId64 " at index %" PRId64,
                      batch->path, tokens, offset, i);
    }
    batch->offsets[i] = offset;
  }
  return RFT_OK;
}

static int32_t check_cu_seqlens(const cli_batch *batch, rft_error *error)
{
  const rft_tensor *const cu_seqlens = batch->cu_seqlens;
  char shape[SHAPE_TEXT_SIZE];
  if (cu_seqlens == NULL) {
    return RFT_OK;
  }
  if (batch->logprob->ndim != 1) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: \"cu_seqlens\" goes with a \"logprob\" of shape [n], found %s",
                    batch->path, shape_text(shape, batch->logprob));
  }
  if (cu_seqlens->dtype.code != RFT_DTYPE_INT || cu_seqlens->dtype.bits < 32 ||
      cu_seqlens->ndim != 1 || cu_seqlens->shape[0] < 1) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: tensor \"cu_seqlens\": expected I32 or I64 of shape [sequences + 1], "
                    "found %d-bit elements of shape %s",
                    batch->path, cu_seqlens->dtype.bits, shape_text(shape, cu_seqlens));
  }
  return RFT_OK;
}

static bool has_shape_of(const rft_tensor *a, const rft_tensor *b)
{
  return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static bool is_by_sequence(const cli_batch *batch, const rft_tensor *tensor)
{
  return (tensor->ndim == 1 || (tensor->ndim == 2 && tensor->shape[1] == 1)) &&
         tensor->shape[0] == batch->rows;
}

// A split takes the same rows of every tensor: one that has other rows would lose or borrow some.
static int32_t check_shape(const cli_batch *batch, const char *name, const rft_tensor *tensor,
                           bool by_sequence, rft_error *error)
{
  if (tensor == NULL || has_shape_of(tensor, batch->logprob) ||
      (by_sequence && is_by_sequence(batch, tensor))) {
    return RFT_OK;
  }
  char expected[SHAPE_TEXT_SIZE];
  char found[SHAPE_TEXT_SIZE];
  return rft_fail(error, RFT_INVALID_ARGUMENT,
                  "%s: tensor \"%s\": expected the shape of logprob, %s%s, found %s", batch->path,
                  name, shape_text(expected, batch->logprob),
                  by_sequence ? ", or one value a sequence" : "", shape_text(found, tensor));
}

static int32_t check_layout(cli_batch *batch, rft_error *error)
{
  char shape[SHAPE_TEXT_SIZE];
  const rft_tensor *const logprob = batch->logprob;
  if (logprob->ndim != 1 && logprob->ndim != 2) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: tensor \"logprob\": expected a shape [B, T] or [n], found %s", batch->path,
                    shape_text(shape, logprob));
  }
  int32_t code = check_cu_seqlens(batch, error);
  if (code == RFT_OK && logprob->ndim == 1) {
    code = read_offsets(batch, error);
  } else {
    batch->rows = logprob->shape[0];
    batch->columns = logprob->shape[logprob->ndim - 1];
  }
  const struct {
    const char *name;
    const rft_tensor *tensor;
    bool by_sequence;
  } others[] = {{"old_logprob", batch->old_logprob, false},
                {"proximal_logprob", batch->proximal_logprob, false},
                {"advantages", batch->advantages, true},
                {"mask", batch->mask, false}};
  for (size_t i = 0; code == RFT_OK && i < sizeof others / sizeof others[0]; ++i) {
    code = check_shape(batch, others[i].name, others[i].tensor, others[i].by_sequence, error);
  }
  return code;
}

int32_t cli_batch_open(const char *path, cli_batch *batch, rft_error *error)
{
  *batch = (cli_batch){.path = path};
  int32_t code = rft_safetensors_open(path, &batch->file, error);
  if (code == RFT_OK) {
    code = find_tensors(batch, error);
  }
  if (code == RFT_OK) {
    code = check_layout(batch, error);
  }
  if (code != RFT_OK) {
    cli_batch_close(batch);
  }
  return code;
}

void cli_batch_close(cli_batch *batch)
{
  rft_safetensors_close(batch->file);
  free(batch->offsets);
  *batch = (cli_batch){.path = NULL};
}

int64_t cli_batch_positions(const cli_batch *batch, int64_t rows)
{
  return batch->offsets != NULL ? batch->offsets[rows] : rows * batch->columns;
}

// ------------------------------------------------------------------------------------------ slices

// The tensor whose rows [first, first + rows) are meant, as a view of the same memory.
static const rft_tensor *slice_rows(cli_slice *slice, int index, const rft_tensor *whole,
                                    int64_t first, int64_t rows)
{
  if (whole == NULL) {
    return NULL;
  }
  rft_tensor *const view = &slice->tensors[index];
  const int64_t width = whole->ndim == 2 ? whole->shape[1] : 1;
  *view = *whole;
  view->shape = slice->shapes[index];
  view->shape[0] = rows;
  view->shape[1] = width;
  view->byte_offset += (uint64_t)(first * width) * (whole->dtype.bits / 8U);
  return view;
}

// Advantages of packed sequences: [n], or one a sequence. The latter is passed as [S,1]: with as
// many tokens as sequences in a slice, [S] would be taken for [n].
static const rft_tensor *slice_advantages(const cli_batch *batch, cli_slice *slice, int index,
                                          int64_t first, int64_t rows)
{
  const rft_tensor *const whole = batch->advantages;
  const int64_t tokens = cli_batch_positions(batch, first + rows) - slice->position;
  if (batch->offsets == NULL) {
    return slice_rows(slice, index, whole, first, rows);
  }
  if (has_shape_of(whole, batch->logprob)) {
    return slice_rows(slice, index, whole, slice->position, tokens);
  }
  slice_rows(slice, index, whole, first, rows);
  slice->tensors[index].ndim = 2;
  return &slice->tensors[index];
}

static const rft_tensor *slice_cu_seqlens(const cli_batch *batch, cli_slice *slice, int index,
                                          int64_t first, int64_t rows)
{
  if (batch->cu_seqlens == NULL || batch->offsets == NULL) {
    return NULL;
  }
  slice->cu_seqlens = cli_allocate((size_t)rows + 1, sizeof *slice->cu_seqlens);
  for (int64_t i = 0; i <= rows; ++i) {
    slice->cu_seqlens[i] = batch->offsets[first + i] - slice->position;
  }
  slice->shapes[index][0] = rows + 1;
  slice->tensors[index] = (rft_tensor){.data = slice->cu_seqlens,
                                       .device = {.type = RFT_DEVICE_CPU},
                                       .ndim = 1,
                                       .dtype = {RFT_DTYPE_INT, 64, 1},
                                       .shape = slice->shapes[index]};
  return &slice->tensors[index];
}

void cli_slice_make(const cli_batch *batch, int64_t first, int64_t rows, cli_slice *slice)
{
  const bool packed = batch->offsets != NULL;
  *slice = (cli_slice){.position = cli_batch_positions(batch, first)};
  const int64_t start = packed ? slice->position : first;
  const int64_t count = packed ? cli_batch_positions(batch, first + rows) - slice->position : rows;
  slice->batch = (rft_batch){
      .struct_size = RFT_STRUCT_SIZE(rft_batch, stream),
      .logprob = slice_rows(slice, 0, batch->logprob, start, count),
      .old_logprob = slice_rows(slice, 1, batch->old_logprob, start, count),
      .proximal_logprob = slice_rows(slice, 2, batch->proximal_logprob, start, count),
      .advantages = slice_advantages(batch, slice, 3, first, rows),
      .mask = slice_rows(slice, 4, batch->mask, start, count),
      .cu_seqlens = slice_cu_seqlens(batch, slice, 5, first, rows),
  };
}

void cli_slice_free(cli_slice *slice)
{
  free(slice->cu_seqlens);
}

rft_tensor cli_slice_view(const cli_slice *slice, void *buffer, rft_dtype dtype)
{
  rft_tensor view = slice->tensors[0];
  view.data = buffer;
  view.dtype = dtype;
  view.byte_offset = (uint64_t)slice->position * (dtype.bits / 8U);
  return view;
}
