// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "exercise.h"

#include "provoke.h"
#include "selecting.h"
#include "subjects.h"

#include <string.h>

static void ignore(const provocation *made)
{
  (void)made;
}

static void create_wrongly(const check_subject *subject)
{
  static const char *const configs[] = {"", "{", "[]", "{\"no_such_key\": 1}", "\xFF"};
  for (size_t i = 0; i < sizeof configs / sizeof configs[0]; ++i) {
    rft_instance *instance = NULL;
    rft_error error = {.struct_size = sizeof error};
    if (subject->loss->create(subject->loss, subject->host, configs[i], (int64_t)strlen(configs[i]),
                              &instance, &error) == RFT_OK) {
      subject->loss->destroy(instance);
    }
  }
}

void check_exercise(const check_subject *subject)
{
  create_wrongly(subject);
  rft_instance *const instance = check_create(subject);
  rft_batch *const batch = check_ordinary_batch(subject);
  check_evaluate_ok("ordinary batch", subject, instance, batch, NULL, NULL, NULL);
  if (check_selects(subject->loss)) {
    check_select_ok("ordinary batch", subject, instance, &batch, 1, NULL);
  }
  check_provoke(subject, ALL_PROVOCATIONS, true, ignore);
  subject->loss->destroy(instance);
}
