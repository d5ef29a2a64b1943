# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while clients are connected and wait for nothing: their connections pass, and they notice nothing."""

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from harness import LEAN, TOKEN, Server
from upgrades import BARE, Asked, open_place

UPGRADES = 3


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with open_place("root"), Server(*LEAN, *BARE) as running:
        running.wait_until_ready()
        yield running


def connect(server: Server) -> http.client.HTTPConnection:
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.connect()
    connection.auto_open = 0  # it is this connection or none
    return connection


def ask(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/v1/sessions", headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_connections_are_the_same_after_upgrades(server: Server) -> None:
    used, silent = connect(server), connect(server)
    assert ask(used) == 200
    for _ in range(UPGRADES):
        Asked(server).wait_until_served()
        assert ask(used) == 200
    assert ask(silent) == 200
    used.close()
    silent.close()


def test_a_watch_of_files_ends_whole(server: Server) -> None:
    session = server.create()
    with server.request("GET", f"{session.path}/files?watch=true", stream=True) as stream:
        lines = stream.iter_lines(decode_unicode=True)
        assert "ready" in next(lines)
        Asked(server).wait_until_served()
        assert not [line for line in lines if "changed" in line or "gone" in line]
    session.delete()
