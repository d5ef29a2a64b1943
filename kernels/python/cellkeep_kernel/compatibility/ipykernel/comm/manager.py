# SPDX-License-Identifier: Apache-2.0
from cellkeep_kernel.comms import KernelCommManager as CommManager

__all__ = ["CommManager"]
