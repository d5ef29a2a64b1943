# SPDX-License-Identifier: Apache-2.0
"""Where the server is and which token it wants.

In this order: what the caller says; ``CELLKEEP_URL`` and ``CELLKEEP_TOKEN``; the record that a
server of this user and machine keeps in its state directory (``CELLKEEP_STATE_DIR``, otherwise
``$XDG_STATE_HOME/cellkeep`` or ``~/.local/state/cellkeep``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

from .errors import ConnectionFailed

_ON_SOCKET = "http://localhost"


@dataclass(frozen=True)
class Target:
    """A server: its address, its token, and its Unix socket, if it listens on one."""

    url: str
    token: str = field(repr=False)
    socket: str | None = None


def _state_file(environment: Mapping[str, str]) -> Path:
    if state := environment.get("CELLKEEP_STATE_DIR"):
        return Path(state) / "server.json"
    home = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(home) / "cellkeep/server.json"


def _record(environment: Mapping[str, str]) -> dict[str, str]:
    try:
        record = json.loads(_state_file(environment).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def find_target(
    url: str | None = None,
    token: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Target:
    """The server to speak to.

    >>> find_target("unix:/run/me/cellkeep.sock", "secret").socket
    '/run/me/cellkeep.sock'
    >>> find_target("http://127.0.0.1:8888/base/?token=secret") == Target(
    ...     "http://127.0.0.1:8888/base", "secret")
    True
    """
    environment = os.environ if environment is None else environment
    address = url or environment.get("CELLKEEP_URL")
    secret = token
    if secret is None and address:
        secret = parse_qs(urlsplit(address).query).get("token", [None])[0]
    if secret is None:
        secret = environment.get("CELLKEEP_TOKEN")
    if not address:
        record = _record(environment)
        address = record.get("url")
        secret = secret if secret is not None else record.get("token")
    if not address:
        raise ConnectionFailed(
            "no server is known: start one with `cellkeep serve`, or give url and token, "
            "or set CELLKEEP_URL and CELLKEEP_TOKEN"
        )
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        return Target(_ON_SOCKET, secret or "", "/" + path.lstrip("/"))
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"not an address of a server: {address!r}")
    plain = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return Target(plain, secret or "")
