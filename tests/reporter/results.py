# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Reports each test as the line that tests/run counts, in the file RFT_TEST_RESULTS."""

from __future__ import annotations

import os
import pathlib

_results = pathlib.Path(os.environ.get("RFT_TEST_RESULTS", os.devnull))


def _name(nodeid: str) -> str:
    module, _, test = nodeid.partition("::")
    path = pathlib.Path(module)
    folder, area = path.parent.name, path.stem.replace("test_", "", 1)
    return f"{folder}, {area}: {test.replace('test_', '', 1).replace('_', ' ')}"


def pytest_runtest_logreport(report) -> None:
    if report.skipped:
        line = f"ok - {_name(report.nodeid)} # SKIP {report.longrepr[2].removeprefix('Skipped: ')}"
    elif report.failed:
        line = f"not ok - {_name(report.nodeid)}" + (
            "" if report.when == "call" else f", {report.when}"
        )
    elif report.when == "call":
        line = f"ok - {_name(report.nodeid)}"
    else:
        return
    with _results.open("a") as results:
        print(line, file=results)


def pytest_collectreport(report) -> None:
    if report.failed:
        with _results.open("a") as results:
            print(f"not ok - {report.nodeid} can't be read", file=results)
