# SPDX-License-Identifier: Apache-2.0
"""Cellkeep's sandboxes for agent, evaluation and training frameworks: one module for each framework.

A module needs its framework, which the extra of the same name brings. This one needs none: it has the sandbox
that all of them stand on, and the reasons for which a sandbox fails.
"""

from .aio import AsyncBox
from .box import Box
from .commands import Ran
from .reasons import OutOfTime, Reason, SandboxBroken, SandboxLost

__version__ = "0.1.0"

__all__ = ["AsyncBox", "Box", "OutOfTime", "Ran", "Reason", "SandboxBroken", "SandboxLost"]
