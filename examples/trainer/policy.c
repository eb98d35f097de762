// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "policy.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const tensor_names[POLICY_TENSORS] = {"embedding", "w1", "b1", "w2",
                                                         "b2",        "w3", "b3"};

const char *policy_tensor_name(int tensor)
{
  return tensor_names[tensor];
}

int32_t policy_tensor_shape(const policy_shape *shape, int tensor, int64_t dimensions[2])
{
  const int64_t width = shape->slots * shape->embedding;
  const int64_t shapes[POLICY_TENSORS][2] = {
      [POLICY_EMBEDDING] = {shape->symbols, shape->embedding},
      [POLICY_W1] = {width, shape->hidden},
      [POLICY_B1] = {shape->hidden, 0},
      [POLICY_W2] = {shape->hidden, shape->hidden},
      [POLICY_B2] = {shape->hidden, 0},
      [POLICY_W3] = {shape->hidden, POLICY_ACTIONS},
      [POLICY_B3] = {POLICY_ACTIONS, 0},
  };
  dimensions[0] = shapes[tensor][0];
  dimensions[1] = shapes[tensor][1];
  return dimensions[1] == 0 ? 1 : 2;
}

static void fill_uniform(float *values, int64_t count, double bound, train_rng *generator)
{
  for (int64_t i = 0; i < count; ++i) {
    values[i] = (float)((2.0 * rng_uniform(generator) - 1.0) * bound);
  }
}

// Biases start at zero, embeddings at unit scale, weights so that a relu layer keeps the variance
// (He et al., arXiv 1502.01852).
static void init_parameters(train_policy *self, uint64_t seed)
{
  train_rng generator = rng_make(seed, RNG_INIT, 0);
  memset(self->parameters, 0, (size_t)self->count * sizeof(float));
  for (int tensor = 0; tensor < POLICY_TENSORS; ++tensor) {
    int64_t dimensions[2];
    if (policy_tensor_shape(&self->shape, tensor, dimensions) == 1) {
      continue;
    }
    const double bound = tensor == POLICY_EMBEDDING ? 1.0 : sqrt(6.0 / (double)dimensions[0]);
    fill_uniform(self->parameters + self->offset[tensor], dimensions[0] * dimensions[1], bound,
                 &generator);
  }
}

bool policy_init(train_policy *self, policy_shape shape, uint64_t seed)
{
  *self = (train_policy){.shape = shape};
  for (int tensor = 0; tensor < POLICY_TENSORS; ++tensor) {
    int64_t dimensions[2];
    const bool is_vector = policy_tensor_shape(&shape, tensor, dimensions) == 1;
    self->offset[tensor] = self->count;
    self->count += is_vector ? dimensions[0] : dimensions[0] * dimensions[1];
  }
  self->offset[POLICY_TENSORS] = self->count;
  self->parameters = malloc((size_t)self->count * sizeof(float));
  if (self->parameters == NULL) {
    return false;
  }
  init_parameters(self, seed);
  return true;
}

void policy_free(train_policy *self)
{
  free(self->parameters);
  *self = (train_policy){0};
}

bool policy_workspace_init(policy_workspace *self, policy_shape shape, int64_t rows)
{
  const int64_t width = shape.slots * shape.embedding;
  const int64_t row = 2 * (width + 2 * shape.hidden + POLICY_ACTIONS);
  *self =
      (policy_workspace){.capacity = rows, .memory = calloc((size_t)(rows * row), sizeof(float))};
  if (self->memory == NULL) {
    return false;
  }
  self->x = self->memory;
  self->h1 = self->x + rows * width;
  self->h2 = self->h1 + rows * shape.hidden;
  self->logprob = self->h2 + rows * shape.hidden;
  self->dx = self->logprob + rows * POLICY_ACTIONS;
  self->dh1 = self->dx + rows * width;
  self->dh2 = self->dh1 + rows * shape.hidden;
  self->dlogits = self->dh2 + rows * shape.hidden;
  return true;
}

void policy_workspace_free(policy_workspace *self)
{
  free(self->memory);
  *self = (policy_workspace){0};
}

// out[rows, outputs] = in[rows, inputs] weights[inputs, outputs] + bias[outputs]
static void linear(const float *in, const float *weights, const float *bias, int64_t rows,
                   int64_t inputs, int64_t outputs, float *out)
{
  for (int64_t row = 0; row < rows; ++row) {
    memcpy(out + row * outputs, bias, (size_t)outputs * sizeof(float));
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)rows, (blasint)outputs,
              (blasint)inputs, 1.0F, in, (blasint)inputs, weights, (blasint)outputs, 1.0F, out,
              (blasint)outputs);
}

// Adds the gradients of weights and bias and writes that of the input.
static void linear_backward(const float *in, const float *weights, const float *dout, int64_t rows,
                            int64_t inputs, int64_t outputs, float *din, float *dweights,
                            float *dbias)
{
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < outputs; ++i) {
      dbias[i] += dout[row * outputs + i];
    }
  }
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)inputs, (blasint)outputs,
              (blasint)rows, 1.0F, in, (blasint)inputs, dout, (blasint)outputs, 1.0F, dweights,
              (blasint)outputs);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)inputs,
              (blasint)outputs, 1.0F, dout, (blasint)outputs, weights, (blasint)outputs, 0.0F, din,
              (blasint)inputs);
}

