# SPDX-License-Identifier: Apache-2.0
"""The clients: one per way to a kernel, the same for every subject.

The clock measures the subject and the way to it, not the client: a request is encoded before the
clock starts, and what came back is decoded and checked (signatures too) after it has stopped. It
stops when the last message that belongs to the request is here.
"""

import json
import socket
import struct
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import websocket
import zmq
from jupyter_client import BlockingKernelClient

REPLY_SECONDS_MAX = 120.0
# After the reply: how long nothing may come before the rest counts as lost.
SILENCE_SECONDS_MAX = 5.0
# How often a client that waits for a kernel's answer checks whether the kernel still runs.
ALIVE_SECONDS = 0.2
# A kernel that has just bound its sockets may not know the subscribers of its iopub yet: its output
# is lost then, and the client sends the request again.
FIRST_SILENCE_SECONDS_MAX = 0.02
# The states that a Jupyter server reports for a dead kernel.
DEATHS = (b'"restarting"', b'"autorestarting"', b'"dead"')
V1 = "v1.kernel.websocket.jupyter.org"
# A server may close a connection that was idle for longer than this; a new one is made then.
IDLE_CONNECTION_SECONDS_MAX = 3.0


@dataclass
class Answer:
    """The outcome of one execution, and how long it took."""

    seconds: float
    status: str = ""
    complete: bool = True  # False: the kernel's idle message never came
    result: str = ""  # text/plain
    stdout: str = ""
    stderr: str = ""
    picture: str = ""  # base64
    shown: str = ""  # text/plain of what it displayed
    error: str = ""

    def checked(self, result: str | None = None) -> "Answer":
        """Returns itself if the execution succeeded with this result; otherwise raises."""
        if self.status != "ok":
            raise RuntimeError(f"status {self.status}: {self.error or self.stderr}"[:300])
        if result is not None and self.result != result:
            raise RuntimeError(f"answered {self.result!r}, expected {result!r}")
        return self

    @property
    def said(self) -> str:
        """The answer as text: kernels differ in whether it is a result, output or a display."""
        return self.result or self.stdout or self.shown

    def saying(self, word: str) -> "Answer":
        """Returns itself if its text contains the word; otherwise raises."""
        if word not in self.checked().said:
            raise RuntimeError(f"said {self.said[:100]!r}, expected {word!r}")
        return self


def execute_content(code: str) -> dict:
    return {
        "code": code,
        "silent": False,
        "store_history": False,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }


def answer_of(messages: list[tuple[str, dict]], seconds: float, complete: bool) -> Answer:
    """Makes the answer from the Jupyter messages of one request: their types and contents."""
    answer = Answer(seconds, complete=complete)
    stdout, stderr = [], []
    for kind, content in messages:
        if kind == "execute_reply":
            answer.status = content["status"]
            if content["status"] != "ok":
                answer.error = f"{content.get('ename')}: {content.get('evalue')}"
        elif kind == "execute_result":
            answer.result = content["data"].get("text/plain", "")
        elif kind == "display_data":
            answer.picture += content["data"].get("image/png", "")
            answer.shown += content["data"].get("text/plain", "")
        elif kind == "stream":
            (stdout if content["name"] == "stdout" else stderr).append(content["text"])
    answer.stdout, answer.stderr = "".join(stdout), "".join(stderr)
    return answer


