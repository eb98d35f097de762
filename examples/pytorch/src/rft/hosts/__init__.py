# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""The policy losses inside training frameworks: one module each, imported where it is named."""
