# SPDX-License-Identifier: Apache-2.0
from comm.base_comm import BaseComm

from cellkeep_kernel.comms import KernelComm as Comm

__all__ = ["BaseComm", "Comm"]
