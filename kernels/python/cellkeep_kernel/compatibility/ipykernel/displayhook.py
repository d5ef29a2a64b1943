# SPDX-License-Identifier: Apache-2.0
from cellkeep_kernel.display import KernelDisplayHook as ZMQShellDisplayHook

ZMQDisplayHook = ZMQShellDisplayHook

__all__ = ["ZMQDisplayHook", "ZMQShellDisplayHook"]
