# SPDX-License-Identifier: Apache-2.0
"""Where matplotlib's inline backend was before it became matplotlib_inline."""

import matplotlib
from IPython import get_ipython
from matplotlib_inline.backend_inline import *  # noqa: F403
from matplotlib_inline.backend_inline import configure_inline_support

# What the other module does for itself, by its name: figures become pictures, at the cell's end too.
matplotlib.interactive(True)
configure_inline_support(get_ipython(), "module://matplotlib_inline.backend_inline")
