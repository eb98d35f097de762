// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

/// @file plugin.h
/// The plugin side of the RFT (reinforcement fine-tuning) plugin ABI, version 1.
///
/// A plugin is a shared object that exports one function, rft_plugin_entry_v1. The tables that it
/// hands out describe policy losses and algorithm presets. This header is the normative text; the
/// rules cited here as P1, P2, ... stand with their reasons in abi/README.md.
///
/// Thread tags, on every function:
///   [setup]        one thread, before anything else of the same plugin
///   [instance]     never two calls at once on the same object; any thread
///   [thread-safe]  any thread, any number at once, also on the same object
///   [collective]   [instance], and every rank of the group makes the same call in the same order
///
/// Every function that can fail returns an RFT_* code and fills `error` (which may be NULL); on an
/// error its outputs are as they were and nothing needs freeing (P8, P9). No function here aborts,
/// exits, prints, or changes signals, locale or floating-point environment (P10).

#ifndef RFT_PLUGIN_H
#define RFT_PLUGIN_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Major: part of the symbol's name, other majors are other symbols. Minor: only adds (P4, P5).
#define RFT_ABI_MAJOR 1
#define RFT_ABI_MINOR 1

/// Name of the one exported symbol.
#define RFT_PLUGIN_ENTRY_SYMBOL "rft_plugin_entry_v1"

#if defined(__GNUC__)
#define RFT_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define RFT_PLUGIN_EXPORT
#endif

/// P1: the first field of every struct is its size, the end of the last field that the writer
/// knows.
#define RFT_STRUCT_SIZE(type, last_field)                                                          \
  ((uint32_t)(offsetof(type, last_field) + sizeof(((type *)0)->last_field)))

/// P2: does the writer of `object` know `field`?
#define RFT_HAS_FIELD(object, type, field) ((object)->struct_size >= RFT_STRUCT_SIZE(type, field))

// ---------------------------------------------------------------------------------------- errors

/// Result codes, numbered as absl::StatusCode.
enum {
  RFT_OK = 0,
  RFT_CANCELLED = 1,
  RFT_UNKNOWN = 2,
  RFT_INVALID_ARGUMENT = 3, ///< wrong whatever the state: a shape, a dtype, a config value
  RFT_DEADLINE_EXCEEDED = 4,
  RFT_NOT_FOUND = 5,
  RFT_ALREADY_EXISTS = 6,
  RFT_PERMISSION_DENIED = 7,
  RFT_RESOURCE_EXHAUSTED = 8,  ///< out of memory
  RFT_FAILED_PRECONDITION = 9, ///< a call out of order
  RFT_ABORTED = 10,            ///< another rank failed
  RFT_OUT_OF_RANGE = 11,       ///< a value: non-finite where it matters, or one that overflows
  RFT_UNIMPLEMENTED = 12,      ///< a newer caller asks for what this version does not know
  RFT_INTERNAL = 13,
  RFT_UNAVAILABLE = 14,
  RFT_DATA_LOSS = 15
};

#define RFT_ERROR_MESSAGE_SIZE 512

/// What went wrong. The caller owns it and sets struct_size; the callee writes the rest on failure.
typedef struct rft_error {
  uint32_t struct_size;
  int32_t code;                         ///< the value that the function returned
  char message[RFT_ERROR_MESSAGE_SIZE]; ///< UTF-8, NUL-terminated: what, where, expected, found
} rft_error;

// ------------------------------------------------------------------------------------------ host

typedef struct rft_host rft_host;

/// What the plugin is loaded into. Lives longer than everything made with it.
struct rft_host {
  uint32_t struct_size;
  uint32_t abi_minor;  ///< RFT_ABI_MINOR of the host
  const char *name;    ///< "rft", "trinity-rft"
  const char *version; ///< of the host program
  void *host_data;     ///< the host's own
  /// A service by id, "rft.host.NAME/REV", or NULL where the host has none: every service is
  /// optional (P16). The service lives as long as the host. [thread-safe]
  const void *(*get_service)(const rft_host *host, const char *id);
};

