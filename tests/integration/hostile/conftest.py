# SPDX-License-Identifier: Apache-2.0
"""Fixtures: every test runs against a server of root's and against one of an ordinary user's."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))

from attacker import Attacker  # noqa: E402
from harness import LEAN, Server  # noqa: E402
from modes import MODES, ModeServer  # noqa: E402


@pytest.fixture(scope="session", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def server(mode: str) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, "--log-format", "text") as running:
        yield running


@pytest.fixture(scope="session")
def attacker(server: Server) -> Attacker:
    """The session that the attempts of one file share: none of them may change it."""
    return Attacker(server)


@pytest.fixture
def victim(server: Server) -> Iterator[Attacker]:
    """A session of the test's own, which may be broken."""
    own = Attacker(server)
    yield own
    assert own.session.delete() in (204, 404, 410)
