# SPDX-License-Identifier: Apache-2.0
"""What ipykernel offers to code that runs in a kernel; Cellkeep's kernel is not ipykernel.

Its version is that of the interface: comms of the package `comm`, before subshells.
"""

from .connect import connect_qtconsole, get_connection_file, get_connection_info

version_info = (6, 30, 1)
__version__ = "6.30.1+cellkeep"
kernel_protocol_version_info = (5, 3)
kernel_protocol_version = "5.3"

__all__ = [
    "__version__",
    "connect_qtconsole",
    "get_connection_file",
    "get_connection_info",
    "kernel_protocol_version",
    "kernel_protocol_version_info",
    "version_info",
]
