# SPDX-License-Identifier: Apache-2.0
"""A Jupyter client over WebSocket, on the websocket-client package, in both framings."""

import json
import struct
import uuid

import websocket

from harness import TOKEN, Session

V1 = "v1.kernel.websocket.jupyter.org"
PATIENCE_SECONDS = 60


def types(messages: list[dict]) -> list[str]:
    return [message["header"]["msg_type"] for message in messages]


def states(messages: list[dict]) -> list[str]:
    return [
        message["content"]["execution_state"]
        for message in messages
        if message["header"]["msg_type"] == "status"
    ]


def pack_v1(channel: str, message: dict, buffers: list[bytes]) -> bytes:
    names = ("header", "parent_header", "metadata", "content")
    parts = [channel.encode(), *(json.dumps(message[name]).encode() for name in names), *buffers]
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(parts)


def unpack_v1(frame: bytes) -> dict:
    (count,) = struct.unpack_from("<Q", frame)
    offsets = struct.unpack_from(f"<{count}Q", frame, 8)
    parts = [frame[begin:end] for begin, end in zip(offsets, offsets[1:], strict=False)]
    message = {"channel": parts[0].decode(), "buffers": parts[5:]}
    for name, part in zip(("header", "parent_header", "metadata", "content"), parts[1:5], strict=True):
        message[name] = json.loads(part)
    return message


def pack_legacy(message: dict, buffers: list[bytes]) -> bytes:
    parts = [json.dumps(message).encode(), *buffers]
    offsets = [4 * (len(parts) + 1)]
    for part in parts[:-1]:
        offsets.append(offsets[-1] + len(part))
    return struct.pack(f">{len(offsets) + 1}I", len(parts), *offsets) + b"".join(parts)


def unpack_legacy(data: str | bytes) -> dict:
    if isinstance(data, str):
        return json.loads(data)
    (count,) = struct.unpack_from(">I", data)
    offsets = [*struct.unpack_from(f">{count}I", data, 4), len(data)]
    parts = [data[begin:end] for begin, end in zip(offsets, offsets[1:], strict=False)]
    return {**json.loads(parts[0]), "buffers": parts[1:]}


class ChannelsClient:
    """One client; connect() again is a reconnect of the same one."""

    def __init__(self, session: Session, *, v1: bool = True, session_id: str | None = None) -> None:
        self.session = session
        self.v1 = v1
        self.session_id = uuid.uuid4().hex if session_id is None else session_id
        self.socket: websocket.WebSocket | None = None

    def connect(self, query: str = "") -> "ChannelsClient":
        url = self.session.server.url.replace("http", "ws", 1)
        kernel = self.session.info["kernel_id"]
        self.socket = websocket.create_connection(
            f"{url}/api/kernels/{kernel}/channels?session_id={self.session_id}{query}",
            timeout=PATIENCE_SECONDS,
            subprotocols=[V1] if self.v1 else None,
            header=[f"Authorization: token {TOKEN}"],
            # To decode the text does that as well; this is a loop in Python over its bytes.
            skip_utf8_validation=True,
        )
        assert self.socket.getsubprotocol() == (V1 if self.v1 else None)
        return self

    def __enter__(self) -> "ChannelsClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def message(self, msg_type: str, content: dict, parent: dict | None = None) -> dict:
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": msg_type,
            "session": self.session_id,
            "username": "user",
            "version": "5.3",
        }
        return {"header": header, "parent_header": parent or {}, "metadata": {}, "content": content}

    def send(
        self,
        msg_type: str,
        content: dict,
        channel: str = "shell",
        parent: dict | None = None,
        buffers: list[bytes] | None = None,
    ) -> str:
        message = self.message(msg_type, content, parent)
        if self.v1:
            self.socket.send_binary(pack_v1(channel, message, buffers or []))
        elif buffers:
            self.socket.send_binary(pack_legacy({**message, "channel": channel}, buffers))
        else:
            self.socket.send(json.dumps({**message, "channel": channel, "buffers": []}))
        return message["header"]["msg_id"]

    def execute(self, code: str, **more: object) -> str:
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": True}
        return self.send("execute_request", {**content, "user_expressions": {}, **more})

    def receive(self) -> dict:
        data = self.socket.recv()
        assert data, "the server has closed the socket"
        return unpack_v1(data) if self.v1 else unpack_legacy(data)

    def receive_until(self, msg_type: str, request: str | None = None) -> list[dict]:
        """Everything up to this type of message, which answers the request if one is given."""
        messages = []
        while True:
            messages.append(self.receive())
            of_request = request in (None, messages[-1]["parent_header"].get("msg_id"))
            if of_request and messages[-1]["header"]["msg_type"] == msg_type:
                return messages

    def receive_until_idle(self, request: str) -> list[dict]:
        messages: list[dict] = []
        while True:
            messages += self.receive_until("status", request)
            if messages[-1]["content"]["execution_state"] == "idle":
                return messages

    def run(self, code: str) -> list[dict]:
        """The messages of this request."""
        request = self.execute(code)
        messages = self.receive_until_idle(request)
        return [each for each in messages if each["parent_header"].get("msg_id") == request]

    def close_frame(self) -> tuple[int, str]:
        """Reads until the server closes."""
        while True:
            opcode, data = self.socket.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                return struct.unpack("!H", data[:2])[0], data[2:].decode()
