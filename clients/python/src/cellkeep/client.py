# SPDX-License-Identifier: Apache-2.0
"""The blocking client: :class:`Session` for one session, :class:`Client` for a server."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from . import _calls
from ._calls import FileInput, Files, Network, Run
from ._http import Http
from ._stream import EventStream
from ._transfer import Download, Source, Upload
from .approvals import Approvals
from .batches import ClientBatches
from .branches import SessionBranches
from .checkpoints import SessionCheckpoints
from .discovery import find_target
from .errors import NotFound, ProtocolError
from .models import Artifact, Event, ExecutionInfo, FileEntry, Limits, Result, SessionInfo
from .packages import SessionPackages
from .ports import SessionPorts
from .processes import SessionProcesses
from .progress import Progress, progress_of
from .tools import LentTools, Tools, take_call

__all__ = ["Client", "Events", "Execution", "FileInput", "Session"]


class Events(Iterator[Event]):
    """The events of one execution; after the last of them, ``result`` is the whole answer.
    Leaving it early closes the connection; the execution goes on, unless it was started with
    ``on_disconnect="interrupt"``.
    """

    def __init__(self, http: Http, stream: EventStream) -> None:
        self._stream = stream
        self._events = http.events(stream)
        self._result: Result | None = None

    def __next__(self) -> Event:
        event = next(self._events)
        self._result = event.result or self._result
        return event

    def close(self) -> None:
        getattr(self._events, "close", lambda: None)()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def execution_path(self) -> str | None:
        """The path of the execution on the server, once the server has sent it."""
        return self._stream.path

    @property
    def result(self) -> Result:
        """The whole answer. Reads what has not been read yet."""
        for _ in self:
            pass
        if self._result is None:
            raise ProtocolError("the execution ended without an answer")
        return self._result


class Execution:
    """An execution that was submitted and runs on its own."""

    def __init__(self, http: Http, path: str, info: ExecutionInfo) -> None:
        self._http = http
        self._path = f"{path}/{info.id}"
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    def refresh(self) -> ExecutionInfo:
        """Asks the server for the present state of the execution."""
        self.info = self._http.send(_calls.get_execution(self._path))
        return self.info

    def events(self, after: int | None = None) -> Events:
        """Its events, from the first (or the one after number ``after``) to the last."""
        return Events(self._http, EventStream(None, self._path, after))

    def result(self) -> Result:
        """The whole answer; waits for it."""
        found = self.refresh().result
        if found is not None:
            return found
        for _ in self.events():
            pass
        found = self.refresh().result
        if found is None:
            raise ProtocolError("the server no longer has the answer")
        return found

    def interrupt(self) -> None:
        """Stops it if it runs; takes it out of the queue if it waits."""
        self._http.send(_calls.interrupt(self._path))


class Session(SessionBranches, SessionCheckpoints, SessionProcesses, SessionPorts, SessionPackages):
    """A persistent interpreter in a sandbox of its own. Leaving the ``with`` block ends it.

    >>> with Session() as session:
    ...     _ = session.run("numbers = [3, 1, 2]")
    ...     session.run("sorted(numbers)").text
    '[1, 2, 3]'

    A server is found as :mod:`cellkeep.discovery` says, unless ``url`` and ``token`` name one.
    ``checkpoints``: ``"each"`` or ``"costly"``, and an interpreter that dies goes on from the newest checkpoint, which the session made by itself after a cell. ``branches=True``: it can be branched.
    """

    def __init__(
        self,
        *,
        language: str | None = None,
        environment: str | None = None,
        limits: Limits | None = None,
        network: Network = None,
        env: Mapping[str, str] | None = None,
        files: Files | None = None,
        metadata: Mapping[str, Any] | None = None,
        checkpoints: str | None = None,
        branches: bool = False,
        client: Client | None = None,
        url: str | None = None,
        token: str | None = None,
        attach: str | None = None,
    ) -> None:
        self._own_client = client is None
        self.client = client if client is not None else Client(url, token)
        self._http = self.client._http
        try:
            if attach is not None:
                self.info = self._http.send(_calls.get_session("/v1/sessions/" + attach))
            else:
                fields = _calls.session_fields(
                    language,
                    environment,
                    limits,
                    network,
                    env,
                    files,
                    metadata,
                    checkpoints,
                    branches,
                )
                self.info = self._http.send(_calls.create_session(fields))
        except BaseException:
            self._close_client()
            raise
        self._path = "/v1/sessions/" + self.info.id

    def _close_client(self) -> None:
        if self._own_client:
            self.client.close()

    @property
    def id(self) -> str:
        return self.info.id

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session and everything in it. It is no error if the session has already ended."""
        try:
            self._http.send(_calls.delete_session(self._path))
        except NotFound:
            pass
        finally:
            self._close_client()

    # --- running code

    def _run_of(self, code: str, options: dict[str, Any]) -> Run:
        wall_ms = self.info.limits.get("wall_ms")
        return Run.make(code, session_path=self._path, wall_ms=wall_ms, **options)

    def run(
        self,
        code: str,
        *,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        on_event: Callable[[Event], object] | None = None,
        tools: Tools | None = None,
        check: bool = False,
        **options: Any,
    ) -> Result:
        """Runs code and gives its one answer, also when the code fails.

        ``options``: ``language`` (one of the session's; its own if left out), ``stdin``, ``timeout``
        (seconds), ``files``, ``reasoning``, ``metadata``, ``idempotency_key``, ``on_disconnect``. With a callback, output is handed over as it comes.
        ``tools``: functions that the code may call while it runs (``from cellkeep import tools``); they run here.
        ``check=True`` raises :class:`cellkeep.ExecutionFailed` unless the status is ``ok``.
        """
        if on_stdout is None and on_stderr is None and on_event is None and tools is None:
            result = self._http.send(self._run_of(code, options).whole())
        else:
            lent = LentTools(tools or ())
            events = self.stream(code, tools=lent.wire() or None, **options)
            for event in events:
                if on_event is not None:
                    on_event(event)
                if on_stdout is not None and event.type == "stdout":
                    on_stdout(event.text)
                if on_stderr is not None and event.type == "stderr":
                    on_stderr(event.text)
                if event.type == "tool_call":
                    take_call(self._http, events.execution_path, event, lent)
            result = events.result
        return result.raise_for_status() if check else result

    def stream(self, code: str, **options: Any) -> Events:
        """Runs code and gives its events as they come; see :meth:`run` for ``options``.

        After a broken connection the client resumes where it broke; no event is lost or comes twice.
        """
        return Events(self._http, EventStream(self._run_of(code, options)))

    def submit(self, code: str, **options: Any) -> Execution:
        """Starts code and returns at once; see :meth:`run` for ``options``."""
        run = self._run_of(code, options)
        return Execution(self._http, run.path, self._http.send(run.submitted()))

    def execution(self, execution_id: str) -> Execution:
        """An execution of this session, by its id."""
        path = self._path + "/executions"
        info = self._http.send(_calls.get_execution(f"{path}/{execution_id}"))
        return Execution(self._http, path, info)

    def executions(self) -> Iterator[ExecutionInfo]:
        """Every execution the server remembers of this session, oldest first."""
        after = None
        while True:
            page, after = self._http.send(_calls.list_executions(self._path, after))
            yield from page
            if after is None:
                return

    def interrupt(self, language: str | None = None) -> None:
        """Stops the code that runs, in one language or in all; what is idle is not disturbed."""
        self._http.send(_calls.interrupt(self._path, language))

    def restart(self, language: str | None = None) -> SessionInfo:
        """Starts a fresh interpreter with the same files: of the session's language, or of another."""
        self.info = self._http.send(_calls.restart(self._path, language))
        return self.info

    def refresh(self) -> SessionInfo:
        """Asks the server for the present state of the session."""
        self.info = self._http.send(_calls.get_session(self._path))
        return self.info

    def update(
        self,
        *,
        limits: Limits | None = None,
        network: Network = None,
        metadata: Mapping[str, Any] | None = None,
        keep_alive: bool | None = None,
    ) -> SessionInfo:
        """Lowers limits, changes the network allowlist, merges metadata, or counts as activity."""
        call = _calls.update_session(self._path, limits, network, metadata, keep_alive)
        self.info = self._http.send(call)
        return self.info

    # --- files

    def files(self, path: str = "") -> list[FileEntry]:
        """The entries of a directory of the workspace."""
        return self._http.send(_calls.list_files(self._path, path))

    def upload(self, content: Upload, path: str, *, progress: Progress = None) -> FileEntry:
        """Puts a file into the workspace: bytes, text, a local :class:`pathlib.Path` or a stream."""
        with progress_of(progress, f"↑ {path}") as report:
            return self._http.upload(_calls.file_path(self._path, path), Source(content), report)

    def read(self, path: str | Artifact) -> bytes:
        """A file of the workspace."""
        sink = io.BytesIO()
        self._fetch(path, sink, None)
        return sink.getvalue()

    def read_text(self, path: str | Artifact) -> str:
        return self.read(path).decode()

    def download(
        self, path: str | Artifact, to: str | Path, *, progress: Progress = None
    ) -> Path:
        """Saves a file of the workspace locally; ``to`` may be a directory."""
        name = path.path if isinstance(path, Artifact) else path
        target = Path(to) / Path(name).name if Path(to).is_dir() else Path(to)
        with target.open("w+b") as sink:
            self._fetch(path, sink, progress)
        return target

    def _fetch(self, path: str | Artifact, sink: BinaryIO, progress: Progress) -> None:
        name = path.path if isinstance(path, Artifact) else path
        with progress_of(progress, f"↓ {name}") as report:
            self._http.download(_calls.file_path(self._path, name), Download(sink), report)

    def archive(self, to: str | Path, *, progress: Progress = None) -> Path:
        """Saves the whole workspace as a tar archive, compressed with zstd."""
        target = Path(to)
        with target.open("w+b") as sink, progress_of(progress, "↓ files.tar.zst") as report:
            self._http.download(self._path + "/files.tar.zst", Download(sink), report)
        return target

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file of the workspace, or a directory with what is in it."""
        self._http.send(_calls.remove_file(self._path, path, recursive))


class Client(ClientBatches):
    """A server: its sessions, and runs that need none. One client serves many threads.
    >>> with Client() as client:
    ...     client.run("print(6 * 7)").stdout
    '42\\n'
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.target = find_target(url, token)
        self._http = Http(self.target, timeout, retries, transport)
        self.approvals = Approvals(self._http)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. Sessions live on."""
        self._http.close()

    def create(self, **options: Any) -> Session:
        """A new session; the options are those of :class:`Session`."""
        return Session(client=self, **options)

    def session(self, session_id: str) -> Session:
        """An existing session, by its id or its kernel's."""
        return Session(client=self, attach=session_id)

    def sessions(
        self, *, state: str | None = None, metadata: Mapping[str, str] | None = None
    ) -> Iterator[SessionInfo]:
        """The sessions that this token may see, oldest first."""
        after = None
        while True:
            page, after = self._http.send(_calls.list_sessions(after, state, metadata))
            yield from page
            if after is None:
                return

    def run(
        self,
        code: str,
        *,
        language: str | None = None,
        environment: str | None = None,
        limits: Limits | None = None,
        network: Network = None,
        env: Mapping[str, str] | None = None,
        cache_ttl: int | None = None,
        **options: Any,
    ) -> Result:
        """Runs code in a fresh sandbox that is gone afterwards; ``options`` as for Session.run.

        With ``cache_ttl`` (seconds), an identical run may be answered from the server's cache.
        """
        more = _calls.session_fields(language, environment, limits, network, env, None, None)
        if cache_ttl is not None:
            more["cache_ttl_s"] = cache_ttl
        wall_ms = (limits or {}).get("wall_ms")
        run = Run.make(code, session_path=None, wall_ms=wall_ms, more=more, **options)
        return self._http.send(run.whole())
