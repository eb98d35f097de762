// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Whether a file is a shared object for this machine. Private to librft_host.

#ifndef RFT_HOST_ELF_CHECK_H
#define RFT_HOST_ELF_CHECK_H

#include "rft/plugin.h"

/// Checks the ELF header, and that no segment lies beyond the end of the file: the dynamic loader
/// would map it and the process die. `size`: of the file in bytes.
int32_t rft_elf_check(int descriptor, int64_t size, rft_error *error);

#endif // RFT_HOST_ELF_CHECK_H
