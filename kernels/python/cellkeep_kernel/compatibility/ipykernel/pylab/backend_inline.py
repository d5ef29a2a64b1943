# SPDX-License-Identifier: Apache-2.0
"""Where matplotlib's inline backend was before it became matplotlib_inline."""

from matplotlib_inline.backend_inline import *  # noqa: F403
from matplotlib_inline.backend_inline import _enable_matplotlib_integration  # noqa: F401
