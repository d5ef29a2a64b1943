# SPDX-License-Identifier: Apache-2.0
"""Servers with tool servers for the tests: their files, what they logged, what the programs received."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from harness import LEAN, Server, Session, wait_until

PATIENCE_SECONDS = 60
PROGRAM = str(Path(__file__).with_name("tool_program.py"))
IMPORT = "from cellkeep import ToolError, tools\n"
ALLOW = {"default": "allow"}
CREDENTIAL = "ghp_" + "Zx9" * 12


def program(folder: Path, mode: str = "usual", rules: dict | None = None, **more: object) -> dict:
    rules = ALLOW if rules is None else rules
    return {"command": sys.executable, "args": ["-B", PROGRAM, str(folder), mode], "cellkeep": rules, **more}


def write_servers(folder: Path, **servers: dict) -> str:
    path = folder / "mcp-servers.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    path.chmod(0o600)
    return str(path)


@contextmanager
def serving(folder: Path, *arguments: str, state_dir: Path | None = None, **servers: dict) -> Iterator[Server]:
    flags = ("--mcp-servers", write_servers(folder, **servers), "--prespawn-count", "0", *arguments)
    server = Server(*LEAN, *flags)
    server.state_dir = state_dir or server.state_dir
    with server as running:
        yield running


def names(session: Session) -> list[str]:
    done = session.execute(IMPORT + "print(*tools.list())")
    assert done["status"] == "ok", done
    return done["stdout"].split()


def await_tools(session: Session, name: str) -> None:
    wait_until(lambda: name in names(session), PATIENCE_SECONDS, f"{name} is there")


def events(server: Server, name: str) -> list[dict]:
    return server.events(name)


def said(server: Server, what: str) -> list[dict]:
    return [event for event in events(server, "tool_server") if event["what"] == what]


def received(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "received").read_text().splitlines()]


def calls(folder: Path) -> list[dict]:
    return [one["params"] for one in received(folder) if one.get("method") == "tools/call"]


def refusal(session: Session, call: str) -> tuple[str, str]:
    done = session.execute(IMPORT + f"try: {call}\nexcept ToolError as error: print(error.reason); print(error)")
    assert done["status"] == "ok", done
    reason, _, message = done["stdout"].partition("\n")
    return reason, message


def outcome(session: Session, call: str) -> dict | str:
    """The approval that the call waits for, withdrawn again; or "called", or why it was not. No
    error of the code, whose circuit breaker would open."""
    path, found, said_by_code = "", None, ""
    code = f"try: {call}\nexcept ToolError as error: print(error.reason)\nelse: print('called')"
    for event in session.events(IMPORT + code):
        if event["type"] == "started":
            path = f"{session.path}/executions/{event['id']}"
        if event["type"] == "approval":
            listed = session.server.get("/v1/approvals").json()["approvals"]
            (found,) = [one for one in listed if one["id"] == event["approval"]]
            assert session.server.post(path + "/interrupt").status_code == 204
        if event["type"] == "stdout":
            said_by_code += event["text"]
    return found or said_by_code.strip()


def asked_about(session: Session, call: str) -> dict | None:
    """The approval that the call waits for, withdrawn again. None: it does not wait for any."""
    came = outcome(session, call)
    return came if isinstance(came, dict) else None


def session_of(server: Server, token: str) -> Session:
    """Made by another principal; the administrator runs its code."""
    headers = {"Authorization": f"Bearer {token}"}
    made = requests.post(f"{server.url}/v1/sessions", json={}, headers=headers, timeout=60)
    assert made.status_code == 201, made.text
    return Session(server, made.json())
