# SPDX-License-Identifier: Apache-2.0
"""One server per test file, one session and one attached client per test."""

from collections.abc import Iterator

import pytest

from harness import LEAN, Client, Server, Session


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text") as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = server.create()
    yield created
    assert created.delete() in (204, 410)


@pytest.fixture
def client(session: Session) -> Iterator[Client]:
    attached = Client(session)
    yield attached
    attached.close()