class Client:
    """Executes code in one session. Close it when done."""

    def execute(self, code: str, pause: Callable[[], object] | None = None) -> Answer:
        """Executes code. `pause` makes a slow client: it reads nothing until `pause` returns."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class ZmqClient(Client):
    """jupyter_client's signed Session over plain sockets: its own channels run an event loop per
    call, which would hide what is measured.

    `ended` says how the kernel's process has ended, and nothing while it runs: the client does not
    wait for the answer of a kernel that is gone."""

    def __init__(self, connection_file: Path, ended: Callable[[], str] = str) -> None:
        self._ended = ended
        client = BlockingKernelClient(connection_file=str(connection_file))
        client.load_connection_file()
        self._session = client.session
        info = client.get_connection_info()
        self._shell = self._connect(zmq.DEALER, info, "shell_port")
        self._iopub = self._connect(zmq.SUB, info, "iopub_port")
        self._poller = zmq.Poller()
        self._poller.register(self._shell, zmq.POLLIN)
        self._poller.register(self._iopub, zmq.POLLIN)

    def _connect(self, kind: int, info: dict, port: str) -> zmq.Socket:
        address = f"{info['transport']}://{info['ip']}"
        address += f"{'-' if info['transport'] == 'ipc' else ':'}{info[port]}"
        made = zmq.Context.instance().socket(kind)
        made.linger = 0
        made.reconnect_ivl = 5  # ms: a kernel that is starting is not kept waiting for us
        if kind == zmq.SUB:
            made.subscribe(b"")
        else:
            made.identity = self._session.bsession
        made.connect(address)
        return made

    def close(self) -> None:
        self._shell.close()
        self._iopub.close()

    def first_result(self, code: str = "1+1", result: str | None = "2") -> None:
        self.first_answer(code, silent=result is None).checked(result)

    def first_answer(self, code: str, *, silent: bool = False) -> Answer:
        """For a kernel that may still be starting: sends the request until both reply and output come;
        for code without output, until the reply and its idle come."""
        deadline = time.monotonic() + REPLY_SECONDS_MAX
        while time.monotonic() < deadline:
            answer = self.execute(code, silence=FIRST_SILENCE_SECONDS_MAX)
            if answer.complete and (silent or answer.said or answer.status != "ok"):
                return answer
        raise TimeoutError("iopub stays silent")

    def execute(
        self,
        code: str,
        pause: Callable[[], object] | None = None,
        silence: float = SILENCE_SECONDS_MAX,
    ) -> Answer:
        message = self._session.msg("execute_request", execute_content(code))
        frames, mine = self._session.serialize(message), message["header"]["msg_id"].encode()
        got: list[list[bytes]] = []
        replied = idle = False
        began = last = time.perf_counter()
        self._shell.send_multipart(frames)
        if pause is not None:
            pause()
        while not (replied and idle):
            ready = self._wait(silence if replied else REPLY_SECONDS_MAX)
            if not ready:
                break
            for source, _ in ready:
                for parts in self._waiting(source):
                    at = parts.index(b"<IDS|MSG>")
                    if mine not in parts[at + 3]:
                        continue
                    last = time.perf_counter()
                    got.append(parts[at + 1 :])
                    replied = replied or source is self._shell
                    idle = idle or (b'"status"' in parts[at + 2] and b'"idle"' in parts[at + 5])
        if not replied:
            raise TimeoutError(f"no reply to {code[:60]!r} within {REPLY_SECONDS_MAX:.0f} s")
        decoded = [self._session.deserialize(parts) for parts in got]
        return answer_of([(m["msg_type"], m["content"]) for m in decoded], last - began, idle)

    def _wait(self, patience: float) -> list[tuple[zmq.Socket, int]]:
        """What can be read within `patience` seconds."""
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0:
            if ready := self._poller.poll(min(left, ALIVE_SECONDS) * 1000):
                return ready
            if how := self._ended():
                raise RuntimeError(f"the kernel has ended: {how}")
        return []

    @staticmethod
    def _waiting(source: zmq.Socket) -> list[list[bytes]]:
        found = []
        try:
            while True:
                found.append(source.recv_multipart(zmq.NOBLOCK))
        except zmq.Again:
            return found


class WebSocketClient(Client):
    """The v1 framing of Jupyter Server's channels, on the websocket-client package."""

    # A server that sends small messages in a row without TCP_NODELAY waits for the acknowledgement
    # of the first before the second goes, and an ordinary client's acknowledgement waits up to
    # 40 ms for something to go with. True: acknowledge at once.
    quick_ack = False

    def __init__(self, url: str, token: str, kernel: str) -> None:
        self._session = uuid.uuid4().hex
        self._socket = websocket.create_connection(
            f"{url.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels"
            f"?session_id={self._session}",
            timeout=REPLY_SECONDS_MAX,
            subprotocols=[V1],
            header=[f"Authorization: token {token}"],
        )
        if self._socket.getsubprotocol() != V1:
            self._socket.shutdown()
            raise RuntimeError("the server does not speak the v1 framing")

    def close(self) -> None:
        self._socket.close(timeout=1)

    def execute(self, code: str, pause: Callable[[], object] | None = None) -> Answer:
        identity = uuid.uuid4().hex
        request = self._packed(code, identity)
        mine, got, complete = identity.encode(), [], True
        replied = idle = False
        self._socket.settimeout(REPLY_SECONDS_MAX)
        began = last = time.perf_counter()
        self._socket.send_binary(request)
        if pause is not None:
            pause()
        while not (replied and idle):
            if self.quick_ack:  # the kernel forgets it again and again
                self._socket.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            try:
                frame = self._socket.recv()
            except websocket.WebSocketTimeoutException:
                complete = False
                break
            parts = self._parts(frame)
            if mine not in parts[2]:
                if b'"status"' in parts[1] and any(death in parts[4] for death in DEATHS):
                    raise RuntimeError(f"the kernel has ended: {parts[4].decode()[:100]}")
                continue
            last = time.perf_counter()
            got.append(parts)
            if parts[0] == b"shell" and not replied:
                replied = True
                self._socket.settimeout(SILENCE_SECONDS_MAX)
            idle = idle or (b'"status"' in parts[1] and b'"idle"' in parts[4])
        if not replied:
            raise TimeoutError(f"no reply to {code[:60]!r} within {REPLY_SECONDS_MAX:.0f} s")
        decoded = [(json.loads(parts[1])["msg_type"], json.loads(parts[4])) for parts in got]
        return answer_of(decoded, last - began, complete)

    def _packed(self, code: str, identity: str) -> bytes:
        header = {
            "msg_id": identity,
            "msg_type": "execute_request",
            "session": self._session,
            "username": "bench",
            "version": "5.3",
        }
        texts = [json.dumps(part).encode() for part in (header, {}, {}, execute_content(code))]
        parts = [b"shell", *texts]
        offsets = [8 * (len(parts) + 2)]
        for part in parts:
            offsets.append(offsets[-1] + len(part))
        return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(parts)

    @staticmethod
    def _parts(frame: bytes | str) -> list[bytes]:
        if not frame:
            raise ConnectionError("the server has closed the WebSocket")
        if isinstance(frame, str):
            raise RuntimeError(f"a text frame in the v1 framing: {frame[:100]!r}")
        (count,) = struct.unpack_from("<Q", frame)
        offsets = struct.unpack_from(f"<{count}Q", frame, 8)
        return [frame[begin:end] for begin, end in zip(offsets, offsets[1:], strict=False)]


