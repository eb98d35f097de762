# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Puts the stand-ins for packages that need a GPU where the tests find them."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent / "standins"))
