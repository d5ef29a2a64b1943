# SPDX-License-Identifier: Apache-2.0
"""Pages of a notebook: clients that read all the time, and connect again when the server asks them to."""

import contextlib
import struct
import threading
from collections.abc import Callable

import websocket

from channels_client import PATIENCE_SECONDS, ChannelsClient, unpack_legacy, unpack_v1
from harness import Session

RESTART = 1012
# As @jupyterlab/services.
LAST_WORDS = (1000, 1001)


class FrameReader:
    """What comes on a socket: whole messages and control frames, none of which it answers."""

    def __init__(self, socket: websocket.WebSocket) -> None:
        self.socket = socket
        self.opcode = 0
        self.data = b""

    def read(self) -> tuple[int, bytes]:
        while True:
            frame = self.socket.recv_frame()
            if frame.opcode >= websocket.ABNF.OPCODE_CLOSE:
                return frame.opcode, frame.data
            self.opcode = frame.opcode or self.opcode
            self.data += frame.data
            if frame.fin:
                whole, self.data = self.data, b""
                return self.opcode, whole


class Tab(threading.Thread):
    """One page. It is known by its session_id, and keeps what it got."""

    def __init__(self, session: Session, *, v1: bool = True) -> None:
        super().__init__()
        self.client = ChannelsClient(session, v1=v1)
        self.changed = threading.Condition()
        self.sending = threading.Lock()  # while a message or a close frame is sent
        self.messages: list[dict] = []
        self.codes: list[int] = []  # with which the server has closed
        self.failure: BaseException | None = None
        self.leaving = False
        self.client.connect()

    def __enter__(self) -> "Tab":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.leaving = True
        with self.sending, contextlib.suppress(OSError, websocket.WebSocketException):
            self.client.socket.send_close()
        self.join()
        self.client.socket.shutdown()
        assert self.failure is None, self.failure

    def run(self) -> None:
        try:
            while self.listen():
                pass
        except BaseException as failure:
            with self.changed:
                self.failure = failure
                self.changed.notify_all()

    def listen(self) -> bool:
        """Until the socket is closed. Whether there is another."""
        reader = FrameReader(self.client.socket)
        while True:
            opcode, data = reader.read()
            if opcode == websocket.ABNF.OPCODE_PING:
                with self.sending:
                    self.client.socket.pong(data)
            elif opcode == websocket.ABNF.OPCODE_CLOSE:
                return self.follow(struct.unpack("!H", data[:2])[0])
            elif opcode != websocket.ABNF.OPCODE_PONG:
                self.keep(data)

    def keep(self, data: bytes) -> None:
        message = unpack_v1(data) if self.client.v1 else unpack_legacy(data.decode())
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()

    def follow(self, code: int) -> bool:
        """The server has closed. What others want to send waits until the page is there again."""
        with self.sending:
            again = not self.leaving and code not in LAST_WORDS
            if not self.leaving:
                self.client.socket.send_close(code)
            if again:
                self.client.socket.shutdown()
                self.client.connect()
        if not self.leaving:
            with self.changed:
                self.codes.append(code)
                self.changed.notify_all()
        return again

    def send(self, code: str) -> str:
        with self.sending:
            return self.client.execute(code)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        with self.changed:
            seen = self.changed.wait_for(lambda: self.failure or condition(), PATIENCE_SECONDS)
        assert self.failure is None, self.failure
        assert seen, f"not in time: {what}"

    def wait_for_codes(self, count: int) -> None:
        self.wait(lambda: len(self.codes) >= count, f"{count} times closed by the server")

    def of(self, request: str) -> list[dict]:
        return [each for each in self.messages if each["parent_header"].get("msg_id") == request]

    def finish(self, request: str) -> list[dict]:
        """The messages of the request, when it is answered and over."""

        def is_over() -> bool:
            found = self.of(request)
            states = [each["content"].get("execution_state") for each in found]
            types = [each["header"]["msg_type"] for each in found]
            return "execute_reply" in types and "idle" in states

        self.wait(is_over, "the answer and the end of a request")
        return self.of(request)

    def value(self, code: str) -> str:
        return value_of(self.finish(self.send(code)))

    def text_of(self, request: str) -> str:
        found = self.of(request)
        return "".join(
            each["content"]["text"] for each in found if each["header"]["msg_type"] == "stream"
        )

    def assert_each_once(self) -> None:
        ids = [each["header"]["msg_id"] for each in self.messages]
        assert len(ids) == len(set(ids))


def value_of(messages: list[dict]) -> str:
    """What a cell has given; of its one answer, which must be good."""
    replies = [each for each in messages if each["header"]["msg_type"] == "execute_reply"]
    results = [each for each in messages if each["header"]["msg_type"] == "execute_result"]
    assert [each["content"]["status"] for each in replies] == ["ok"], replies
    assert len(results) == 1, results
    return results[0]["content"]["data"]["text/plain"]
