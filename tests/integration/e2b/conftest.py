# SPDX-License-Identifier: Apache-2.0
"""One server per test file, and E2B's own clients, unchanged, pointed at it by three variables."""

from collections.abc import Iterator

import pytest
from e2b_code_interpreter import Sandbox

from harness import LEAN, TOKEN, Server

pytest_plugins = ["server_logs"]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Lean, unless the file says `LIBRARIES = True`."""
    preload = () if getattr(request.module, "LIBRARIES", False) else LEAN
    with Server(*preload, "--log-format", "text") as running:
        yield running


@pytest.fixture(autouse=True)
def pointed_at(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", TOKEN)
    monkeypatch.setenv("E2B_API_URL", server.url)
    monkeypatch.setenv("E2B_SANDBOX_URL", server.url)


@pytest.fixture(scope="module")
def shared(server: Server) -> Iterator[Sandbox]:
    """A sandbox for tests that leave it as it was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("E2B_API_KEY", TOKEN)
        patch.setenv("E2B_API_URL", server.url)
        patch.setenv("E2B_SANDBOX_URL", server.url)
        sandbox = Sandbox.create(timeout=600)
        yield sandbox
        sandbox.kill()


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    own = Sandbox.create(timeout=600)
    yield own
    own.kill()
