// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "hosts.h"

#include "verdict.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- messages

bool check_is_plain_text(const char *text)
{
  json_t *const value = json_string(text); // refuses what is not UTF-8
  const bool utf8 = value != NULL;
  json_decref(value);
  for (; utf8 && *text != '\0'; ++text) {
    if ((unsigned char)*text < 0x20 || *text == 0x7F) {
      return false;
    }
  }
  return utf8;
}

static _Atomic(const char *) log_fault;

const char *check_host_log_fault(void)
{
  return log_fault;
}

static void judge_message(const rft_log *log, int32_t level, const char *message)
{
  (void)log;
  if (level < RFT_LOG_DEBUG || level > RFT_LOG_ERROR) {
    log_fault = "its level is not known";
  } else if (message == NULL || message[0] == '\0') {
    log_fault = "there is no text";
  } else if (!check_is_plain_text(message)) {
    log_fault = "it is not one line of UTF-8";
  }
}

static void drop_message(const rft_log *log, int32_t level, const char *message)
{
  (void)log;
  (void)level;
  (void)message;
}

// ----------------------------------------------------------------------------------------- threads

enum { THREADS = 4 };

typedef struct loop {
  int64_t count;
  void (*body)(void *context, int64_t i);
  void *context;
  atomic_llong next;
} loop;

static void *run_bodies(void *argument)
{
  loop *const work = argument;
  for (int64_t i = work->next++; i < work->count; i = work->next++) {
    work->body(work->context, i);
  }
  return NULL;
}

static void on_threads(const rft_parallel *parallel, int64_t count,
                       void (*body)(void *context, int64_t i), void *context)
{
  (void)parallel;
  loop work = {.count = count, .body = body, .context = context};
  pthread_t threads[THREADS];
  int started = 0;
  while (started < THREADS && pthread_create(&threads[started], NULL, run_bodies, &work) == 0) {
    ++started;
  }
  run_bodies(&work);
  while (started > 0) {
    pthread_join(threads[--started], NULL);
  }
}

static void backwards(const rft_parallel *parallel, int64_t count,
                      void (*body)(void *context, int64_t i), void *context)
{
  (void)parallel;
  for (int64_t i = count - 1; i >= 0; --i) {
    body(context, i);
  }
}

// ------------------------------------------------------------------------------------------- hosts

// A service as a newer host has it: more follows.
enum { TAIL = 16 };
typedef struct newer_log {
  rft_log log;
  unsigned char tail[TAIL];
} newer_log;
typedef struct newer_parallel {
  rft_parallel parallel;
  unsigned char tail[TAIL];
} newer_parallel;

typedef struct services {
  const rft_log *log;
  const rft_parallel *parallel;
} services;

static const void *get_service(const rft_host *host, const char *id)
{
  const services *const offered = host->host_data;
  if (strcmp(id, RFT_HOST_LOG) == 0) {
    return offered->log;
  }
  return strcmp(id, RFT_HOST_PARALLEL) == 0 ? offered->parallel : NULL;
}

#define HOST(offered)                                                                              \
  {                                                                                                \
    .struct_size = RFT_STRUCT_SIZE(rft_host, get_service), .abi_minor = RFT_ABI_MINOR,             \
    .name = "rft check", .version = "1.0.0", .host_data = (void *)(offered),                       \
    .get_service = get_service                                                                     \
  }
#define LOG(function, of)                                                                          \
  {                                                                                                \
    .struct_size = RFT_STRUCT_SIZE(rft_log, write), .host = (of), .write = (function)              \
  }
#define PARALLEL(function, number, of)                                                             \
  {                                                                                                \
    .struct_size = RFT_STRUCT_SIZE(rft_parallel, parallel_for), .threads = (number), .host = (of), \
    .parallel_for = (function)                                                                     \
  }

static const rft_host logging, reversing, full, newer;

static const rft_log silent_log = LOG(drop_message, &logging);
static const rft_log judging_log = LOG(judge_message, &full);
static const rft_parallel reversing_parallel = PARALLEL(backwards, 2, &reversing);
static const rft_parallel threaded_parallel = PARALLEL(on_threads, THREADS + 1, &full);
static newer_log longer_log = {.log = LOG(judge_message, &newer)};
static newer_parallel longer_parallel = {.parallel = PARALLEL(on_threads, THREADS + 1, &newer)};

static const services no_services;
static const services logging_services = {.log = &silent_log};
static const services reversing_services = {.parallel = &reversing_parallel};
static const services all_services = {&judging_log, &threaded_parallel};
static const services longer_services = {&longer_log.log, &longer_parallel.parallel};

static const rft_host bare = HOST(&no_services);
static const rft_host logging = HOST(&logging_services);
static const rft_host reversing = HOST(&reversing_services);
static const rft_host full = HOST(&all_services);
static const rft_host newer = HOST(&longer_services);

const rft_host *check_host_bare(void)
{
  return &bare;
}

const rft_host *check_host_logging(void)
{
  return &logging;
}

const rft_host *check_host_backwards(void)
{
  return &reversing;
}

const rft_host *check_host_full(void)
{
  return &full;
}

const rft_host *check_host_newer(void)
{
  longer_log.log.struct_size = sizeof longer_log;
  longer_parallel.parallel.struct_size = sizeof longer_parallel;
  memset(longer_log.tail, 0xFF, sizeof longer_log.tail);
  memset(longer_parallel.tail, 0xFF, sizeof longer_parallel.tail);
  return &newer;
}
