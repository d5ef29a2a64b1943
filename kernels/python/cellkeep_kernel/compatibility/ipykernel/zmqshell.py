# SPDX-License-Identifier: Apache-2.0
from cellkeep_kernel.display import KernelDisplayPublisher as ZMQDisplayPublisher
from cellkeep_kernel.shell import KernelShell as ZMQInteractiveShell

__all__ = ["ZMQDisplayPublisher", "ZMQInteractiveShell"]
