# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one server per test file, one session per test, clients that are closed again."""

from collections.abc import Callable, Iterator

import pytest

from harness import Client, Server, Session


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--log-format", "text") as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = server.create()
    yield created
    assert created.delete() in (204, 404, 410)


@pytest.fixture
def attach() -> Iterator[Callable[[Session], Client]]:
    clients: list[Client] = []

    def make(session: Session) -> Client:
        clients.append(Client(session))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
