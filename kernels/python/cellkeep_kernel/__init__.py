# SPDX-License-Identifier: Apache-2.0
"""The Python half of the Python kernel: IPython without ipykernel.

The C++ half (kernels/python/*.cpp) owns the process, the kernel link and the dispatch of requests; it
calls the methods of the one Kernel object that start() returns. Nothing here opens a socket or starts a
thread.
"""


def start(host):
    """Make this process's kernel. host is the C++ half's Host object."""
    from . import rehearsal, warm
    from .kernel import Kernel

    kernel = warm.kernel or Kernel()
    kernel.begin(host)
    if warm.kernel is not None:
        rehearsal.rehearse_fork(kernel)
    return kernel
