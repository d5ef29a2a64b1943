# SPDX-License-Identifier: Apache-2.0
"""A real server for the client, found as a user's would be: by the environment."""

import os
from collections.abc import Iterator

import pytest
from harness import LEAN, TOKEN, Server

from cellkeep import Client, Session


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    inputs = tmp_path_factory.mktemp("inputs")
    (inputs / "big.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with Server(*LEAN, "--log-format", "text", "--inputs", str(inputs)) as running:
        kept = {name: os.environ.get(name) for name in ("CELLKEEP_URL", "CELLKEEP_TOKEN")}
        os.environ.update(CELLKEEP_URL=running.url, CELLKEEP_TOKEN=TOKEN)
        yield running
        for name, value in kept.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client() as made:
        yield made


@pytest.fixture
def session(client: Client) -> Iterator[Session]:
    with client.create() as made:
        yield made
