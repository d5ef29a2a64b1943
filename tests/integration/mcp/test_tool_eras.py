# SPDX-License-Identifier: Apache-2.0
"""Tool servers that speak one era of the protocol alone, and such as lie about it: over stdio and over HTTP."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import LEAN, Server, Session, wait_until

ERAS = str(Path(__file__).with_name("era_server.py"))
PATIENCE_SECONDS = 60
USED = ("new", "old", "silent", "dies")
HOSTILE = ("liar", "endless")
OVER_HTTP = ("new", "old", "liar", "endless")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    rules = {"cellkeep": {"default": "allow"}}
    entries = {
        f"{kind}_stdio": {"command": sys.executable, "args": ["-B", ERAS, kind], **rules} for kind in (*USED, *HOSTILE)
    }
    with ExitStack() as stack:
        for kind in OVER_HTTP:
            port = free_port()
            process = stack.enter_context(subprocess.Popen([sys.executable, "-B", ERAS, kind, str(port)]))
            stack.callback(process.kill)
            wait_until(lambda port=port: is_open(port), PATIENCE_SECONDS, f"{kind} listens")
            entries[f"{kind}_http"] = {"url": f"http://127.0.0.1:{port}/mcp", **rules}
        path = tmp_path_factory.mktemp("eras") / "mcp-servers.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps({"mcpServers": entries}))
        yield stack.enter_context(Server(*LEAN, "--mcp-servers", str(path), "--prespawn-count", "0"))


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    one = server.create()
    yield one
    one.delete()


def run(session: Session, code: str) -> str:
    done = session.execute("from cellkeep import tools\n" + code)
    assert done["status"] == "ok", done
    return done["stdout"].strip()


def wait_for_tools(session: Session, name: str) -> None:
    wait_until(lambda: f"'{name}.told'" in run(session, "print(tools.list())"), PATIENCE_SECONDS, f"the tools of {name}")


def told(session: Session, name: str, **arguments: str) -> dict:
    wait_for_tools(session, name)
    return json.loads(run(session, f"print(tools.call('{name}.told', **{arguments!r}))"))


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_server_that_speaks_the_newest_revision_alone(session: Session, way: str) -> None:
    said = told(session, f"new_{way}", place="us west", word="x")
    assert said["params"]["arguments"] == {"place": "us west", "word": "x"}
    meta = said["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
    if way == "http":
        assert said["headers"]["mcp-param-place"] == "us west"
        said = told(session, "new_http", place="weiß")
        assert said["headers"]["mcp-param-place"] == "=?base64?d2Vpw58=?="
        assert "mcp-param-place" not in told(session, "new_http")["headers"]


@pytest.mark.parametrize("name", ["old_stdio", "old_http", "silent_stdio", "dies_stdio"])
def test_a_server_that_knows_the_handshake_alone(session: Session, name: str) -> None:
    said = told(session, name, place="here")
    assert "_meta" not in said["params"]
    if name.endswith("http"):
        assert said["headers"]["mcp-protocol-version"] == "2025-11-25"
        assert said["headers"]["mcp-session-id"] == "one"
        assert not {"mcp-method", "mcp-name", "mcp-param-place"} & set(said["headers"])


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_call_that_nobody_waits_for_is_cancelled(session: Session, way: str) -> None:
    name = f"new_{way}"
    wait_for_tools(session, name)
    events = session.events(f"from cellkeep import tools\ntools.{name}.slow()")
    for event in events:
        if event["type"] == "server_tool_call":
            assert session.post("interrupt").ok
    wait_until(lambda: run(session, f"print(tools.{name}.ended())") != "[]", PATIENCE_SECONDS, "it is cancelled")


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_hostile_server_is_left_out_and_the_others_serve(server: Server, session: Session, way: str) -> None:
    def lines_of(name: str) -> list[dict]:
        return [event for event in server.events("tool_server") if event.get("server") == name]

    wait_until(lambda: bool(lines_of(f"liar_{way}")), PATIENCE_SECONDS, "the liar is found out")
    assert {line["what"] for line in lines_of(f"liar_{way}")} == {"not_started"}
    assert told(session, f"new_{way}")
    names = run(session, "print(tools.list())")
    assert f"liar_{way}" not in names and f"endless_{way}" not in names
