# SPDX-License-Identifier: Apache-2.0
"""The Debug Adapter Protocol: messages over a stream, and a client of pydevd's own server."""

import json
import socket
import threading

# Requests that wait for pydevd's answer at once. The server allows a session fewer.
PENDING_MAX = 256
_HEADER_BYTES_MAX = 4096
_BODY_BYTES_MAX = 64 << 20


class Failure(Exception):
    """Why a request fails; its text is the response's message."""


def response(request, *, success=True, body=None, message=None):
    """A response to a request, which may be incomplete."""
    request = request if isinstance(request, dict) else {}
    seq, command = request.get("seq"), request.get("command")
    answer = {
        "type": "response",
        "seq": 0,
        "request_seq": seq if isinstance(seq, int) else 0,
        "command": command if isinstance(command, str) else "",
        "success": success,
        "body": {} if body is None else body,
    }
    if message is not None:
        answer["message"] = message
    return answer


def check_request(request):
    """Raises Failure unless this is a request whose fields have their types."""
    if not isinstance(request, dict):
        raise Failure("a debug request is an object")
    if request.get("type", "request") != "request":
        raise Failure("the field type is not \"request\"")
    if not isinstance(request.get("command"), str):
        raise Failure("the field command is missing or no text")
    seq = request.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise Failure("the field seq is missing or no integer")
    if not isinstance(request.get("arguments", {}), (dict, type(None))):
        raise Failure("the field arguments is no object")


def argument(request, name, kind):
    """One argument of a checked request. Raises Failure if it is missing or of another type."""
    value = (request.get("arguments") or {}).get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Failure(f"{request['command']}: the argument {name} is missing or of a wrong type")
    return value


def read_message(stream):
    """The next message of a binary stream, or None at its end. ValueError: it is no message."""
    size = None
    while True:
        line = stream.readline(_HEADER_BYTES_MAX)
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise ValueError("a header line is too long")
        line = line.strip()
        if not line:
            break
        name, _colon, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            size = int(value)
    if size is None or not 0 <= size <= _BODY_BYTES_MAX:
        raise ValueError(f"a body of {size} bytes is not allowed")
    body = stream.read(size)
    if len(body) < size:
        return None
    return json.loads(body)


class Client:
    """One connection to pydevd. Its serve() is the work of a thread of its own."""

    def __init__(self, address, on_event):
        self._socket = socket.create_connection(address)
        self._stream = self._socket.makefile("rb")
        self._on_event = on_event
        # An interrupt handler may send while its thread is in send().
        self._lock = threading.RLock()
        self._waiting = {}
        self._next_seq = 1
        self._closed = False

    def send(self, command, arguments, on_response):
        """on_response(message) is called later, on the serving thread. Failure: it was not sent."""
        with self._lock:
            if self._closed:
                raise Failure("the debugger has gone")
            if len(self._waiting) >= PENDING_MAX:
                raise Failure(f"more than {PENDING_MAX} debug requests are waiting for their answers")
            seq, self._next_seq = self._next_seq, self._next_seq + 1
            self._waiting[seq] = (command, on_response)
            body = json.dumps(
                {"type": "request", "seq": seq, "command": command, "arguments": arguments}
            ).encode("ascii")
            try:
                self._socket.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            except OSError as error:
                del self._waiting[seq]
                raise Failure(f"the debugger has gone: {error}") from error

    def serve(self):
        """Reads until the connection ends. Then every request that still waits fails."""
        try:
            while True:
                message = read_message(self._stream)
                if message is None:
                    break
                if message.get("type") == "event":
                    self._on_event(message)
                elif message.get("type") == "response":
                    self._take_response(message)
        except (OSError, ValueError):
            pass  # Ended in the middle of a message: the same as the end.
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, {}
        self._stream.close()
        self._socket.close()
        for command, on_response in waiting.values():
            on_response(response({"command": command}, success=False, message="the debugger has gone"))

    def _take_response(self, message):
        with self._lock:
            _command, on_response = self._waiting.pop(message.get("request_seq"), (None, None))
        if on_response is not None:
            on_response(message)

    def close(self):
        """Makes serve() end."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # It has ended already.