/// Service: messages for a person. Without it they are dropped.
#define RFT_HOST_LOG "rft.host.log/1"
enum { RFT_LOG_DEBUG = 0, RFT_LOG_INFO = 1, RFT_LOG_WARNING = 2, RFT_LOG_ERROR = 3 };
typedef struct rft_log {
  uint32_t struct_size;
  uint32_t reserved;
  const rft_host *host;
  /// `message`: UTF-8, one line, no newline at its end, borrowed. [thread-safe]
  void (*write)(const struct rft_log *log, int32_t level, const char *message);
} rft_log;

/// Service: the host's threads. Without it the plugin works on the calling thread. A plugin starts
/// no thread of its own (P15).
#define RFT_HOST_PARALLEL "rft.host.parallel/1"
typedef struct rft_parallel {
  uint32_t struct_size;
  int32_t threads; ///< how many bodies may run at once, >= 1: a hint for choosing `count`
  const rft_host *host;
  /// Runs body(context, i) once for each i in [0, count), in any order, on any threads, and returns
  /// when all have returned. Bodies may not call parallel_for. [thread-safe]
  void (*parallel_for)(const struct rft_parallel *parallel, int64_t count,
                       void (*body)(void *context, int64_t i), void *context);
} rft_parallel;

/// Service: the data-parallel group, the ranks whose tokens form one optimizer batch. Never a
/// tensor- or context-parallel group: copies of a token would count twice. Given to
/// selection_finish; a host may also offer it by id.
#define RFT_HOST_COLLECTIVES "rft.host.collectives/1"
typedef struct rft_collectives {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t rank; ///< of the caller, in [0, size)
  int64_t size; ///< number of ranks, >= 1
  void *data;   ///< the provider's own
  /// Replaces values[0..count) on every rank by their sums over the ranks, modulo 2^64. The same
  /// count on every rank. An error is final for the group. [collective]
  int32_t (*all_reduce_sum)(const struct rft_collectives *collectives, uint64_t *values,
                            int64_t count, rft_error *error);
} rft_collectives;

// ------------------------------------------------------------------------------------- loss: data

/// One micro-batch. Tensors are borrowed for the call and never written.
///
/// Shapes. Padded: logprob [B,T]. Packed: logprob [n] with cu_seqlens [S+1], int32 or int64, that
/// starts at 0, never falls and ends with n; an empty sequence is legal. [n] without cu_seqlens is
/// one sequence. old_logprob, proximal_logprob and mask have the shape of logprob; advantages too,
/// or one value a sequence: [B] or [B,1] ([S] or [S,1] when packed).
///
/// Dtypes. Log-probs and advantages: float16, bfloat16, float32, float64, mixed freely. Mask: bool,
/// int8, uint8, int32, int64, where any non-zero is a valid token, or a float dtype holding only 0
/// and 1. Log-probs are natural logarithms.
typedef struct rft_batch {
  uint32_t struct_size;
  uint32_t reserved;
  const rft_tensor *logprob;          ///< sampled token under the current policy, before the step
  const rft_tensor *old_logprob;      ///< under the behavior policy that generated the rollout
  const rft_tensor *proximal_logprob; ///< under the proximal policy of decoupled PPO, or NULL
  const rft_tensor *advantages;
  const rft_tensor *mask;       ///< response mask
  const rft_tensor *cu_seqlens; ///< or NULL
  void *stream;                 ///< device stream that the tensors are ready on; NULL on the CPU
} rft_batch;

/// What a mean over the optimizer batch divides by: counts over all its micro-batches and ranks, as
/// selection_finish returns them. A zero field: evaluate counts its own micro-batch.
typedef struct rft_reduction {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t valid_tokens; ///< N: tokens with a non-zero mask, before any selection
  int64_t kept_tokens;  ///< K: of these, tokens that the selection keeps
  int64_t sequences;    ///< sequences with at least one valid token
  /// Factor on loss and gradient; 0 means 1. A host that averages gradients over data-parallel
  /// ranks passes their number.
  double scale;
} rft_reduction;

/// What evaluate gives. The caller owns all memory.
typedef struct rft_output {
  uint32_t struct_size;
  uint32_t reserved;
  double loss; ///< this micro-batch's part: the parts add up to the optimizer batch's loss
  /// d loss / d logprob: the shape of logprob, a float dtype, strides that address no element
  /// twice, no overlap with an input. NULL: not wanted.
  const rft_tensor *gradient;
  double *metrics; ///< [metric_count] or NULL; entries of phase RFT_METRIC_EVALUATE are written
  int64_t metric_count; ///< of the loss descriptor
} rft_output;

