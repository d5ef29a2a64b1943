# SPDX-License-Identifier: Apache-2.0
from cellkeep_kernel.kernel import Kernel

__all__ = ["Kernel"]
