# SPDX-License-Identifier: Apache-2.0
"""Clients that do not read, or do not end what they send. Each attack is one agent's."""

import select
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness import TOKEN, Server
from table import listed

# How long an attack is kept up once it stands: the measurements go on meanwhile.
KEPT_UP_SECONDS = 5.0
BODY_ROUNDS = 10
# For what the server owes at once. A machine that is busy with other tests takes a part of it.
ANSWER_SECONDS = 120


@dataclass
class ClientAttack:
    name: str
    run: Callable[[Server], str]  # returns what the server answered
    holds: Callable[[str], bool]  # whether that is right


def connect(server: Server, head: str) -> socket.socket:
    url = urlsplit(server.url)
    one = socket.create_connection((url.hostname, url.port), timeout=ANSWER_SECONDS)
    one.sendall(f"{head}\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode())
    return one


def keep_up() -> None:
    threading.Event().wait(KEPT_UP_SECONDS)


def wait_for_first_bytes(sockets: list[socket.socket]) -> None:
    """Returns when the server has begun to answer each of them."""
    left = set(sockets)
    while left:
        ready, _, _ = select.select(list(left)[:1000], [], [], ANSWER_SECONDS)
        assert ready, f"{len(left)} connections got no answer"
        left.difference_update(ready)


def execute(server: Server, code: str) -> str:
    """The path of an execution that has ended."""
    limits = {"output_bytes": 64_000_000, "memory_mb": 1024, "wall_ms": 120_000, "cpu_ms": 120_000}
    session = server.post("/v1/sessions", {"limits": limits}).json()["id"]
    done = server.post(f"/v1/sessions/{session}/executions", {"code": code}).json()
    assert done["status"] == "ok", str(done)[:300]
    return f"/v1/sessions/{session}/executions/{done['id']}"


def delete_session(server: Server, path: str) -> None:
    server.request("DELETE", "/".join(path.split("/")[:4]))


def unread_answers(server: Server, size: float) -> str:
    path = execute(server, f"print('x' * {int(20_000_000 * size)})")
    with ExitStack() as stack:
        sockets = [stack.enter_context(connect(server, f"GET {path} HTTP/1.1")) for _ in range(40)]
        for one in sockets:
            one.sendall(b"\r\n")
        wait_for_first_bytes(sockets)
        keep_up()
    delete_session(server, path)
    return f"{len(sockets)} began"


def unread_streams(server: Server, size: float) -> str:
    path = execute(server, "for i in range(2000): print('a line of output', i, flush=True)")
    with ExitStack() as stack:
        head = f"GET {path}/events HTTP/1.1"
        sockets = [stack.enter_context(connect(server, head)) for _ in range(int(900 * min(1, size * 4)))]
        for one in sockets:
            one.sendall(b"Accept: text/event-stream\r\n\r\n")
        wait_for_first_bytes(sockets)
        keep_up()
    delete_session(server, path)
    return f"{len(sockets)} began"


def status_of(one: socket.socket) -> str:
    answer = b""
    while b"\r\n" not in answer:
        piece = one.recv(4096)
        if not piece:
            break
        answer += piece
    return answer.split(b" ", 2)[1].decode() if answer else "closed"


def send_bodies(server: Server, path: str, body: bytes) -> str:
    """Eight clients send it at the same time, again and again."""
    answers: Counter[str] = Counter()
    head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(BODY_ROUNDS):
        with ExitStack() as stack:
            sockets = [stack.enter_context(connect(server, f"POST {path} HTTP/1.1")) for _ in range(8)]
            for one in sockets:
                one.sendall(head + body)
            answers.update(status_of(one) for one in sockets)
    return listed(answers)


def bodies_of_many_values(server: Server, size: float) -> str:
    body = b'{"metadata": [' + b"[]," * int(3_000_000 * size) + b"[]]}"
    return send_bodies(server, "/v1/sessions", body)


def bodies_of_one_string(server: Server, size: float) -> str:
    body = b'{"metadata": {"a": "' + b"x" * int(9_000_000 * size) + b'"}}'
    return send_bodies(server, "/v1/sessions", body)


def bodies_with_files(server: Server, size: float) -> str:
    path = execute(server, "1")
    body = b'{"code": "1", "files": [{"path": "a", "base64": "' + b"AAAA" * int(2_250_000 * size) + b'"}]}'
    said = send_bodies(server, path.rpartition("/")[0], body)
    delete_session(server, path)
    return said


def bodies_that_stop(server: Server, size: float) -> str:
    """Each client sends all but the last byte, as far as the server reads it."""
    announced = 31_000_000  # more than the buffers of a socket hold
    sent: Counter[str] = Counter()
    with ExitStack() as stack:
        piece = b"x" * (1 << 20)
        sockets = [stack.enter_context(connect(server, "POST /v1/sessions HTTP/1.1")) for _ in range(int(8 + 32 * size))]
        left = {}
        for one in sockets:
            one.sendall(f"Content-Type: application/json\r\nContent-Length: {announced}\r\n\r\n".encode())
            one.setblocking(False)
            left[one] = announced - 1
        while left:
            _, writable, _ = select.select([], list(left), [], 1.0)
            if not writable:
                break
            for one in writable:
                left[one] -= one.send(piece[: min(left[one], len(piece))])
                if left[one] == 0:
                    del left[one]
        keep_up()
        sent.update("all" if one not in left else "part" for one in sockets)
    return listed(sent)


def read_exactly(one: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        piece = one.recv(count - len(read))
        assert piece, f"the connection ended after {read!r}"
        read += piece
    return read


def open_websocket(server: Server, path: str) -> socket.socket:
    one = connect(server, f"GET {path} HTTP/1.1")
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Any key will do (RFC 6455, section 4.1); what is to be shown is not the handshake.
    one.sendall(b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n")
    one.sendall(b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n")
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += read_exactly(one, 1)
    assert answer.startswith(b"HTTP/1.1 101 "), answer
    return one


def close_code(one: socket.socket) -> str:
    """That of the close frame, before which others may come (RFC 6455, sections 5.2 and 5.5.1)."""
    while True:
        first, length = read_exactly(one, 2)
        if length == 126:
            length = int.from_bytes(read_exactly(one, 2), "big")
        elif length == 127:
            length = int.from_bytes(read_exactly(one, 8), "big")
        payload = read_exactly(one, length)
        if first & 0x0F == 0x8:
            return str(int.from_bytes(payload[:2], "big"))


def long_messages(server: Server, size: float) -> str:
    """Two clients, each with one message that comes in small pieces and is none of Jupyter's. So nothing answers
    it but the end of the conversation, for which they then ask."""
    session = server.post("/v1/sessions", {}).json()
    length = int(60_000_000 * size)
    # A masked text frame; the mask is zero (RFC 6455, section 5.2).
    head = b"\x81\xff" + length.to_bytes(8, "big") + bytes(4)
    piece = b"x" * 1400
    codes: list[str] = []

    def send() -> None:
        with open_websocket(server, f"/api/kernels/{session['kernel_id']}/channels") as one:
            one.sendall(head)
            for begin in range(0, length, len(piece)):
                one.sendall(piece[: length - begin])
            one.sendall(b"\x88\x82" + bytes(4) + (1000).to_bytes(2, "big"))
            codes.append(close_code(one))

    clients = [threading.Thread(target=send) for _ in range(2)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    server.request("DELETE", f"/v1/sessions/{session['id']}")
    return listed(Counter(codes))


def client_attacks(size: float) -> list[ClientAttack]:
    """The attacks; size scales them, 1 is the full size."""
    return [
        ClientAttack(
            "40 answers that are not read", lambda server: unread_answers(server, size), "40 began".__eq__
        ),
        ClientAttack(
            "event streams that are not read",
            lambda server: unread_streams(server, size),
            lambda said: said.endswith(" began"),
        ),
        ClientAttack(
            "eight bodies of many values, ten times",
            lambda server: bodies_of_many_values(server, size),
            lambda said: said == f"{8 * BODY_ROUNDS} x 400",
        ),
        ClientAttack(
            "eight bodies of one long string, ten times",
            lambda server: bodies_of_one_string(server, size),
            lambda said: said == f"{8 * BODY_ROUNDS} x 422",
        ),
        ClientAttack(
            "eight bodies with a file, ten times",
            lambda server: bodies_with_files(server, size),
            lambda said: said == f"{8 * BODY_ROUNDS} x 200",
        ),
        ClientAttack(
            "two long WebSocket messages in small pieces",
            lambda server: long_messages(server, size),
            "2 x 1000".__eq__,
        ),
        # The server reads no more of them than limits::kArrivalPrincipalBytesMax.
        ClientAttack(
            "bodies that do not end",
            lambda server: bodies_that_stop(server, size),
            lambda said: "4 x all" in said and " x part" in said,
        ),
    ]
