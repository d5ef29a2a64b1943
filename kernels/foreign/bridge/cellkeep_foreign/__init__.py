# SPDX-License-Identifier: Apache-2.0
"""Between a Jupyter kernel's ZeroMQ sockets and the lines of kernels/driver."""
