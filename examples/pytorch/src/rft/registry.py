# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""Plugins: where they are looked for, what they hold."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import json
import logging
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import Any

from . import _abi
from ._library import PLUGINS, call, library, take_text, text
from .errors import Code, RftError, known

ENTRY_POINTS = "rft.plugins"

_log = logging.getLogger("rft")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


@_abi.LogSink
def _log_sink(_context: int, level: int, message: bytes) -> None:
    _log.log(_LEVELS[max(0, min(level, 3))], "%s", text(message))


@dataclass(frozen=True)
class Plugin:
    """A plugin that was loaded."""

    id: str
    version: str
    description: str
    path: str
    policy_losses: tuple[str, ...]
    presets: tuple[str, ...]


@dataclass(frozen=True)
class Refusal:
    """What was not loaded: a file, or an entry point; and why."""

    path: str
    reason: str
    code: int


def encode(settings: Mapping[str, Any] | None) -> bytes:
    """Settings as JSON text."""
    try:
        return json.dumps(dict(settings or {}), allow_nan=False).encode()
    except (TypeError, ValueError) as problem:
        raise RftError(
            Code.INVALID_ARGUMENT, f"config: expected a mapping that JSON can hold: {problem}"
        ) from problem


class Registry:
    """Plugins of some directories.

    Without `directories`: those of RFT_PLUGIN_PATH (absolute, separated by ':'), or where that is
    not set, the package's own and then those of installed packages. Such a package has an entry
    point in the group "rft.plugins" that names a package of its own with .so files in it.

    What is refused is in `refusals`, and a warning in the log "rft"; the search goes on. A
    directory that can't be read, or that others may write, is an RftError.

    `threads`: how many threads a loss may use, the caller's included. `probe_timeout_ms`: above 0,
    each file is first tried in a child process for at most that long, which a process that has
    started CUDA had better not do.

    A registry can be pickled and then finds its plugins anew; in a forked child it goes on working,
    on one thread.
    """

    def __init__(
        self,
        directories: Sequence[str | os.PathLike[str]] | None = None,
        *,
        threads: int = 1,
        probe_timeout_ms: int = 0,
    ) -> None:
        self._arguments = (
            None if directories is None else tuple(os.fspath(d) for d in directories),
            threads,
            probe_timeout_ms,
        )
        options = _abi.sized(
            _abi.RegistryOptions,
            threads=threads,
            name=b"rft for Python",
            log=_log_sink,
            probe_timeout_ms=probe_timeout_ms,
        )
        handle = c_void_p()
        call(library().rft_registry_create, byref(options), byref(handle))
        self.handle = handle
        self._entry_point_refusals: list[Refusal] = []
        weakref.finalize(self, library().rft_registry_destroy, handle)
        if directories is None:
            self._scan_default()
        else:
            for directory in directories:
                self._scan(os.fspath(directory))

    def __reduce__(self) -> tuple:
        return _make_registry, self._arguments

    # ------------------------------------------------------------------------------------- finding

    def _scan(self, directory: str) -> None:
        call(library().rft_registry_scan, self.handle, os.fsencode(directory))

    def _scan_default(self) -> None:
        if os.environ.get("RFT_PLUGIN_PATH"):
            call(library().rft_registry_scan_default, self.handle)
            return
        if PLUGINS.is_dir():
            self._scan(os.fspath(PLUGINS))
        for entry_point in _entry_points():
            self._scan_entry_point(entry_point)

    def _scan_entry_point(self, entry_point: importlib.metadata.EntryPoint) -> None:
        # Somebody else's package: whatever is wrong with it is its refusal, not our failure.
        try:
            for directory in entry_point.load().__path__:
                self._scan(directory)
        except Exception as problem:
            code = problem.code if isinstance(problem, RftError) else Code.UNAVAILABLE
            name = f"entry point {entry_point.name} = {entry_point.value}"
            reason = str(problem) or type(problem).__name__
            self._entry_point_refusals.append(Refusal(name, reason, code))
            _log.warning("refused %s: %s", name, reason)

    # ------------------------------------------------------------------------------- what was found

    @property
    def plugins(self) -> list[Plugin]:
        """What was loaded, in order."""
        found = []
        for i in range(library().rft_registry_plugin_count(self.handle)):
            plugin = library().rft_registry_plugin(self.handle, i).contents
            losses = (plugin.policy_losses[k].contents for k in range(plugin.policy_loss_count))
            presets = (
                plugin.algorithm_presets[k].contents for k in range(plugin.algorithm_preset_count)
            )
            found.append(
                Plugin(
                    id=text(plugin.id),
                    version=text(plugin.version),
                    description=text(plugin.description),
                    path=os.fsdecode(library().rft_registry_plugin_path(self.handle, i)),
                    policy_losses=tuple(text(loss.name) for loss in losses),
                    presets=tuple(text(preset.name) for preset in presets),
                )
            )
        return found

    @property
    def refusals(self) -> list[Refusal]:
        """What was refused, files first."""
        return [*self._file_refusals(), *self._entry_point_refusals]

    def _file_refusals(self) -> Iterator[Refusal]:
        for i in range(library().rft_registry_refusal_count(self.handle)):
            refusal = library().rft_registry_refusal(self.handle, i).contents
            yield Refusal(os.fsdecode(refusal.path), text(refusal.reason), known(refusal.code))

    def find(self, name: str) -> _abi.PolicyLoss:
        """The table of a policy loss. Lives as long as the process (H8)."""
        loss = ctypes.POINTER(_abi.PolicyLoss)()
        call(library().rft_registry_find_policy_loss, self.handle, name.encode(), byref(loss))
        return loss.contents

    def one_pass(self, loss: _abi.PolicyLoss) -> _abi.OnePass | None:
        """The one-pass functions of the plugin that a loss of `find` belongs to."""
        found = library().rft_registry_one_pass(self.handle, byref(loss))
        return found.contents if found else None

    def schema(self, name: str) -> dict[str, Any]:
        """The JSON Schema of a policy loss's config."""
        return json.loads(self.find(name).config_schema)

    def resolve(self, name: str, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A config of a policy loss, checked, with every default filled in."""
        given, resolved = encode(config), c_void_p()
        loss = self.find(name)
        call(library().rft_config_resolve, byref(loss), given, len(given), byref(resolved))
        return json.loads(take_text(resolved))

    def preset(self, name: str, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """An algorithm preset, every setting spelt out; `args` go over its policy_loss_fn_args."""
        document = c_void_p()
        call(
            library().rft_preset_resolve, self.handle, name.encode(), encode(args), byref(document)
        )
        return json.loads(take_text(document))


def _make_registry(
    directories: tuple[str, ...] | None, threads: int, probe_timeout_ms: int
) -> Registry:
    return Registry(directories, threads=threads, probe_timeout_ms=probe_timeout_ms)


def _entry_points() -> Sequence[importlib.metadata.EntryPoint]:
    found = importlib.metadata.entry_points()
    select = getattr(found, "select", None)  # Python 3.9 has a dict
    group = select(group=ENTRY_POINTS) if select else found.get(ENTRY_POINTS, ())
    return sorted(group, key=lambda entry_point: (entry_point.name, entry_point.value))


@functools.cache
def default_registry() -> Registry:
    """The registry that is used where none is named: made at the first call."""
    return Registry()
