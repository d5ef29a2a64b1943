# SPDX-License-Identifier: Apache-2.0
"""The SQL driver: cells run on a DuckDB of the session's own. Started by cellkeep-kernel-driver."""

import os
import sys

# Started with -I, so that nothing in the working directory is taken for a module.
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), sys.argv[1]]

import cellkeep_driver  # noqa: E402
from cellkeep_sql.kernel import SqlDriver  # noqa: E402

if __name__ == "__main__":
    cellkeep_driver.serve(SqlDriver())
