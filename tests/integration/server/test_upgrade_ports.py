# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while sessions have tokens for their ports: the tokens stay good, and none becomes good that was not."""

from collections.abc import Iterator

import pytest
import requests

from harness import LEAN, Server, Session
from inner_servers import host_of, issue, start_http, visit
from modes import ModeServer
from upgrades import BARE, Asked, Place

pytestmark = pytest.mark.both_modes


@pytest.fixture(scope="module")
def server(mode: str, place: Place) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *BARE) as running:
        yield running


def upgrade(server: Server) -> None:
    Asked(server).wait_until_served()


def status_of(server: Server, session: Session, port: int, token: str) -> int:
    headers = {"Cellkeep-Preview-Token": token}
    with requests.Session() as visitor:
        return visit(server, visitor, host_of(session, port), headers=headers).status_code


def tokens_of(server: Server, session: Session, port: int) -> dict:
    return server.get(f"{session.path}/ports/{port}/tokens").json()


def revoke(server: Server, session: Session, port: int, issued: dict) -> int:
    path = f"{session.path}/ports/{port}/tokens/{issued['token_id']}"
    return server.request("DELETE", path).status_code


def test_tokens_stay_good_and_can_be_revoked(server: Server, session: Session) -> None:
    port = start_http(session)
    kept, revoked, later = (issue(session, port) for _ in range(3))
    assert revoke(server, session, port, revoked) == 204
    listed = tokens_of(server, session, port)
    for _ in range(2):
        upgrade(server)
        assert tokens_of(server, session, port) == listed
        assert status_of(server, session, port, kept["token"]) == 200
        assert status_of(server, session, port, revoked["token"]) == 401
        assert status_of(server, session, port, kept["token"] + "x") == 401
    assert revoke(server, session, port, later) == 204
    assert status_of(server, session, port, later["token"]) == 401
    other = issue(session, port)
    assert other["token_id"] not in {one["token_id"] for one in (kept, revoked, later)}
    assert status_of(server, session, port, other["token"]) == 200


def test_a_program_that_reads_no_tokens_waits_for_them(
    server: Server, place: Place, session: Session
) -> None:
    port = start_http(session)
    issued = issue(session, port)
    without = server.create()
    with place.older(4):
        asked = Asked(server)
        why = "it has preview tokens, and the other program takes over none such"
        assert asked.wait("waiting")["for"] == [f"{session.info['id']} ({why})"]
        assert status_of(server, session, port, issued["token"]) == 200
        assert session.delete() == 204
        asked.wait_until_served()
    assert without.value("1") == "1"
    without.delete()


def test_after_a_failed_exec_tokens_are_good(mode: str, place: Place) -> None:
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        port = start_http(session)
        issued = issue(session, port)
        place.fail_after_the_check()
        try:
            Asked(server).wait("failed")
        finally:
            place.put_program()
        assert status_of(server, session, port, issued["token"]) == 200
        assert status_of(server, session, port, issued["token"][:-1]) == 401
        upgrade(server)
        assert status_of(server, session, port, issued["token"]) == 200
