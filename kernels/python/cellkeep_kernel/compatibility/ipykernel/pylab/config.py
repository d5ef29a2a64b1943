# SPDX-License-Identifier: Apache-2.0
from matplotlib_inline.config import *  # noqa: F403
