# SPDX-License-Identifier: Apache-2.0
"""The asyncio client: :class:`AsyncSession` and :class:`AsyncClient`, the twins of client.py."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from . import _calls
from ._aio_events import AsyncEvents
from ._aio_http import AsyncHttp
from ._calls import Files, Network, Run
from ._stream import EventStream
from ._transfer import Download, Source, Upload
from .approvals import AsyncApprovals
from .batches import AsyncClientBatches
from .branches import AsyncSessionBranches
from .checkpoints import AsyncSessionCheckpoints
from .discovery import find_target
from .errors import NotFound, ProtocolError
from .models import Artifact, Event, ExecutionInfo, FileEntry, Limits, Result, SessionInfo
from .packages import AsyncSessionPackages
from .ports import AsyncSessionPorts
from .processes import AsyncSessionProcesses
from .progress import Progress, progress_of
from .tools import LentTools, Tools, take_call_async


class AsyncExecution:
    """An execution that was submitted and runs on its own."""

    def __init__(self, http: AsyncHttp, path: str, info: ExecutionInfo) -> None:
        self._http = http
        self._path = f"{path}/{info.id}"
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    async def refresh(self) -> ExecutionInfo:
        """Asks the server for the present state of the execution."""
        self.info = await self._http.send(_calls.get_execution(self._path))
        return self.info

    def events(self, after: int | None = None) -> AsyncEvents:
        """Its events, from the first (or the one after number ``after``) to the last."""
        return AsyncEvents(self._http, EventStream(None, self._path, after))

    async def result(self) -> Result:
        """The whole answer; waits for it."""
        found = (await self.refresh()).result
        if found is not None:
            return found
        async for _ in self.events():
            pass
        found = (await self.refresh()).result
        if found is None:
            raise ProtocolError("the server no longer has the answer")
        return found

    async def interrupt(self) -> None:
        """Stops it if it runs; takes it out of the queue if it waits."""
        await self._http.send(_calls.interrupt(self._path))


class AsyncSession(
    AsyncSessionBranches,
    AsyncSessionCheckpoints,
    AsyncSessionProcesses,
    AsyncSessionPorts,
    AsyncSessionPackages,
):
    """A persistent interpreter in a sandbox of its own. Leaving the ``with`` block ends it.

    >>> async def main() -> str:
    ...     async with AsyncSession() as session:
    ...         return (await session.run("sorted([3, 1, 2])")).text
    >>> import asyncio; asyncio.run(main())
    '[1, 2, 3]'

    A server is found as :mod:`cellkeep.discovery` says, unless ``url`` and ``token`` name one.
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
        client: AsyncClient | None = None,
        url: str | None = None,
        token: str | None = None,
        attach: str | None = None,
    ) -> None:
        self._own_client = client is None
        self.client = client if client is not None else AsyncClient(url, token)
        self._http = self.client._http
        self._attach = attach
        given = (language, environment, limits, network, env, files, metadata, checkpoints, branches)
        self._fields = _calls.session_fields(*given)
        self._info: SessionInfo | None = None

    async def open(self) -> AsyncSession:
        """Creates the session, or finds the one to attach to; ``async with`` does it."""
        if self._info is not None:
            return self
        try:
            if self._attach is not None:
                call = _calls.get_session(f"/v1/sessions/{self._attach}")
            else:
                call = _calls.create_session(self._fields)
            self._info = await self._http.send(call)
        except BaseException:
            await self._close_client()
            raise
        return self

    @property
    def info(self) -> SessionInfo:
        """The session as in the server's last answer."""
        if self._info is None:
            raise RuntimeError("the session is not open yet: use `async with`, or await open()")
        return self._info

    @property
    def _path(self) -> str:
        return "/v1/sessions/" + self.info.id

    async def _close_client(self) -> None:
        if self._own_client:
            await self.client.close()

    @property
    def id(self) -> str:
        return self.info.id

    async def __aenter__(self) -> AsyncSession:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the session and everything in it. It is no error if the session has already ended."""
        try:
            await self._http.send(_calls.delete_session(self._path))
        except NotFound:
            pass
        finally:
            await self._close_client()

    # --- running code

    def _run_of(self, code: str, options: dict[str, Any]) -> Run:
        wall_ms = self.info.limits.get("wall_ms")
        return Run.make(code, session_path=self._path, wall_ms=wall_ms, **options)

    async def run(
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
            result = await self._http.send(self._run_of(code, options).whole())
        else:
            lent = LentTools(tools or ())
            events = self.stream(code, tools=lent.wire() or None, **options)
            async for event in events:
                if on_event is not None:
                    on_event(event)
                if on_stdout is not None and event.type == "stdout":
                    on_stdout(event.text)
                if on_stderr is not None and event.type == "stderr":
                    on_stderr(event.text)
                if event.type == "tool_call":
                    await take_call_async(self._http, events.execution_path, event, lent)
            result = await events.result()
        return result.raise_for_status() if check else result

    def stream(self, code: str, **options: Any) -> AsyncEvents:
        """Runs code and gives its events as they come; see :meth:`run` for ``options``.

        After a broken connection the client resumes where it broke; no event is lost or comes twice.
        """
        return AsyncEvents(self._http, EventStream(self._run_of(code, options)))

    async def submit(self, code: str, **options: Any) -> AsyncExecution:
        """Starts code and returns at once; see :meth:`run` for ``options``."""
        run = self._run_of(code, options)
        return AsyncExecution(self._http, run.path, await self._http.send(run.submitted()))

    async def execution(self, execution_id: str) -> AsyncExecution:
        """An execution of this session, by its id."""
        path = self._path + "/executions"
        info = await self._http.send(_calls.get_execution(f"{path}/{execution_id}"))
        return AsyncExecution(self._http, path, info)

    async def executions(self) -> AsyncIterator[ExecutionInfo]:
        """Every execution the server remembers of this session, oldest first."""
        after = None
        while True:
            page, after = await self._http.send(_calls.list_executions(self._path, after))
            for one in page:
                yield one
            if after is None:
                return

    async def interrupt(self, language: str | None = None) -> None:
        """Stops the code that runs, in one language or in all; what is idle is not disturbed."""
        await self._http.send(_calls.interrupt(self._path, language))

    async def restart(self, language: str | None = None) -> SessionInfo:
        """Starts a fresh interpreter with the same files: of the session's language, or of another."""
        self._info = await self._http.send(_calls.restart(self._path, language))
        return self.info

    async def refresh(self) -> SessionInfo:
        """Asks the server for the present state of the session."""
        self._info = await self._http.send(_calls.get_session(self._path))
        return self.info

    async def update(
        self,
        *,
        limits: Limits | None = None,
        network: Network = None,
        metadata: Mapping[str, Any] | None = None,
        keep_alive: bool | None = None,
    ) -> SessionInfo:
        """Lowers limits, changes the network allowlist, merges metadata, or counts as activity."""
        call = _calls.update_session(self._path, limits, network, metadata, keep_alive)
        self._info = await self._http.send(call)
        return self._info

    # --- files

    async def files(self, path: str = "") -> list[FileEntry]:
        """The entries of a directory of the workspace."""
        return await self._http.send(_calls.list_files(self._path, path))

    async def upload(self, content: Upload, path: str, *, progress: Progress = None) -> FileEntry:
        """Puts a file into the workspace: bytes, text, a local :class:`pathlib.Path` or a stream."""
        with progress_of(progress, f"↑ {path}") as report:
            return await self._http.upload(_calls.file_path(self._path, path), Source(content), report)

    async def read(self, path: str | Artifact) -> bytes:
        """A file of the workspace."""
        sink = io.BytesIO()
        await self._fetch(path, sink, None)
        return sink.getvalue()

    async def read_text(self, path: str | Artifact) -> str:
        return (await self.read(path)).decode()

    async def download(
        self, path: str | Artifact, to: str | Path, *, progress: Progress = None
    ) -> Path:
        """Saves a file of the workspace locally; ``to`` may be a directory."""
        name = path.path if isinstance(path, Artifact) else path
        target = Path(to) / Path(name).name if Path(to).is_dir() else Path(to)
        with target.open("w+b") as sink:
            await self._fetch(path, sink, progress)
        return target

    async def _fetch(self, path: str | Artifact, sink: BinaryIO, progress: Progress) -> None:
        name = path.path if isinstance(path, Artifact) else path
        with progress_of(progress, f"↓ {name}") as report:
            await self._http.download(_calls.file_path(self._path, name), Download(sink), report)

    async def archive(self, to: str | Path, *, progress: Progress = None) -> Path:
        """Saves the whole workspace as a tar archive, compressed with zstd."""
        target = Path(to)
        with target.open("w+b") as sink, progress_of(progress, "↓ files.tar.zst") as report:
            await self._http.download(self._path + "/files.tar.zst", Download(sink), report)
        return target

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file of the workspace, or a directory with what is in it."""
        await self._http.send(_calls.remove_file(self._path, path, recursive))


class AsyncClient(AsyncClientBatches):
    """A server: its sessions, and runs that need none. One client serves one event loop.

    >>> async def main() -> str:
    ...     async with AsyncClient() as client:
    ...         return (await client.run("print(6 * 7)")).stdout
    >>> import asyncio; asyncio.run(main())
    '42\\n'
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.target = find_target(url, token)
        self._http = AsyncHttp(self.target, timeout, retries, transport)
        self.approvals = AsyncApprovals(self._http)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. Sessions live on."""
        await self._http.close()

    async def create(self, **options: Any) -> AsyncSession:
        """A new session; the options are those of :class:`Session`."""
        return await AsyncSession(client=self, **options).open()

    async def session(self, session_id: str) -> AsyncSession:
        """An existing session, by its id or its kernel's."""
        return await AsyncSession(client=self, attach=session_id).open()

    async def sessions(
        self, *, state: str | None = None, metadata: Mapping[str, str] | None = None
    ) -> AsyncIterator[SessionInfo]:
        """The sessions that this token may see, oldest first."""
        after = None
        while True:
            page, after = await self._http.send(_calls.list_sessions(after, state, metadata))
            for one in page:
                yield one
            if after is None:
                return

    async def run(
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
        """Runs code in a fresh sandbox that is gone afterwards; ``options`` as for AsyncSession.run.

        With ``cache_ttl`` (seconds), an identical run may be answered from the server's cache.
        """
        more = _calls.session_fields(language, environment, limits, network, env, None, None)
        if cache_ttl is not None:
            more["cache_ttl_s"] = cache_ttl
        wall_ms = (limits or {}).get("wall_ms")
        run = Run.make(code, session_path=None, wall_ms=wall_ms, more=more, **options)
        return await self._http.send(run.whole())
