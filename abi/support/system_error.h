// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#ifndef RFT_SUPPORT_SYSTEM_ERROR_H
#define RFT_SUPPORT_SYSTEM_ERROR_H

#define RFT_SYSTEM_ERROR_SIZE 64

/// The system's words for a value of errno, from any thread.
const char *rft_system_error(char text[RFT_SYSTEM_ERROR_SIZE], int number);

#endif // RFT_SUPPORT_SYSTEM_ERROR_H
