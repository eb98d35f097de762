// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

/// @file safetensors.h
/// Tensors in files, by name: the safetensors format, read and written by librft_host.

#ifndef RFT_SAFETENSORS_H
#define RFT_SAFETENSORS_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rft_safetensors rft_safetensors;

/// A tensor to write: compact, row-major, on the CPU.
typedef struct rft_named_tensor {
  const char *name;
  const rft_tensor *tensor;
} rft_named_tensor;

/// Opens a file and checks its header whole: names, dtypes, shapes, offsets without gap or overlap,
/// and the file's length. The message names file and tensor. [thread-safe]
int32_t rft_safetensors_open(const char *path, rft_safetensors **file, rft_error *error);

/// Closes a file; its tensors are gone. NULL is ignored.
void rft_safetensors_close(rft_safetensors *file);

/// Number of tensors, and their names in the header's order.
int64_t rft_safetensors_count(const rft_safetensors *file);
const char *rft_safetensors_name(const rft_safetensors *file, int64_t index);

/// The tensor of that name, or NULL. Read-only memory, alive until close.
const rft_tensor *rft_safetensors_tensor(const rft_safetensors *file, const char *name);

/// The value of a key of __metadata__, or NULL.
const char *rft_safetensors_metadata(const rft_safetensors *file, const char *key);

/// Writes a file: whole under a temporary name beside `path`, flushed to disk, then renamed, so
/// that `path` is at any time the old file or the new one. `metadata`: JSON object text whose
/// values are strings, NULL: none. Supported dtypes: bool, int8-64, uint8-64, float16, bfloat16,
/// float32, float64. [thread-safe]
int32_t rft_safetensors_write(const char *path, const rft_named_tensor *tensors, int64_t count,
                              const char *metadata, rft_error *error);

#ifdef __cplusplus
}
#endif

#endif // RFT_SAFETENSORS_H
