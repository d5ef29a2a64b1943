# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while clients are connected and wait for nothing: their connections pass, and they notice nothing."""

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from certificates import make_certificate
from harness import LEAN, TOKEN, Server
from upgrades import (
    BARE,
    SECONDS_MAX,
    WAIT,
    Asked,
    Place,
    begin_request,
    end_request,
    let_go,
    open_place,
    wait_until_begun,
)

UPGRADES = 3


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with open_place("root") as made:
        yield made


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with Server(*LEAN, *BARE) as running:
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


@pytest.mark.parametrize("formats", ["1", "1, 2"])
def test_for_a_program_that_takes_no_connections_over_each_is_closed_or_answered(
    server: Server, place: Place, formats: str
) -> None:
    place.put_script(
        f"""case "$*" in *--take-over-check) echo '{{"take_over":{{"formats":[{formats}],"version":"0.1"}}}}' ;;""",
        f'*) exec -a {place.path} {place.real} "$@" ;; esac',
        first="#!/bin/bash",
    )
    idle = connect(server)
    assert ask(idle) == 200
    with begin_request(server) as held:
        asked = Asked(server)
        # Its end, and no reset: the pause has begun.
        assert idle.sock.recv(1) == b""
        later = connect(server)
        later.request("GET", "/v1/sessions", headers={"Authorization": f"Bearer {TOKEN}"})
        end_request(held)
    asked.wait_until_served()
    # It waited for the other program.
    assert later.getresponse().status == 200
    idle.close()
    later.close()
    place.put_program()
    Asked(server).wait_until_served()


def test_a_client_of_tls_that_waits_for_its_answer_is_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of its TLS connection is in this program's memory."""
    certificate, key = make_certificate(place.folder)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    arguments = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with Server(*LEAN, *BARE, *arguments) as server, ThreadPoolExecutor(max_workers=1) as pool:
        assert server.url.startswith("https://")
        session = server.create()
        answer = pool.submit(server.post_apart, session.path + "/executions", {"code": WAIT})
        wait_until_begun(session)
        (running,) = server.get(session.path + "/executions").json()["executions"]
        asked = Asked(server)
        why = "a client waits for it on a connection that cannot pass"
        assert asked.wait("waiting")["for"] == [f"{running['id']} ({why})"]
        assert session.fetch()["state"] == "busy"
        let_go(session)
        assert answer.result(SECONDS_MAX).json()["status"] == "ok"
        asked.wait_until_served()
        assert session.value("6 * 7") == "42"
        assert session.delete() == 204