static void relu(float *values, int64_t count)
{
  for (int64_t i = 0; i < count; ++i) {
    values[i] = values[i] > 0.0F ? values[i] : 0.0F;
  }
}

static void relu_backward(const float *out, float *gradient, int64_t count)
{
  for (int64_t i = 0; i < count; ++i) {
    gradient[i] = out[i] > 0.0F ? gradient[i] : 0.0F;
  }
}

static void log_softmax(float *logits, int64_t rows)
{
  for (int64_t row = 0; row < rows; ++row) {
    float *const z = logits + row * POLICY_ACTIONS;
    float largest = z[0];
    for (int i = 1; i < POLICY_ACTIONS; ++i) {
      largest = z[i] > largest ? z[i] : largest;
    }
    float sum = 0.0F;
    for (int i = 0; i < POLICY_ACTIONS; ++i) {
      sum += expf(z[i] - largest);
    }
    const float shift = largest + logf(sum);
    for (int i = 0; i < POLICY_ACTIONS; ++i) {
      z[i] -= shift;
    }
  }
}

// d logprob[chosen] / d logits = onehot(chosen) - softmax(logits)
static void log_softmax_backward(const float *logprob, const uint8_t *chosen, const float *dlogprob,
                                 int64_t rows, float *dlogits)
{
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < POLICY_ACTIONS; ++i) {
      const int64_t at = row * POLICY_ACTIONS + i;
      const float onehot = i == chosen[row] ? 1.0F : 0.0F;
      dlogits[at] = dlogprob[row] * (onehot - expf(logprob[at]));
    }
  }
}

void policy_forward(const train_policy *self, const uint8_t *symbols, int64_t rows,
                    policy_workspace *workspace)
{
  const policy_shape *const shape = &self->shape;
  const float *const p = self->parameters;
  const int64_t *const at = self->offset;
  const int64_t width = shape->slots * shape->embedding;

  for (int64_t i = 0; i < rows * shape->slots; ++i) {
    memcpy(workspace->x + i * shape->embedding,
           p + at[POLICY_EMBEDDING] + symbols[i] * shape->embedding,
           (size_t)shape->embedding * sizeof(float));
  }
  linear(workspace->x, p + at[POLICY_W1], p + at[POLICY_B1], rows, width, shape->hidden,
         workspace->h1);
  relu(workspace->h1, rows * shape->hidden);
  linear(workspace->h1, p + at[POLICY_W2], p + at[POLICY_B2], rows, shape->hidden, shape->hidden,
         workspace->h2);
  relu(workspace->h2, rows * shape->hidden);
  linear(workspace->h2, p + at[POLICY_W3], p + at[POLICY_B3], rows, shape->hidden, POLICY_ACTIONS,
         workspace->logprob);
  log_softmax(workspace->logprob, rows);
}

void policy_backward(const train_policy *self, const uint8_t *symbols, const uint8_t *chosen,
                     const float *dlogprob, int64_t rows, policy_workspace *workspace,
                     float *gradient)
{
  const policy_shape *const shape = &self->shape;
  const float *const p = self->parameters;
  const int64_t *const at = self->offset;
  const int64_t width = shape->slots * shape->embedding;

  log_softmax_backward(workspace->logprob, chosen, dlogprob, rows, workspace->dlogits);
  linear_backward(workspace->h2, p + at[POLICY_W3], workspace->dlogits, rows, shape->hidden,
                  POLICY_ACTIONS, workspace->dh2, gradient + at[POLICY_W3],
                  gradient + at[POLICY_B3]);
  relu_backward(workspace->h2, workspace->dh2, rows * shape->hidden);
  linear_backward(workspace->h1, p + at[POLICY_W2], workspace->dh2, rows, shape->hidden,
                  shape->hidden, workspace->dh1, gradient + at[POLICY_W2],
                  gradient + at[POLICY_B2]);
  relu_backward(workspace->h1, workspace->dh1, rows * shape->hidden);
  linear_backward(workspace->x, p + at[POLICY_W1], workspace->dh1, rows, width, shape->hidden,
                  workspace->dx, gradient + at[POLICY_W1], gradient + at[POLICY_B1]);
  for (int64_t i = 0; i < rows * shape->slots; ++i) {
    float *const row = gradient + at[POLICY_EMBEDDING] + symbols[i] * shape->embedding;
    for (int64_t j = 0; j < shape->embedding; ++j) {
      row[j] += workspace->dx[i * shape->embedding + j];
    }
  }
}

uint8_t policy_sample(const float logprob[POLICY_ACTIONS], train_rng *generator)
{
  float total = 0.0F;
  float cumulative[POLICY_ACTIONS];
  for (int i = 0; i < POLICY_ACTIONS; ++i) {
    total += expf(logprob[i]);
    cumulative[i] = total;
  }
  const double point = rng_uniform(generator) * (double)total;
  uint8_t action = 0;
  while (action < POLICY_ACTIONS - 1 && (double)cumulative[action] <= point) {
    ++action;
  }
  return action;
}

uint8_t policy_greedy(const float logprob[POLICY_ACTIONS])
{
  uint8_t best = 0;
  for (uint8_t i = 1; i < POLICY_ACTIONS; ++i) {
    best = logprob[i] > logprob[best] ? i : best;
  }
  return best;
}
