// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose entry removes the file "vanishes.so" beside it: a scan has read the name, and
// then the file is gone.

#define _GNU_SOURCE // dladdr

#include "../../fixtures/fixture.h"

#include <dlfcn.h>
#include <stdio.h>

FIXTURE(Dl_info self; char victim[4096]; dladdr(&fixture_plugin, &self);
        const int length = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
        snprintf(victim, sizeof victim, "%.*s/vanishes.so", length, self.dli_fname);
        (void)remove(victim);)
