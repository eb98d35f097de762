# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Finished files, and beside each what it was made with and its digest: NAME.json, written last."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from typing import Any


class Store:
    def __init__(self, directory: pathlib.Path, ending: str) -> None:
        self._directory, self._ending = directory, ending
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> pathlib.Path:
        return self._directory / f"{name}{self._ending}"

    def partial(self, name: str) -> pathlib.Path:
        """Where it is made."""
        return self._directory / f"{name}{self._ending}.partial"

    def record(self, name: str) -> dict[str, Any] | None:
        """None where the file is not there, or not as it was finished."""
        try:
            record = json.loads(self._record_path(name).read_text())
            return record if record["digest"] == digest(self.path(name)) else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def has(self, name: str, made_with: dict[str, Any]) -> bool:
        record = self.record(name)
        return record is not None and record["made_with"] == made_with

    def forget(self, name: str) -> None:
        self._record_path(name).unlink(missing_ok=True)
        self.path(name).unlink(missing_ok=True)

    def discard_partial(self) -> None:
        for path in self._directory.glob("*.partial"):
            path.unlink()

    def keep(self, name: str, made_with: dict[str, Any], **more: Any) -> None:
        """The partial file is whole."""
        os.replace(self.partial(name), self.path(name))
        record = {**more, "digest": digest(self.path(name)), "made_with": made_with}
        write_whole(self._record_path(name), json.dumps(record, indent=1) + "\n")

    def _record_path(self, name: str) -> pathlib.Path:
        return self._directory / f"{name}.json"


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_whole(path: pathlib.Path, text: str) -> None:
    """A reader finds all of it or nothing of it."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)
