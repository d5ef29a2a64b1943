# SPDX-License-Identifier: Apache-2.0
"""Requests and messages that other threads read (http::kTextReadAtOnceBytesMax): the answers are
those of short ones, and in order."""

import base64
import json
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from channels_client import ChannelsClient
from harness import TOKEN, Client, Server, Session

LONG = "x" * 300_000


def request_text(path: str, body: str) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


def read_answer(stream: socket.SocketIO) -> tuple[int, dict]:
    status = int(stream.readline().split(b" ")[1])
    length = 0
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, json.loads(stream.read(length))


def test_pipelined_requests_are_answered_in_order(server: Server, session: Session) -> None:
    path = session.path + "/executions"
    bodies = [
        json.dumps({"code": f"print(1)  # {LONG}"}),
        json.dumps({"code": "print(2)"}),
        '{"code": "print(3)", "reasoning": "' + LONG + '"',
        json.dumps({"code": f"print(4)  # {LONG}"}),
        json.dumps({"code": "print(5)", "nonsense": LONG}),
        json.dumps({"code": "print(6)"}),
    ]
    url = urlsplit(server.url)
    with socket.create_connection((url.hostname, url.port), timeout=60) as one:
        one.sendall(b"".join(request_text(path, body) for body in bodies))
        with one.makefile("rb") as stream:
            answers = [read_answer(stream) for _ in bodies]
    assert [status for status, _ in answers] == [200, 200, 400, 200, 422, 200]
    assert answers[2][1]["type"] == "/problems/malformed-json"
    assert answers[4][1]["errors"][0]["pointer"] == "/nonsense"
    assert [answers[n][1]["stdout"] for n in (0, 1, 3, 5)] == ["1\n", "2\n", "4\n", "6\n"]


def test_long_files_are_there_before_the_code_runs(server: Server) -> None:
    data = bytes(range(256)) * 20_000
    encoded = base64.b64encode(data).decode()
    session = server.create(files=[{"path": "a/first", "base64": encoded}])
    equal = "open({!r}, 'rb').read() == bytes(range(256)) * 20_000"
    assert session.value(equal.format("a/first")) == "True"
    done = session.execute(equal.format("second"), files=[{"path": "second", "base64": encoded}])
    assert done["result"]["text/plain"] == "True"
    assert done["artifacts"] == []  # what came with the code is not its own
    for files, what in (
        ([{"path": "a", "base64": encoded}], "a directory is there"),
        ([{"path": "b", "base64": encoded + "="}], "no base64"),
        ([{"path": "../b", "base64": encoded}], "outside"),
    ):
        refused = server.post(session.path + "/executions", {"code": "1", "files": files})
        failed = refused.status_code == 200 and refused.json()["status"] == "error"
        assert failed or refused.status_code == 422, (what, refused.text[:300])
    assert server.post("/v1/sessions", {"files": [{"path": "b", "base64": encoded[1:]}]}).status_code == 422
    assert session.value("__import__('os').path.exists('b')") == "False"
    assert session.delete() == 204


@pytest.mark.parametrize("v1", [True, False], ids=["v1", "legacy"])
def test_long_messages_of_a_websocket(session: Session, v1: bool) -> None:
    with ChannelsClient(session, v1=v1).connect() as client:
        sent = [client.execute(code) for code in (f"a = '{LONG}'", "b = len(a)", f"c = '{LONG}'", "b")]
        replies = []
        while len(replies) < len(sent):
            replies.append(client.receive_until("execute_reply")[-1])
        assert [each["parent_header"]["msg_id"] for each in replies] == sent
        assert all(each["content"]["status"] == "ok" for each in replies)
        broken = client.send("execute_request", {"code": LONG, "silent": LONG}, channel="nowhere")
        refused = client.receive_until("execute_reply", broken)[-1]
        assert refused["content"]["ename"] == "MessageRefused"
        assert client.run("len(c)")[-2]["content"]["status"] == "ok"
    assert session.value("b") == str(len(LONG))


def test_long_messages_over_zeromq(session: Session, attach: Callable[[Session], Client]) -> None:
    client = attach(session)
    kernel = client.kernel
    sent = [kernel.execute(code) for code in (f"a = '{LONG}'", "b = len(a)", f"c = '{LONG}'")]
    replies = [kernel.get_shell_msg(timeout=60) for _ in sent]
    assert [each["parent_header"]["msg_id"] for each in replies] == sent
    assert all(each["content"]["status"] == "ok" for each in replies)
    assert session.value("b == len(c)") == "True"
