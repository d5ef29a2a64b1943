# SPDX-License-Identifier: Apache-2.0
"""The state of one stream of events or lines: decoding, and where to go on after the connection broke. No input
or output happens here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import httpx

from ._calls import Run
from .errors import ProtocolError
from .models import Event, Json

#: The server sends a heartbeat after five silent seconds; this much silence is a dead connection.
SILENCE_SECONDS_MAX = 30.0


T_co = TypeVar("T_co", covariant=True)


class Followed(Protocol[T_co]):
    """What is followed to its end, and where to go on after a connection broke."""

    finished: bool

    def request(self) -> tuple[str, str, dict[str, str], dict[str, object] | None]: ...

    def opened(self, response: httpx.Response) -> None: ...

    def feed(self, chunk: bytes) -> Sequence[T_co]: ...


class SseDecoder:
    """Server-sent events from bytes, however they are cut (WHATWG HTML, 9.2.6).

    >>> decoder = SseDecoder()
    >>> decoder.feed(b"id: 3\\nevent: stdout\\nda")
    []
    >>> decoder.feed(b'ta: {"text": "hi"}\\n\\n')
    [Event(type='stdout', data={'text': 'hi'}, sequence=3)]
    """

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, list[str]] = {}

    def feed(self, chunk: bytes) -> list[Event]:
        *lines, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        events = []
        for raw in lines:
            line = raw.removesuffix(b"\r").decode()
            if not line:
                if self._fields:
                    events.append(self._dispatch())
                continue
            name, _, value = line.partition(":")
            if name:
                self._fields.setdefault(name, []).append(value.removeprefix(" "))
        return events

    def _dispatch(self) -> Event:
        fields, self._fields = self._fields, {}
        try:
            data = json.loads("\n".join(fields.get("data", ["{}"])))
            sequence = int(fields["id"][-1]) if "id" in fields else None
        except ValueError as error:
            raise ProtocolError(f"not an event: {error}") from error
        if not isinstance(data, dict):
            raise ProtocolError("an event's data is not a JSON object")
        return Event(fields.get("event", ["message"])[-1], data, sequence)


@dataclass
class EventStream:
    """Follows one execution, or one process, over as many connections as it takes.

    Either ``run`` is still to be asked for (asking again with its idempotency key joins the same
    execution), or ``path`` is where the execution is found.
    """

    run: Run | None
    path: str | None = None
    last: int | None = None
    finished: bool = False
    #: The type of the last event.
    ends: str = "finished"
    _decoder: SseDecoder = field(default_factory=SseDecoder)

    def request(self) -> tuple[str, str, dict[str, str], dict[str, object] | None]:
        """Method, path, headers and body of the next connection."""
        self._decoder = SseDecoder()
        headers = {"Accept": "text/event-stream"}
        if self.path is None:
            if self.run is None:
                raise ProtocolError("no execution to follow")
            return "POST", self.run.path, headers, self.run.body
        if self.last is not None:
            headers["Last-Event-ID"] = str(self.last)
        return "GET", self.path + "/events", headers, None

    def opened(self, response: httpx.Response) -> None:
        """The answer's head has arrived."""
        if response.status_code == 204:
            self.finished = True
        location = response.headers.get("Location")
        if self.path is None and location and self.run is not None:
            self.path = f"{self.run.path}/{location.rstrip('/').rpartition('/')[2]}"

    def feed(self, chunk: bytes) -> list[Event]:
        """Events in order, none twice."""
        fresh = []
        for event in self._decoder.feed(chunk):
            if event.sequence is not None:
                if self.last is not None and event.sequence <= self.last:
                    continue
                self.last = event.sequence
            self.finished = self.finished or event.type == self.ends
            fresh.append(event)
        return fresh


@dataclass
class LineStream:
    """Follows the lines of one batch over as many connections as it takes. No input or output."""

    path: str
    seen: int = 0
    finished: bool = False
    _rest: bytes = b""

    def request(self) -> tuple[str, str, dict[str, str], dict[str, object] | None]:
        """Method, path, headers and body of the next connection."""
        self._rest = b""
        headers = {"Accept": "application/x-ndjson"}
        return "GET", f"{self.path}/lines?after={self.seen}", headers, None

    def opened(self, response: httpx.Response) -> None:
        """The answer's head has arrived."""

    def feed(self, chunk: bytes) -> list[Json]:
        """Lines in order, none twice; the last has the summary."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        fresh = []
        for text in lines:
            try:
                line = json.loads(text)
            except ValueError as error:
                raise ProtocolError(f"not a line of a batch: {error}") from error
            if not isinstance(line, dict):
                raise ProtocolError("a line of a batch is not a JSON object")
            if "heartbeat" in line:
                continue
            self.seen += 1
            self.finished = "summary" in line
            fresh.append(line)
        return fresh
