// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "loss.h"

#include "evaluation.h"

static int32_t run(const rft_instance *instance, m2po_evaluation *job, m2po_measures *total,
                   rft_error *error)
{
  m2po_parallel_for(instance, job->chunks, m2po_evaluation_chunk, job);
  return m2po_evaluation_total(job, total, error);
}

static int32_t evaluate(const rft_instance *instance, const rft_batch *batch,
                        const rft_tensor *mask, const rft_reduction *reduction, bool once,
                        rft_output *output, rft_error *error)
{
  m2po_evaluation job;
  m2po_measures total;
  int32_t code = m2po_evaluation_open(instance, batch, mask, reduction, output, &job, error);
  if (code == RFT_OK && !once) {
    job.rehearsal = true;
    code = run(instance, &job, &total, error);
    job.rehearsal = false;
  }
  if (code == RFT_OK) {
    code = run(instance, &job, &total, error);
  }
  if (code == RFT_OK) {
    m2po_evaluation_report(&total, output);
  }
  m2po_evaluation_free(&job);
  return code;
}

int32_t m2po_evaluate(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                      const rft_reduction *reduction, rft_output *output, rft_error *error)
{
  return evaluate(instance, batch, mask, reduction, false, output, error);
}

int32_t m2po_evaluate_once(const rft_instance *instance, const rft_batch *batch,
                           const rft_tensor *mask, const rft_reduction *reduction,
                           rft_output *output, rft_error *error)
{
  return evaluate(instance, batch, mask, reduction, true, output, error);
}
