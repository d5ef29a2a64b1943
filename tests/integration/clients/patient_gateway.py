# SPDX-License-Identifier: Apache-2.0
"""Jupyter's gateway client with a pause between two looks for a message.

It looks in a loop without one, and takes a whole processor for as long as a notebook runs.
"""

import asyncio
from types import SimpleNamespace

from jupyter_server.gateway import managers
from jupyter_server.gateway.managers import GatewayKernelManager

__all__ = ["GatewayKernelManager"]

PAUSE_SECONDS = 0.005


async def pause(_: float) -> None:
    await asyncio.sleep(PAUSE_SECONDS)


# The only thing of asyncio's that this module of Jupyter's uses.
managers.asyncio = SimpleNamespace(sleep=pause)
