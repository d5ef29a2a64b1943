# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while clients of MCP are connected: their sessions pass, and their streams end and can be opened again."""

from collections.abc import Iterator

import pytest
import requests

from harness import LEAN, Server
from upgrades import BARE, Asked, open_place

ACCEPT = "application/json, text/event-stream"
FILE = "cellkeep://sessions/{}/files/a.txt"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with open_place("root"), Server(*LEAN, *BARE) as running:
        running.wait_until_ready()
        yield running


class McpClient:
    """A client of a revision with client sessions."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.headers = {"Accept": ACCEPT}
        begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
        self.headers["Mcp-Session-Id"] = self.send("initialize", begin).headers["Mcp-Session-Id"]

    def send(self, method: str, params: dict) -> requests.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.server.request("POST", "/mcp", json=body, headers=self.headers)

    def listen(self) -> requests.Response:
        return self.server.request("GET", "/mcp", headers=self.headers, stream=True)

    def end(self) -> int:
        return self.server.request("DELETE", "/mcp", headers=self.headers).status_code


def updates(lines: Iterator[str]) -> Iterator[str]:
    return (line for line in lines if "notifications/resources/updated" in line)


def test_a_client_session_passes_with_its_subscriptions(server: Server) -> None:
    session = server.create()
    session.execute("open('a.txt', 'w').write('1')")
    client, ended = McpClient(server), McpClient(server)
    assert ended.end() == 204
    uri = FILE.format(session.info["id"])
    assert client.send("resources/subscribe", {"uri": uri}).json()["result"] == {}
    with client.listen() as stream:
        assert stream.status_code == 200
        Asked(server).wait_until_served()
        # It ends as a stream does that is whole: a client that is cut off would not know.
        assert not list(updates(stream.iter_lines(decode_unicode=True)))
    assert client.send("ping", {}).json()["result"] == {}
    assert ended.send("ping", {}).status_code == 404
    with client.listen() as stream:
        session.execute("open('a.txt', 'w').write('123')")
        assert uri in next(updates(stream.iter_lines(decode_unicode=True)))
    unsubscribed = client.send("resources/unsubscribe", {"uri": uri}).json()
    assert unsubscribed["result"] == {}
    assert client.end() == 204
    assert client.send("ping", {}).status_code == 404
    session.delete()


def test_a_client_session_passes_where_no_sandbox_lives(server: Server) -> None:
    client = McpClient(server)
    Asked(server).wait_until_served()
    assert client.send("ping", {}).json()["result"] == {}
    assert client.end() == 204


def test_who_listens_to_changes_is_told_that_it_is_over(server: Server) -> None:
    session = server.create()
    version = "2026-07-28"
    meta = {"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}
    wanted = {"resourceSubscriptions": [FILE.format(session.info["id"])]}
    body = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen"}
    body["params"] = {"notifications": wanted, "_meta": meta}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "subscriptions/listen", "Accept": ACCEPT}
    with server.request("POST", "/mcp", json=body, headers=headers, stream=True) as stream:
        lines = (line for line in stream.iter_lines(decode_unicode=True) if line.startswith("data: "))
        assert "acknowledged" in next(lines)
        Asked(server).wait_until_served()
        (last,) = lines
        assert '"id":7' in last and '"result"' in last
    session.delete()