/// What selection_finish gives. The caller owns all memory.
typedef struct rft_selection_report {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t valid_tokens; ///< these three are the fields of rft_reduction
  int64_t kept_tokens;
  int64_t sequences;
  double *metrics; ///< [metric_count] or NULL; entries of phase RFT_METRIC_SELECTION are written
  int64_t metric_count; ///< of the loss descriptor
} rft_selection_report;

/// When a metric is written.
enum {
  RFT_METRIC_SELECTION = 1, ///< by selection_finish, over the whole optimizer batch and all ranks
  RFT_METRIC_EVALUATE = 2   ///< by evaluate, over one micro-batch
};

/// How a host combines a metric's values over micro-batches and ranks.
enum {
  RFT_COMBINE_NONE = 0, ///< it doesn't: the value is final
  RFT_COMBINE_SUM = 1,  ///< add
  RFT_COMBINE_MAX = 2,  ///< largest; -infinity where there was no token, which ends as 0
  RFT_COMBINE_MIN = 3,  ///< smallest; +infinity where there was no token, which ends as 0
  RFT_COMBINE_RATIO =
      4 ///< never written: metrics[numerator] / metrics[denominator] after combining, 0 for 0/0
};

/// Describes one entry of a metrics array: the entry's index is the descriptor's.
typedef struct rft_metric {
  uint32_t struct_size;
  int32_t phase;           ///< RFT_METRIC_SELECTION or RFT_METRIC_EVALUATE
  const char *name;        ///< "masked_tokens": unique in the loss
  const char *description; ///< one sentence, with the unit
  int64_t numerator;       ///< RFT_COMBINE_RATIO: index of a summed or final metric; else 0
  int64_t denominator;     ///< likewise
  int32_t combine;         ///< RFT_COMBINE_*
  uint32_t reserved;
} rft_metric;

// -------------------------------------------------------------------------------- loss: functions

/// Capability bits of a policy loss.
#define RFT_LOSS_COLLECTIVES UINT64_C(1) ///< selection_finish accepts collectives
#define RFT_LOSS_PROXIMAL UINT64_C(2)    ///< reads proximal_logprob where a config asks for it

typedef struct rft_policy_loss rft_policy_loss;
typedef struct rft_instance rft_instance;   ///< a loss with its config; immutable (P14)
typedef struct rft_selection rft_selection; ///< the selection of one optimizer batch

/// A policy loss. The selection functions are all NULL in a loss that selects nothing, and that is
/// the only NULL allowed (P7); every other pointer is set.
struct rft_policy_loss {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t capabilities; ///< RFT_LOSS_*
  const char *name;      ///< "m2po": [a-z][a-z0-9_]*, what a trainer's config says
  const char *description;
  /// JSON Schema 2020-12 text of the config: an object, closed ("additionalProperties": false),
  /// every property with type, default and description (P11).
  const char *config_schema;
  const rft_metric *const *metrics; ///< [metric_count]
  int64_t metric_count;

  /// Makes an instance. `config`: JSON text of `config_length` bytes, not NUL-terminated, borrowed;
  /// length 0 is {}. A key that is unknown, misspelt, duplicated, of the wrong type or out of range
  /// is RFT_INVALID_ARGUMENT, and the message names the key (P12). `host` must outlive the
  /// instance. [thread-safe]
  int32_t (*create)(const rft_policy_loss *loss, const rft_host *host, const char *config,
                    int64_t config_length, rft_instance **instance, rft_error *error);

  /// Frees an instance whose selections have all ended; NULL is ignored. [instance]
  void (*destroy)(rft_instance *instance);

  /// Starts the selection of one optimizer batch. [thread-safe]
  int32_t (*selection_begin)(const rft_instance *instance, rft_selection **selection,
                             rft_error *error);

  /// Adds the next micro-batch of this rank; it may be freed afterwards. Order is token order.
  /// [instance]
  int32_t (*selection_add)(rft_selection *selection, const rft_batch *batch, rft_error *error);

  /// One exact selection over every batch added, on every rank of `collectives` (NULL: this process
  /// alone). A rank with no token still takes part; a rank whose add failed too, and then all ranks
  /// return an error (P17). Once. [collective]
  int32_t (*selection_finish)(rft_selection *selection, const rft_collectives *collectives,
                              rft_selection_report *report, rft_error *error);

