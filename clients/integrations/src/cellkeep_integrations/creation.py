# SPDX-License-Identifier: Apache-2.0
"""What making a sandbox needs, blocking or with asyncio: a mark by which a session is found again whose creation
was cut off, and how long a full server is asked again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from cellkeep import CellkeepError

from .reasons import SandboxBroken, broken_by

#: Seconds that a sandbox's creation waits for a server that is full.
PATIENCE_SECONDS = 60.0
#: The key of the mark in a session's metadata.
MARK = "cellkeep_integrations"
_PAUSE_SECONDS_MIN, _PAUSE_SECONDS_MAX = 0.1, 10.0


class Creation:
    """One sandbox that is being made."""

    def __init__(self, options: Mapping[str, Any], patience: float) -> None:
        mark = secrets.token_hex(16)
        self.options = {**options, "metadata": {**(options.get("metadata") or {}), MARK: mark}}
        #: What finds the session among others.
        self.filter = {MARK: mark}
        self._deadline = time.monotonic() + patience
        self._tries = 0

    def pause(self, error: CellkeepError) -> float:
        """Seconds to wait before the next attempt. Raises :class:`SandboxBroken` if there is none."""
        broken = broken_by(error)
        left = self._deadline - time.monotonic()
        if broken.reason != "capacity" or left <= 0:
            raise broken from error
        backoff = _PAUSE_SECONDS_MIN * float(2 ** min(self._tries, 10))
        self._tries += 1
        asked = broken.retry_after if broken.retry_after is not None else backoff
        return min(left, max(_PAUSE_SECONDS_MIN, min(asked, _PAUSE_SECONDS_MAX)))


def no_session(error: CellkeepError) -> SandboxBroken:
    """The creation was cut off, and no session has its mark."""
    return SandboxBroken("unreachable", f"the creation of a session was cut off: {error}")
