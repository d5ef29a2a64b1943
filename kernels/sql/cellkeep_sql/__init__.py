# SPDX-License-Identifier: Apache-2.0
"""SQL in a session: DuckDB behind the lines of kernels/driver."""
