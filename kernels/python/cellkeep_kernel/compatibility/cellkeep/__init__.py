# SPDX-License-Identifier: Apache-2.0
"""What Cellkeep gives to code that it runs: the tools that the caller of a cell lends to it.

>>> from cellkeep import tools
>>> tools.weather(city="Oslo")  # doctest: +SKIP
{'degrees': -3}
"""

from cellkeep_kernel.tools import ResultFile, ToolError, tools

__all__ = ["ResultFile", "ToolError", "tools"]
