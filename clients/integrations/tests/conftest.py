# SPDX-License-Identifier: Apache-2.0
"""A real server for the adapters, found as a user's would be: by the environment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cellkeep import Client
from harness import LEAN, TOKEN, Server


@contextmanager
def reachable(server: Server) -> Iterator[Server]:
    """The variables that lead a client to this server, within the block."""
    kept = {name: os.environ.get(name) for name in ("CELLKEEP_URL", "CELLKEEP_TOKEN")}
    os.environ.update(CELLKEEP_URL=server.url, CELLKEEP_TOKEN=TOKEN)
    try:
        yield server
    finally:
        for name, value in kept.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text") as running, reachable(running):
        yield running


@pytest.fixture(scope="module")
def small_server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text", "--max-sessions", "1", "--prespawn-count", "0") as running:
        yield running


@pytest.fixture
def full_server(small_server: Server) -> Iterator[Server]:
    """One that has no room for another session."""
    with reachable(small_server), Client() as client, client.create():
        yield small_server


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of a server that is not there."""
    monkeypatch.setenv("CELLKEEP_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CELLKEEP_TOKEN", TOKEN)
    # A client asks again five times; these tests need not wait for it.
    monkeypatch.setattr("cellkeep._http.retry_delay", lambda *_: 0.0)
    monkeypatch.setattr("cellkeep._aio_http.retry_delay", lambda *_: 0.0)


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client() as made:
        yield made


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def end_session(session_id: str) -> None:
    """Ends a session with another client than the one that uses it."""
    with Client() as other:
        other.session(session_id).close()


def session_ids() -> set[str]:
    with Client() as other:
        return {info.id for info in other.sessions() if info.state != "ended"}
