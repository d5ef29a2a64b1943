# SPDX-License-Identifier: Apache-2.0
"""Commands that run in a session beside its interpreters: what the server answers, and what ``Session``
and ``AsyncSession`` can do with them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote

import httpx

from ._calls import Call, Retry, nothing, read_json
from ._stream import EventStream
from .errors import ProtocolError
from .models import Event, Json

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http

#: What happens to output beyond 512 KiB that no client has read: the oldest goes, or the process waits.
WhenFull: TypeAlias = Literal["drop", "wait"]


@dataclass(frozen=True)
class ProcessInfo:
    """A command that runs in a session, or has run."""

    id: str
    label: str | None
    argv: Sequence[str]
    cwd: str
    #: Its number inside the sandbox.
    pid: int | None
    #: ``running`` or ``exited``.
    state: str
    #: ``exited``, ``signal``, ``not_started`` or ``session_ended``; ``None``: it runs.
    reason: str | None
    exit_code: int | None
    #: The name of the signal that ended it.
    signal: str | None
    #: Why it was not started.
    error: str | None
    #: Bytes that it has written.
    output_bytes: int
    #: Whether what is sent to it is taken.
    stdin_open: bool
    #: Rows and columns of its terminal; ``None``: it has none.
    tty: tuple[int, int] | None = None

    @classmethod
    def from_wire(cls, raw: Json) -> ProcessInfo:
        try:
            end = raw["end"] or {}
            tty = raw["tty"]
            return cls(
                id=raw["id"],
                label=raw["label"],
                argv=tuple(raw["argv"]),
                cwd=raw["cwd"],
                pid=raw["pid"],
                state=raw["state"],
                reason=end.get("reason"),
                exit_code=end.get("exit_code"),
                signal=end.get("signal"),
                error=end.get("error"),
                output_bytes=raw["output"]["bytes"],
                stdin_open=raw["stdin"] == "open",
                tty=(tty["rows"], tty["cols"]) if tty else None,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ProtocolError(f"not a process: {error!r}") from error


@dataclass(frozen=True)
class Output:
    """All that is kept of a process that has ended."""

    info: ProcessInfo
    stdout: bytes
    stderr: bytes
    #: Bytes at the beginning that the server no longer had.
    missed: int

    @property
    def text(self) -> str:
        """What it wrote to stdout."""
        return self.stdout.decode(errors="replace")


class _Gathering:
    """Output from events."""

    def __init__(self) -> None:
        self._parts: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        self._missed = 0
        self._info: ProcessInfo | None = None

    def add(self, event: Event) -> None:
        if event.type in self._parts:
            self._parts[event.type].append(output_bytes(event))
        elif event.type == "gap":
            self._missed += int(event.data["bytes"])
        elif event.type == "exited":
            self._info = ProcessInfo.from_wire(event.data["process"])

    def result(self) -> Output:
        if self._info is None:
            raise ProtocolError("the stream ended before the process did")
        parts = self._parts
        return Output(self._info, b"".join(parts["stdout"]), b"".join(parts["stderr"]), self._missed)


def output_bytes(event: Event) -> bytes:
    """What an event ``stdout`` or ``stderr`` holds."""
    if "base64" in event.data:
        return base64.b64decode(event.data["base64"])
    return str(event.data.get("text", "")).encode()


def start_process(
    path: str,
    command: str | Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    stdin: bool,
    label: str | None,
    tty: tuple[int, int] | None,
    when_full: WhenFull,
) -> Call[ProcessInfo]:
    program = {"command": command} if isinstance(command, str) else {"argv": list(command)}
    given = {"cwd": cwd, "env": dict(env) if env else None, "label": label}
    body: Json = {**program, **{key: value for key, value in given.items() if value is not None}}
    if stdin:
        body["stdin"] = "open"
    if tty is not None:
        body["tty"] = {"rows": tty[0], "cols": tty[1]}
    if when_full != "drop":
        body["when_full"] = when_full
    # Without a second try: the first may have started one.
    return Call("POST", path + "/processes", _process, Retry.IF_NOT_BEGUN, json=body)


def list_processes(path: str) -> Call[list[ProcessInfo]]:
    def parse(response: httpx.Response) -> list[ProcessInfo]:
        return [ProcessInfo.from_wire(one) for one in read_json(response)["processes"]]

    return Call("GET", path + "/processes", parse, Retry.ALWAYS)


def write_input(path: str, data: bytes | str | None, close: bool) -> Call[None]:
    body: Json = {}
    if isinstance(data, str):
        body["text"] = data
    elif data is not None:
        body["base64"] = base64.b64encode(data).decode()
    if close:
        body["close"] = True
    return Call("POST", path + "/stdin", nothing, Retry.IF_NOT_BEGUN, json=body)


def _process(response: httpx.Response) -> ProcessInfo:
    return ProcessInfo.from_wire(read_json(response))


def _get(path: str) -> Call[ProcessInfo]:
    return Call("GET", path, _process, Retry.ALWAYS)


def _signal(path: str, name: str) -> Call[None]:
    return Call("POST", path + "/signal", nothing, Retry.IF_NOT_BEGUN, json={"name": name})


def _resize(path: str, rows: int, columns: int) -> Call[None]:
    body: Json = {"rows": rows, "cols": columns}
    return Call("POST", path + "/resize", nothing, Retry.ALWAYS, json=body)


def _remove(path: str) -> Call[None]:
    return Call("DELETE", path, nothing, Retry.IF_NOT_BEGUN)


def _path(session: str, ident: str) -> str:
    return f"{session}/processes/{quote(ident, safe='')}"


def _stream(path: str, after: int) -> EventStream:
    return EventStream(None, path, after, ends="exited")


class Process:
    """A command that was started, or found again by its id."""

    def __init__(self, http: Http, session_path: str, info: ProcessInfo) -> None:
        self._http = http
        self._path = _path(session_path, info.id)
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    def refresh(self) -> ProcessInfo:
        """Asks the server how it is now."""
        self.info = self._http.send(_get(self._path))
        return self.info

    def events(self, after: int = 0) -> Iterator[Event]:
        """Its output from byte ``after`` on, up to ``exited``, also over broken connections.

        :func:`output_bytes` reads an event; ``gap`` says how many bytes are no longer there.
        """
        return self._http.events(_stream(self._path, after))

    def write(self, data: bytes | str, *, close: bool = False) -> None:
        """Gives it more to read. ``LimitReached``: it has not read enough of what was sent before."""
        self._http.send(write_input(self._path, data, close))

    def close_stdin(self) -> None:
        """It reads an end of file behind what was sent."""
        self._http.send(write_input(self._path, None, True))

    def signal(self, name: str) -> None:
        """``SIGINT``, ``TERM``, …, to it and its process group."""
        self._http.send(_signal(self._path, name))

    def resize(self, rows: int, columns: int) -> None:
        """Changes the size of its terminal."""
        self._http.send(_resize(self._path, rows, columns))

    def kill(self) -> None:
        """Kills it and its process group. The server forgets it."""
        self._http.send(_remove(self._path))

    def wait(self) -> Output:
        """Its output, when it has ended."""
        gathered = _Gathering()
        for event in self.events():
            gathered.add(event)
        output = gathered.result()
        self.info = output.info
        return output


class AsyncProcess:
    """The same for asyncio."""

    def __init__(self, http: AsyncHttp, session_path: str, info: ProcessInfo) -> None:
        self._http = http
        self._path = _path(session_path, info.id)
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    async def refresh(self) -> ProcessInfo:
        """Asks the server how it is now."""
        self.info = await self._http.send(_get(self._path))
        return self.info

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Its output from byte ``after`` on, up to ``exited``, also over broken connections."""
        return self._http.events(_stream(self._path, after))

    async def write(self, data: bytes | str, *, close: bool = False) -> None:
        """Gives it more to read. ``LimitReached``: it has not read enough of what was sent before."""
        await self._http.send(write_input(self._path, data, close))

    async def close_stdin(self) -> None:
        """It reads an end of file behind what was sent."""
        await self._http.send(write_input(self._path, None, True))

    async def signal(self, name: str) -> None:
        """``SIGINT``, ``TERM``, …, to it and its process group."""
        await self._http.send(_signal(self._path, name))

    async def resize(self, rows: int, columns: int) -> None:
        """Changes the size of its terminal."""
        await self._http.send(_resize(self._path, rows, columns))

    async def kill(self) -> None:
        """Kills it and its process group. The server forgets it."""
        await self._http.send(_remove(self._path))

    async def wait(self) -> Output:
        """Its output, when it has ended."""
        gathered = _Gathering()
        async for event in self.events():
            gathered.add(event)
        output = gathered.result()
        self.info = output.info
        return output


