# SPDX-License-Identifier: Apache-2.0
"""Commands that run while the server's program is replaced, and clients that follow them through it."""

import json
import struct
import threading

import requests
import websocket

from harness import TOKEN, Session, wait_until
from processes import Finished, bytes_of, look, path_of, start
from test_upgrade_load import CLOSED
from upgrades import SECONDS_MAX

SERVICE_RESTART = 1012  # RFC 6455's registry of close codes

# Counts until somebody has had enough, and says there how many numbers it was.
COUNTER = """
import itertools, os, time, sys
for number in itertools.count():
    if os.path.exists("/workspace/enough"):
        break
    print(number, file=sys.stderr if number % 7 == 3 else sys.stdout, flush=True)
    time.sleep(0.001)
with open("/workspace/enough", "w") as told:
    told.write(str(number))
"""


class Follower(threading.Thread):
    """Follows a process over as many connections as it takes, each from where the last one ended."""

    def __init__(self, session: Session, process: dict) -> None:
        super().__init__()
        self.url = session.server.url + path_of(session, process) + "/events"
        self.headers = {**session.server.http.headers, "Accept": "application/x-ndjson"}
        self.place = 0
        self.connections = 0
        self.seen: list[dict] = []
        self.wrong: list[str] = []
        self.start()

    def run(self) -> None:
        try:
            while not self.follow():
                pass
        except BaseException as failure:
            self.wrong.append(repr(failure))

    def follow(self) -> bool:
        """Whether that was the end."""
        headers = {**self.headers, "Last-Event-ID": str(self.place)}
        self.connections += 1
        try:
            with requests.get(self.url, headers=headers, stream=True, timeout=120) as answer:
                assert answer.status_code == 200, answer.text
                for line in answer.iter_lines():
                    if self.take(json.loads(line)):
                        return True
        except requests.ConnectionError as error:
            if not CLOSED.search(repr(error)):
                raise
        return False

    def take(self, event: dict) -> bool:
        if event["type"] == "heartbeat":
            return False
        assert event["seq"] > self.place, (event, self.place)
        self.place = event["seq"]
        self.seen.append(event)
        return event["type"] == "exited"

    def wait(self) -> Finished:
        self.join(SECONDS_MAX * 2)
        assert not self.is_alive() and self.wrong == [], self.wrong
        return Finished(self.seen)


class Socket:
    """A process over its WebSocket, from a place on."""

    def __init__(self, session: Session, process: dict, after: int = 0) -> None:
        address = session.server.url.replace("http", "ws", 1) + path_of(session, process)
        self.socket = websocket.create_connection(
            f"{address}/ws?after={after}",
            header=[f"Authorization: Bearer {TOKEN}"],
            timeout=SECONDS_MAX,
        )
        self.place = after
        self.text = ""

    def until(self, text: str) -> None:
        while text not in self.text:
            assert self.receive(), self.text

    def receive(self) -> bool:
        """False: the server has closed it, with the code for that."""
        opcode, data = self.socket.recv_data(control_frame=True)
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            assert struct.unpack("!H", data[:2]) == (SERVICE_RESTART,)
            return False
        if opcode in (websocket.ABNF.OPCODE_TEXT, websocket.ABNF.OPCODE_BINARY):
            event = json.loads(data)
            assert event["seq"] > self.place
            self.place = event["seq"]
            self.text += bytes_of(event).decode()
        return True

    def until_closed(self) -> None:
        while self.receive():
            pass
        self.socket.shutdown()  # close() does nothing any more


def numbers_of(done: Finished) -> list[int]:
    return sorted(int(line) for line in (done.stdout + done.stderr).split())


def in_order(text: bytes) -> bool:
    numbers = [int(line) for line in text.split()]
    return numbers == sorted(set(numbers))


class Counter:
    """A command that counts."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.process = start(session, "python3", "-c", COUNTER)

    def stop(self) -> None:
        stop_counting(self.session)

    def numbers(self) -> list[int]:
        return counted(self.session)


def stop_counting(session: Session) -> None:
    assert session.server.request("PUT", session.path + "/files/enough", data=b"").ok


def counted(session: Session) -> list[int]:
    """What a counter has said, when it has ended."""
    return list(range(int(session.server.get(session.path + "/files/enough").text)))


def wait_for_more(session: Session, process: dict) -> None:
    before = look(session, process)["output"]["bytes"]
    wait_until(
        lambda: look(session, process)["output"]["bytes"] > before, SECONDS_MAX, "it says more"
    )
