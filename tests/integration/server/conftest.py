# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one server per test file and mode, one session per test, and clients that are closed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import LEAN, Client, Server, Session
from modes import ModeServer, choose_modes, keep_chosen, open_folder
from upgrades import Place, open_place

pytest_plugins = ["server_logs"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    choose_modes(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep_chosen(config, items)


@pytest.fixture(scope="module")
def server(mode: str, request: pytest.FixtureRequest) -> Iterator[Server]:
    """Lean, unless the file says `LIBRARIES = True`."""
    preload = () if getattr(request.module, "LIBRARIES", False) else LEAN
    with ModeServer(mode, *preload, "--log-format", "text") as running:
        yield running


@pytest.fixture(scope="module")
def place(mode: str) -> Iterator[Place]:
    """The path that servers are started from, where a test puts the program that replaces them."""
    with open_place(mode) as made:
        yield made


@pytest.fixture(scope="module")
def folder(mode: str) -> Iterator[Path]:
    """A directory that the server's user owns and can reach."""
    with open_folder(mode) as path:
        yield path


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