  /// The mask of the `batch_index`-th batch added, after finish: 1 for a kept token, 0 for a
  /// dropped one and for every position that is not valid. `mask`: bool or uint8, the shape of that
  /// batch's logprob, any strides that address no element twice. [instance]
  int32_t (*selection_mask)(const rft_selection *selection, int64_t batch_index,
                            const rft_tensor *mask, rft_error *error);

  /// Ends a selection at any point; NULL is ignored. [instance]
  void (*selection_end)(rft_selection *selection);

  /// Loss and gradient of one micro-batch. `mask`: what selection_mask wrote (bool, int8, uint8),
  /// NULL: every valid token is kept. `reduction`: NULL is all zeros. [thread-safe]
  int32_t (*evaluate)(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                      const rft_reduction *reduction, rft_output *output, rft_error *error);
};

/// Extension of a plugin: its losses in as few passes over memory as they need, for a caller that
/// discards what a failed call leaves. Unlike elsewhere (P9), after an error that is found while
/// tokens are read, RFT_OUT_OF_RANGE or RFT_RESOURCE_EXHAUSTED, the elements of gradient and mask
/// are undefined; everything else is as it was (P22). Since ABI minor 1.
#define RFT_PLUGIN_ONE_PASS "rft.plugin.one_pass/1"
typedef struct rft_one_pass {
  uint32_t struct_size;
  uint32_t reserved;
  /// What rft_policy_loss.evaluate gives, bit by bit. [thread-safe]
  int32_t (*evaluate)(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                      const rft_reduction *reduction, rft_output *output, rft_error *error);
  /// Selection and evaluation of an optimizer batch that is one micro-batch on each rank of
  /// `collectives` (NULL: this process alone), where both see the same tensors. `mask` is written
  /// as by selection_mask, of which it has the shape and dtype, and is needed; it may overlap
  /// neither an input nor the gradient. `scale` is that of rft_reduction. Gives the masks, counts
  /// and selection metrics of the separate calls bit by bit; the loss is added up in another order.
  /// UNIMPLEMENTED for a loss that selects nothing. [collective]
  int32_t (*select_evaluate)(const rft_instance *instance, const rft_batch *batch,
                             const rft_collectives *collectives, double scale,
                             const rft_tensor *mask, rft_selection_report *report,
                             rft_output *output, rft_error *error);
} rft_one_pass;

// ---------------------------------------------------------------------------------- preset, plugin

/// An algorithm preset: what a trainer runs with `algorithm_type: NAME`.
typedef struct rft_algorithm_preset {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name; ///< "m2po": [a-z][a-z0-9_]*
  const char *description;
  /// JSON text: policy_loss_fn, policy_loss_fn_args, use_critic, use_reference, kl_penalty_fn,
  /// kl_loss_fn, entropy_loss_fn, advantage_fn, rollout (what it must provide).
  const char *document;
} rft_algorithm_preset;

/// A plugin's tables: constant, and alive as long as the shared object (P13).
typedef struct rft_plugin {
  uint32_t struct_size;
  uint32_t abi_minor; ///< RFT_ABI_MINOR that the plugin was built with
  const char *id;     ///< reverse domain name of the author's own, unique: "org.example.loss"
  const char *version;
  const char *description;
  const rft_policy_loss *const *policy_losses; ///< [policy_loss_count]
  int64_t policy_loss_count;
  const rft_algorithm_preset *const *algorithm_presets; ///< [algorithm_preset_count]
  int64_t algorithm_preset_count;
  /// An extension by id, "NAME/REV", or NULL. [thread-safe]
  const void *(*get_extension)(const char *id);
} rft_plugin;

/// The entry. Gives the plugin's tables to `host`, or refuses with an error. May be called more
/// than once, and then gives the same tables. [setup]
RFT_PLUGIN_EXPORT int32_t rft_plugin_entry_v1(const rft_host *host, const rft_plugin **plugin,
                                              rft_error *error);

typedef int32_t (*rft_plugin_entry)(const rft_host *host, const rft_plugin **plugin,
                                    rft_error *error);

#ifdef __cplusplus
}
#endif

#endif // RFT_PLUGIN_H
