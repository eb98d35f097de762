// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The policy: symbol embeddings, two hidden layers, a softmax over the ten digits.
//
//   x [rows, slots * embedding] = embeddings of the symbols
//   h1 = relu(x W1 + b1)    h2 = relu(h1 W2 + b2)    logprob = log_softmax(h2 W3 + b3)
//
// It is autoregressive: a row holds the symbols known so far, and one that stands for the answer
// digits that are still to come, which also tells the network which digit is due.

#ifndef TRAIN_POLICY_H
#define TRAIN_POLICY_H

#include "rng.h"

#include <stdbool.h>
#include <stdint.h>

#define POLICY_ACTIONS 10

typedef struct policy_shape {
  int64_t symbols;   // that there are
  int64_t slots;     // symbols of a row
  int64_t embedding; // numbers of a symbol
  int64_t hidden;    // width of both hidden layers
} policy_shape;

enum {
  POLICY_EMBEDDING, // [symbols, embedding]
  POLICY_W1,        // [slots * embedding, hidden]
  POLICY_B1,        // [hidden]
  POLICY_W2,        // [hidden, hidden]
  POLICY_B2,        // [hidden]
  POLICY_W3,        // [hidden, POLICY_ACTIONS]
  POLICY_B3,        // [POLICY_ACTIONS]
  POLICY_TENSORS
};

typedef struct train_policy {
  policy_shape shape;
  int64_t count;                      // number of parameters
  int64_t offset[POLICY_TENSORS + 1]; // where each tensor starts in `parameters`, then count
  float *parameters;                  // [count]
} train_policy;

// What one forward pass keeps for the backward pass, for up to `capacity` rows.
typedef struct policy_workspace {
  int64_t capacity;
  float *memory;
  float *x;       // [rows, slots * embedding]
  float *h1;      // [rows, hidden]
  float *h2;      // [rows, hidden]
  float *logprob; // [rows, POLICY_ACTIONS]
  float *dx;      // gradients of the above
  float *dh1;
  float *dh2;
  float *dlogits;
} policy_workspace;

// Random weights of `seed`; false where there is no memory.
bool policy_init(train_policy *self, policy_shape shape, uint64_t seed);
void policy_free(train_policy *self);

// The name of a parameter tensor, "w1", and its shape; returns the number of dimensions.
const char *policy_tensor_name(int tensor);
int32_t policy_tensor_shape(const policy_shape *shape, int tensor, int64_t dimensions[2]);

bool policy_workspace_init(policy_workspace *self, policy_shape shape, int64_t rows);
void policy_workspace_free(policy_workspace *self);

// Fills workspace->logprob from symbols[rows, slots].
void policy_forward(const train_policy *self, const uint8_t *symbols, int64_t rows,
                    policy_workspace *workspace);

// After policy_forward on the same rows: adds to gradient[count] the gradient of a scalar L, given
// dL/d logprob of each row's chosen action.
void policy_backward(const train_policy *self, const uint8_t *symbols, const uint8_t *chosen,
                     const float *dlogprob, int64_t rows, policy_workspace *workspace,
                     float *gradient);

// Draws an action of a row's distribution at temperature 1; the most likely action.
uint8_t policy_sample(const float logprob[POLICY_ACTIONS], train_rng *generator);
uint8_t policy_greedy(const float logprob[POLICY_ACTIONS]);

#endif // TRAIN_POLICY_H
