# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0

"""verl on the CPU: a platform of its kind of plugin, and our engine under the device it names.

verl loads both through VERL_USE_EXTERNAL_MODULES=cpu_platform, with VERL_PLATFORM=cpu.
"""

from __future__ import annotations

import contextlib
import types

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry

# What verl asks a device about memory.
_MEMORY = types.SimpleNamespace(
    max_memory_allocated=lambda *_: 0,
    max_memory_reserved=lambda *_: 0,
    memory_allocated=lambda *_: 0,
    memory_reserved=lambda *_: 0,
    mem_get_info=lambda *_: (0, 1),
    empty_cache=lambda: None,
    current_device=lambda: torch.device("cpu"),
    get_device_name=lambda *_: "cpu",
    is_available=lambda: True,
    is_bf16_supported=lambda: True,
    synchronize=lambda *_: None,
    manual_seed=torch.manual_seed,
    manual_seed_all=torch.manual_seed,
    get_rng_state=torch.get_rng_state,
    set_rng_state=torch.set_rng_state,
)


@PlatformRegistry.register(platform="cpu")
class CPU(PlatformBase):
    device_name = "cpu"
    vendor_name = "cpu"
    device_module = _MEMORY

    def is_available(self):
        return True

    def current_device(self):
        return torch.device("cpu")

    def device_count(self):
        return 1

    def set_device(self, device_index):
        pass

    def synchronize(self, device_index=None):
        pass

    def manual_seed(self, seed):
        torch.manual_seed(seed)

    def manual_seed_all(self, seed):
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings):
        pass

    def empty_cache(self):
        pass

    def get_device_capability(self, device_index=0):
        return None, None

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "CUDA_VISIBLE_DEVICES"

    def nvtx_range(self, msg):
        return contextlib.nullcontext()

    def profiler_start(self):
        pass

    def profiler_stop(self):
        pass

    def ray_resource_name(self):
        return "CPU"

    def ray_noset_envvars(self):
        return []

    def is_ipc_supported(self):
        return False

    def cudart(self):
        return None
