# SPDX-License-Identifier: Apache-2.0
from cellkeep_kernel.comms import KernelComm as Comm
from cellkeep_kernel.kernel import Kernel as IPythonKernel

from .zmqshell import ZMQInteractiveShell

__all__ = ["Comm", "IPythonKernel", "ZMQInteractiveShell"]
