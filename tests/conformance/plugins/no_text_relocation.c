// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has an address in its code, which the loader has to change.
// fails: no_text_relocation
// flags: -Wl,-z,notext

#include "base.h"

__asm__(".pushsection .text\n"
        "address_in_code: .quad address_in_code\n"
        ".popsection");

ENTRY(enter)