class HttpConnection:
    """HTTP/1.1 by hand on one socket kept alive, because a library's share of a round trip of half
    a millisecond would be the larger one. Understands answers with a Content-Length."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname, parts.port)
        self._head = f"Host: {parts.netloc}\r\nAuthorization: token {token}\r\n"
        self._socket: socket.socket | None = None
        self._used = 0.0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def encoded(self, method: str, path: str, body: object = None) -> bytes:
        text = b"" if body is None else json.dumps(body).encode()
        kind = "" if body is None else "Content-Type: application/json\r\n"
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{kind}Content-Length: {len(text)}\r\n\r\n"
        return head.encode() + text

    def ready(self) -> None:
        """Connected; to be called before the clock starts."""
        if time.monotonic() - self._used > IDLE_CONNECTION_SECONDS_MAX:
            self.close()
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=REPLY_SECONDS_MAX)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used = time.monotonic()

    def exchange(self, request: bytes) -> tuple[int, bytes]:
        assert self._socket is not None
        self._socket.sendall(request)
        said = bytearray()
        while (end := said.find(b"\r\n\r\n")) < 0:
            self._receive(said)
        head = bytes(said[:end]).lower()
        status = int(head[9:12])
        length = 0
        if status not in (204, 304):
            at = head.find(b"\r\ncontent-length:")
            if at < 0:
                raise RuntimeError(f"an answer without Content-Length: {head[:200]!r}")
            length = int(head[at + 17 :].split(b"\r\n", 1)[0])
        while len(said) < end + 4 + length:
            self._receive(said)
        self._used = time.monotonic()
        if b"\r\nconnection: close" in head:
            self.close()
        return status, bytes(said[end + 4 :])

    def _receive(self, said: bytearray) -> None:
        piece = self._socket.recv(1 << 20)
        if not piece:
            raise ConnectionError("the server has closed the connection")
        said += piece

    def call(self, method: str, path: str, body: object = None) -> dict:
        """The answer's JSON; an error if the status is not one of success."""
        request = self.encoded(method, path, body)
        self.ready()
        status, text = self.exchange(request)
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status} {text[:200].decode(errors='replace')}")
        return json.loads(text) if text else {}


class RestClient(Client):
    """POST /v1/sessions/{id}/executions, the answer whole."""

    def __init__(self, url: str, token: str, session: str) -> None:
        self._http = HttpConnection(url, token)
        self._path = f"/v1/sessions/{session}/executions"

    def close(self) -> None:
        self._http.close()

    def execute(self, code: str, pause: Callable[[], object] | None = None) -> Answer:
        if pause is not None:
            raise NotImplementedError("an answer in one piece has no slow reader")
        request = self._http.encoded("POST", self._path, {"code": code})
        self._http.ready()
        began = time.perf_counter()
        status, text = self._http.exchange(request)
        seconds = time.perf_counter() - began
        if status != 200:
            raise RuntimeError(f"{status} {text[:300].decode(errors='replace')}")
        found = json.loads(text)
        return Answer(
            seconds,
            status=found["status"],
            result=(found["result"] or {}).get("text/plain", ""),
            stdout=found["stdout"],
            stderr=found["stderr"],
            picture="".join(each["data"].get("image/png", "") for each in found["displays"]),
            error=json.dumps(found["error"]) if found["error"] else "",
        )