class SessionProcesses:
    """The part of a ``Session``."""

    _http: Http
    _path: str

    def start_process(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        label: str | None = None,
        tty: tuple[int, int] | None = None,
        when_full: WhenFull = "drop",
    ) -> Process:
        """Starts a command beside the interpreters: a line for the shell, or a list of arguments.

        ``tty``: it has a terminal of so many rows and columns. It goes on between cells and over restarts of the interpreter, until it ends or the session does.
        ``when_full="wait"``: output that is not read makes it wait, as a full pipe does; otherwise the oldest output goes.
        """
        call = start_process(self._path, command, cwd, env, stdin, label, tty, when_full)
        return Process(self._http, self._path, self._http.send(call))

    def processes(self) -> list[Process]:
        """Those that run, and the last that have ended."""
        found = self._http.send(list_processes(self._path))
        return [Process(self._http, self._path, info) for info in found]

    def process(self, process_id: str) -> Process:
        """One of them, by its id."""
        return Process(self._http, self._path, self._http.send(_get(_path(self._path, process_id))))


class AsyncSessionProcesses:
    """The part of an ``AsyncSession``."""

    _http: AsyncHttp

    if TYPE_CHECKING:

        @property
        def _path(self) -> str: ...

    async def start_process(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        label: str | None = None,
        tty: tuple[int, int] | None = None,
        when_full: WhenFull = "drop",
    ) -> AsyncProcess:
        """Starts a command beside the interpreters: a line for the shell, or a list of arguments."""
        call = start_process(self._path, command, cwd, env, stdin, label, tty, when_full)
        return AsyncProcess(self._http, self._path, await self._http.send(call))

    async def processes(self) -> list[AsyncProcess]:
        """Those that run, and the last that have ended."""
        found = await self._http.send(list_processes(self._path))
        return [AsyncProcess(self._http, self._path, info) for info in found]

    async def process(self, process_id: str) -> AsyncProcess:
        """One of them, by its id."""
        info = await self._http.send(_get(_path(self._path, process_id)))
        return AsyncProcess(self._http, self._path, info)
