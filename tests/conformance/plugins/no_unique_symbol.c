// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a variable that is one for the whole process, which no export list hides.
// fails: no_unique_symbol one_export

#include "base.h"

__asm__(".pushsection .data\n"
        ".globl fixture_unique\n"
        ".type fixture_unique, @gnu_unique_object\n"
        ".size fixture_unique, 8\n"
        "fixture_unique: .quad 0\n"
        ".popsection");

ENTRY(enter)
