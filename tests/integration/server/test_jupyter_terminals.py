# SPDX-License-Identifier: Apache-2.0
"""Jupyter's terminals: REST and terminado's protocol, in the sandbox of a session."""

import json

import pytest
import websocket

from harness import TOKEN, Server, Session

pytestmark = pytest.mark.both_modes

PATIENCE_SECONDS = 60


def test_a_terminal_opens_in_the_session(server: Server, session: Session) -> None:
    session.execute("open('seen.txt', 'w').write('by both')")
    made = server.post("/api/terminals", {"cwd": session.info["id"]})
    assert made.status_code == 200, made.text
    name = made.json()["name"]
    assert name in [one["name"] for one in server.get("/api/terminals").json()]
    socket = websocket.create_connection(
        server.url.replace("http", "ws", 1) + f"/terminals/websocket/{name}?token={TOKEN}",
        timeout=PATIENCE_SECONDS,
    )
    assert json.loads(socket.recv()) == ["setup", {}]
    # On its way to the prompt, bash reads the terminal's size and sets it again.
    prompt = ""
    while not prompt.endswith(("$ ", "# ")):
        prompt += json.loads(socket.recv())[1]
    socket.send(json.dumps(["set_size", 30, 100, 480, 800]))
    socket.send(json.dumps(["stdin", "cat seen.txt; echo; stty size; id -u; exit\n"]))
    seen = ""
    while True:
        kind, content = json.loads(socket.recv())
        if kind == "disconnect":
            break
        seen += content
    assert "by both" in seen and "30 100" in seen
    session.execute("import os")
    assert session.value("os.getuid()") in seen
    socket.close()
    assert server.get(f"/api/terminals/{name}").status_code == 404


def test_deleting_ends_the_shell(server: Server, session: Session) -> None:
    name = server.post("/api/terminals", {"cwd": session.info["id"]}).json()["name"]
    assert server.request("DELETE", f"/api/terminals/{name}").status_code == 204
    assert server.request("DELETE", f"/api/terminals/{name}").status_code == 404
    assert session.value("1 + 1") == "2"
