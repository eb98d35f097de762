// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// AdamW (Loshchilov, Hutter: "Decoupled weight decay regularization", arXiv 1711.05101) over flat
// float arrays, with the gradient clipped by its global norm.

#ifndef TRAIN_ADAMW_H
#define TRAIN_ADAMW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct adamw_options {
  double learning_rate;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  double max_norm; // clip the gradient to this norm; 0: don't
} adamw_options;

typedef struct train_adamw {
  int64_t count;
  int64_t step;  // steps taken
  float *first;  // [count] moving mean of the gradient
  float *second; // [count] moving mean of its square
} train_adamw;

// All zero at `count` parameters; false where there is no memory.
bool adamw_init(train_adamw *self, int64_t count);
void adamw_free(train_adamw *self);

// One step on parameters[count]. Returns the gradient's norm before clipping.
double adamw_step(train_adamw *self, const adamw_options *options, float *parameters,
                  const float *gradient);

#endif // TRAIN_ADAMW_H
