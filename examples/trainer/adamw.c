// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "adamw.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

bool adamw_init(train_adamw *self, int64_t count)
{
  *self = (train_adamw){.count = count,
                        .first = calloc((size_t)count, sizeof(float)),
                        .second = calloc((size_t)count, sizeof(float))};
  if (self->first == NULL || self->second == NULL) {
    adamw_free(self);
    return false;
  }
  return true;
}

void adamw_free(train_adamw *self)
{
  free(self->first);
  free(self->second);
  *self = (train_adamw){0};
}

static double norm(const float *values, int64_t count)
{
  double squares = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    squares += (double)values[i] * (double)values[i];
  }
  return sqrt(squares);
}

double adamw_step(train_adamw *self, const adamw_options *options, float *parameters,
                  const float *gradient)
{
  const double length = norm(gradient, self->count);
  const bool clip = options->max_norm > 0.0 && length > options->max_norm;
  const float factor = clip ? (float)(options->max_norm / length) : 1.0F;

  self->step += 1;
  const double bias1 = 1.0 - pow(options->beta1, (double)self->step);
  const double bias2 = 1.0 - pow(options->beta2, (double)self->step);
  const float beta1 = (float)options->beta1;
  const float beta2 = (float)options->beta2;
  const float rate = (float)(options->learning_rate / bias1);
  const float spread = (float)(1.0 / sqrt(bias2));
  const float epsilon = (float)options->epsilon;
  const float decay = (float)(1.0 - options->learning_rate * options->weight_decay);

  for (int64_t i = 0; i < self->count; ++i) {
    const float g = gradient[i] * factor;
    self->first[i] = beta1 * self->first[i] + (1.0F - beta1) * g;
    self->second[i] = beta2 * self->second[i] + (1.0F - beta2) * g * g;
    const float step = rate * self->first[i] / (sqrtf(self->second[i]) * spread + epsilon);
    parameters[i] = decay * parameters[i] - step;
  }
  return length;
}
