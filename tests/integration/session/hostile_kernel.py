# SPDX-License-Identifier: Apache-2.0
"""A kernel process that is an attacker's program. hostile_link_test.cpp runs it inside a sandbox.

Arguments: a seed, and the name of one attack or "random". With "good" it is an honest kernel that
echoes its code, for the session next door. It speaks v1 frames over descriptor 3 with only the
standard library; an attack is a function of the request's header.
"""

import json
import os
import random
import signal
import socket
import struct
import sys
from collections.abc import Callable

rng = random.Random(int(sys.argv[1]))
attack = sys.argv[2]
link = socket.socket(fileno=3)
CHANNELS = ("shell", "control", "stdin", "iopub")
NEGATIVE = (-1, -(2**31), -(2**63), 2**64, -(2**100), 1e308, -0.5, None, "5", [], {})
KINDS = (
    "status stream display_data update_display_data execute_result error clear_output comm_open "
    "comm_msg comm_close execute_input input_request execute_reply kernel_info_reply debug_reply "
    "debug_event shutdown_reply interrupt_reply complete_reply iopub_welcome cellkeep_adopt_reply"
).split()
KEYS = (
    "execution_state name text data metadata transient display_id status ename evalue traceback "
    "execution_count payload user_expressions prompt password wait comm_id target_name code "
    "matches cursor_start cursor_end found success seq type event body"
).split()


def exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = link.recv(size - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data


def receive() -> list[bytes]:
    frame = exactly(struct.unpack("<I", exactly(4))[0])
    count = struct.unpack_from("<Q", frame)[0]
    at = struct.unpack_from(f"<{count}Q", frame, 8)
    return [frame[at[i] : at[i + 1]] for i in range(count - 1)]


def frame_of(parts: list[bytes]) -> bytes:
    at = [8 * (len(parts) + 2)]
    for part in parts:
        at.append(at[-1] + len(part))
    return struct.pack(f"<{len(at) + 1}Q", len(at), *at) + b"".join(parts)


def put(frame: bytes) -> None:
    link.sendall(struct.pack("<I", len(frame)) + frame)


def header(kind: str, **fields: object) -> str:
    usual = {"msg_id": "%016x" % rng.getrandbits(64), "session": "h", "username": "x"}
    return json.dumps({**usual, "date": "now", "msg_type": kind, "version": "5.5", **fields})


def send(channel: str, kind: str, parent: str, content: object, **more: object) -> None:
    text = content if isinstance(content, (str, bytes)) else json.dumps(content)
    parts = [channel, header(kind, **more), parent, "{}", text]
    put(frame_of([part if isinstance(part, bytes) else part.encode() for part in parts]))


def reply(parent: str, **content: object) -> None:
    send("shell", "execute_reply", parent, {"status": "ok", "execution_count": 1, **content})


def idle(parent: str) -> None:
    send("iopub", "status", parent, {"execution_state": "idle"})


def value(depth: int = 0) -> object:
    """Any JSON value, more often the wrong one than the right one."""
    choice = rng.randrange(12 if depth < 4 else 8)
    if choice >= 10:
        return {rng.choice(KEYS): value(depth + 1) for _ in range(rng.randrange(5))}
    if choice >= 8:
        return [value(depth + 1) for _ in range(rng.randrange(5))]
    words = ("ok", "error", "busy", "idle", "stdout", "stderr", "text/plain", "\ud800", "\0", "")
    return (
        None,
        True,
        rng.choice(NEGATIVE[:7]),
        rng.randrange(-5, 5),
        rng.choice(words[:7] + words[8:]),
        "x" * rng.randrange(3000),
        rng.random(),
        "\u00e9\U0001f600",
    )[choice]


def content() -> dict:
    kind = {rng.choice(KEYS): value() for _ in range(rng.randrange(6))}
    if rng.random() < 0.3:
        kind["data"] = {"text/plain": value(), "image/png": value(), "application/json": value()}
    return kind


def parents(parent: str) -> str:
    own = json.loads(parent)
    return rng.choice(
        [
            parent,
            "{}",
            json.dumps({"msg_id": "other"}),
            json.dumps({**own, "session": "other"}),
            json.dumps({**own, "msg_id": own["msg_id"][:-1]}),
            json.dumps({**own, "msg_id": ["x"], "msg_type": 5}),
            "[]",
            "null",
            "5",
        ]
    )


def forever() -> None:
    while True:
        signal.pause()


def in_a_child(action: Callable[[], None]) -> None:
    if os.fork() == 0:
        while True:
            action()


def lying_tables(parent: str) -> None:
    frame = frame_of([b"iopub", header("status").encode(), parent.encode(), b"{}", b"{}"])
    table = bytearray(frame[:56])
    for _ in range(rng.randrange(1, 4)):
        number = rng.choice([0, 1, 2**63, 2**64 - 1, len(frame), len(frame) + 1, 7, rng.getrandbits(64)])
        struct.pack_into("<Q", table, 8 * rng.randrange(7), number)
    put(bytes(table) + frame[56:])


def wrong_text(parent: str) -> None:
    text = rng.choice(
        [
            b"[" * 100_000,
            b'{"a":' * 5000 + b"1" + b"}" * 5000,
            b"\xff\xfe{}",
            b'{"text": "\xed\xa0\x80"}',
            b'{"text": "\\ud800"}',
            b'{"a": NaN}',
            b'{"a": 1e999}',
            b'{"a": 1, "a": {}}',
            b"{}" * 3,
            b"",
            b"\0",
            b"null",
            b'{"text": "\0"}',
            b'{"execution_state": "idle"',
        ]
    )
    parts = [b"iopub", header(rng.choice(KINDS)).encode(), parent.encode(), b"{}", b"{}"]
    parts[rng.randrange(1, 5)] = text
    put(frame_of(parts))


def wrong_header(parent: str) -> None:
    fields = rng.choice(
        [
            {"msg_id": "x" * rng.choice([1024, 1025, 70_000])},
            {"msg_id": ""},
            {"msg_type": ""},
            {"msg_type": 5},
            {"session": None},
            {"username": [1]},
            {"subshell_id": "x"},
            {"date": "x" * 2000},
        ]
    )
    send("iopub", "status", parent, content(), **fields)


def buffers(parent: str, count: int) -> None:
    parts = [b"iopub", header("comm_msg").encode(), parent.encode(), b"{}", b'{"comm_id": "c"}']
    put(frame_of(parts + [b"x"] * count))


ATTACKS: dict[str, Callable[[str], None]] = {
    "garbage": lambda p: link.sendall(rng.randbytes(rng.randrange(1, 5000))),
    "a length of zero": lambda p: link.sendall(bytes(4)),
    "a length past the bound": lambda p: link.sendall(struct.pack("<I", 0xFFFFFFFF)),
    "a length that is never filled": lambda p: link.sendall(struct.pack("<I", 120 << 20) + b"x"),
    "tables that lie": lying_tables,
    "text that is wrong": wrong_text,
    "headers that are wrong": wrong_header,
    "channel that is none": lambda p: send(rng.choice(["", "shel", "x" * 9999]), "status", p, {}),
    "parents of others": lambda p: send(
        rng.choice(CHANNELS), rng.choice(KINDS), parents(p), content()
    ),
    "the idle of others": lambda p: idle(json.dumps({"msg_id": "other", "session": "other"})),
    "answers never asked": lambda p: send(rng.choice(CHANNELS[:3]), rng.choice(KINDS), "{}", content()),
    "reply twice": lambda p: (reply(p), reply(p)),
    "idle twice": lambda p: (idle(p), idle(p)),
    "idle before the reply": lambda p: (idle(p), reply(p)),
    "negative counts": lambda p: reply(p, execution_count=rng.choice(NEGATIVE)),
    "input asked of no client": lambda p: send("stdin", "input_request", p, content()),
    "as many buffers as may be": lambda p: buffers(p, 1024),
    "one buffer too many": lambda p: buffers(p, 1025),
    "very many buffers": lambda p: buffers(p, 100_000),
    "a large message": lambda p: send(
        "iopub", "stream", p, {"name": "stdout", "text": "x" * (20 << 20)}
    ),
    "a flood of small messages": lambda p: [
        send("iopub", "stream", p, {"name": "stdout", "text": "x"}) for _ in range(3000)
    ],
    "a flood of displays": lambda p: [
        send("iopub", "display_data", p, {"data": {"text/plain": "x" * 30_000}, "metadata": {}})
        for _ in range(300)
    ],
    "pipes that never end": lambda p: in_a_child(
        lambda: (os.write(1, rng.randbytes(60_000)), os.write(2, b"\xf0\x9f" * 30_000))
    ),
    "a child that talks for ever": lambda p: in_a_child(
        lambda: send("iopub", "stream", p, {"name": "stdout", "text": "x" * 100})
    ),
    "closed in the middle of a frame": lambda p: (
        link.sendall(struct.pack("<I", 1000) + b"x" * 500),
        link.shutdown(socket.SHUT_RDWR),
    ),
    "closed for writing": lambda p: link.shutdown(socket.SHUT_WR),
    "closed for reading": lambda p: link.shutdown(socket.SHUT_RD),
    "no answer at all": lambda p: None,
    "stalls": lambda p: forever(),
    "stalls and ignores signals": lambda p: (
        signal.signal(signal.SIGINT, signal.SIG_IGN),
        forever(),
    ),
    "stops itself": lambda p: os.kill(os.getpid(), signal.SIGSTOP),
    "dies": lambda p: os._exit(rng.randrange(256)),
    "dies by a signal": lambda p: os.kill(os.getpid(), rng.choice([6, 9, 11])),
}
# These end the conversation or take long: a random run has one of them now and then.
LAST = [name for name in ATTACKS if name.startswith(("clos", "stall", "stop", "die", "no answer", "a "))]


def execute(parent: str, code: str) -> None:
    if attack == "good":
        send("iopub", "stream", parent, {"name": "stdout", "text": code})
    elif attack == "random":
        gentle = [name for name in ATTACKS if name not in LAST]
        for _ in range(rng.randrange(20)):
            ATTACKS[rng.choice(gentle)](parent)
        if rng.random() < 0.5:
            ATTACKS[rng.choice(LAST)](parent)
    else:
        ATTACKS[attack](parent)
    reply(parent)
    idle(parent)


while True:
    if attack == "names":
        print("\n".join(ATTACKS))
        break
    _, request, _, _, body = receive()[:5]
    asked = request.decode()
    kind = json.loads(asked)["msg_type"]
    if kind == "kernel_info_request":
        send("shell", "kernel_info_reply", asked, {"status": "ok"})
        idle(asked)
    elif kind == "execute_request":
        execute(asked, json.loads(body)["code"])
