# SPDX-License-Identifier: Apache-2.0
"""The debug mode of E2B's clients: the server itself makes one sandbox, which needs no token. The operator
switches it on."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from e2b import SandboxException
from e2b_code_interpreter import Sandbox

from harness import LEAN, Server, binary

NAME = "debug_sandbox_id"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text", "--e2b-debug") as running:
        yield running


@pytest.fixture(autouse=True)
def debugging(pointed_at: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2B_API_KEY")
    monkeypatch.delenv("E2B_API_URL")
    monkeypatch.setenv("E2B_DEBUG", "true")


def ask(server: Server, path: str, **headers: str) -> requests.Response:
    names = {"E2b-Sandbox-Id": NAME, "E2b-Sandbox-Port": "49999", **headers}
    return requests.get(server.url + path, headers=names, timeout=60)


def test_the_clients_work_without_a_token(server: Server) -> None:
    sandbox = Sandbox.create()
    assert sandbox.sandbox_id == NAME
    sandbox.run_code("x = 41")
    assert sandbox.run_code("x + 1").text == "42"
    assert sandbox.commands.run("echo hi").stdout == "hi\n"
    sandbox.files.write("a.txt", "1")
    assert sandbox.files.read("a.txt") == "1"
    assert sandbox.is_running()
    # A second client has the same one, which is a session like any other.
    assert Sandbox.create().run_code("x").text == "41"
    (session,) = server.get("/v1/sessions").json()["sessions"]
    # When it has ended, the next use makes another.
    assert server.request("DELETE", f"/v1/sessions/{session['id']}").status_code == 204
    assert Sandbox.create().run_code("'x' in globals()").text == "False"


def test_only_clients_reach_it(server: Server) -> None:
    assert ask(server, "/health").status_code == 200
    # A page elsewhere cannot send the header that names it, and the address alone is not enough.
    names = {"E2b-Sandbox-Id": NAME, "E2b-Sandbox-Port": "49999"}
    for origin, status in ({"Origin": "http://evil.example"}, 403), ({}, 201):
        made = requests.post(server.url + "/contexts", json={}, headers={**names, **origin}, timeout=60)
        assert made.status_code == status or (status == 201 and made.ok), made.text
    port = server.url.rsplit(":", 1)[1]
    for address in (f"/e2b/{NAME}/49999/health", f"/e2b/{NAME}/49983/files?path=a"):
        assert requests.get(server.url + address, timeout=30).status_code == 401
    host = {"Host": f"49999-{NAME}.localhost:{port}"}
    assert requests.get(server.url + "/health", headers=host, timeout=30).status_code == 421
    # It opens nothing else.
    other = server.create()
    ident = other.info["id"].removeprefix("ses_")
    names = {"E2b-Sandbox-Id": NAME}
    for path in (f"/e2b/{ident}/49999/health", "/v1/sessions", "/v2/sandboxes"):
        assert requests.get(server.url + path, headers=names, timeout=30).status_code == 401, path
    assert other.delete() == 204


def test_other_servers_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(*LEAN, "--log-format", "text") as plain:
        assert ask(plain, "/health").status_code == 401
        monkeypatch.setenv("E2B_SANDBOX_URL", plain.url)
        with pytest.raises(SandboxException):
            Sandbox.create().run_code("1")
    refused = subprocess.run(
        [binary(), "serve", "--e2b-debug", "--listen", "0.0.0.0:0", "--token", "secret"]
        + ["--state-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode != 0 and "e2b-debug" in refused.stderr
