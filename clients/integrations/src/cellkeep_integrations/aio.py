# SPDX-License-Identifier: Apache-2.0
"""A sandbox for asyncio, the twin of box.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from cellkeep import AsyncClient, AsyncProcess, AsyncSession, CellkeepError, Conflict, Result

from .commands import (
    FILE_SECONDS_MAX,
    OUTPUT_BYTES_MAX,
    Gathering,
    Order,
    Ran,
    check_file,
    check_written,
    order,
    read_order,
    write_order,
)
from .creation import PATIENCE_SECONDS, Creation, no_session
from .reasons import OutOfTime, check_result, is_lost, requests


class _Shared:
    """The client of an event loop, for sandboxes whose maker gives none: connections are for all of them."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.users = 0


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


def _take_shared() -> AsyncClient:
    loop = asyncio.get_running_loop()
    found = _shared.get(loop)
    if found is None:
        with requests():
            found = _shared[loop] = _Shared(AsyncClient())
    found.users += 1
    return found.client


async def _leave_shared() -> None:
    loop = asyncio.get_running_loop()
    found = _shared.get(loop)
    if found is not None:
        found.users -= 1
        if found.users == 0:
            del _shared[loop]
            await found.client.close()


class AsyncBox:
    """One session, used by commands, files and code. Leaving the ``async with`` block ends it.

    Every method raises :class:`SandboxBroken` if the sandbox fails. A program that fails is a value. Several
    tasks may use one sandbox. What is cancelled is killed inside.
    """

    def __init__(self, session: AsyncSession, *, shares_client: bool = False) -> None:
        self.session = session
        self._shares_client = shares_client

    @classmethod
    async def create(
        cls, client: AsyncClient | None = None, *, patience: float = PATIENCE_SECONDS, **options: Any
    ) -> AsyncBox:
        """A new session, made with ``options`` as ``AsyncClient.create`` takes them; see ``Box.create``."""
        creation = Creation(options, patience)
        used = client or _take_shared()
        try:
            return cls(await _create(used, creation), shares_client=client is None)
        except BaseException:
            if client is None:
                await _leave_shared()
            raise

    @classmethod
    async def adopt(cls, session_id: str, client: AsyncClient | None = None) -> AsyncBox:
        """A session that is there already."""
        used = client or _take_shared()
        try:
            with requests():
                return cls(await used.session(session_id), shares_client=client is None)
        except BaseException:
            if client is None:
                await _leave_shared()
            raise

    @property
    def id(self) -> str:
        return self.session.id

    async def __aenter__(self) -> AsyncBox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the session. It is no error if it has ended."""
        try:
            with requests():
                await self.session.close()
        finally:
            await self.leave()

    async def leave(self) -> None:
        """Lets the session live on."""
        if self._shares_client:
            self._shares_client = False
            await _leave_shared()

    # --- commands

    async def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> Ran:
        """Runs a line of the shell, or a list of arguments, to its end; see ``Box.run``."""
        asked = order(command, cwd, env, stdin)
        return await self._run(asked, timeout, Gathering(output_bytes_max))

    async def _run(self, asked: Order, timeout: float | None, gathering: Gathering) -> Ran:
        with requests():
            for path, content in asked.uploads:
                await self.session.upload(content, path)
            process = await self._start(asked)
            async with _deadline(process, timeout) as passed:
                if asked.stdin:
                    # A command that ends without having read is none that failed.
                    with suppress(Conflict):
                        await process.write(asked.stdin, close=True)
                async for event in process.events():
                    gathering.add(event)
        if passed.is_set() and gathering.killed and timeout is not None:
            raise OutOfTime(timeout, gathering.stdout, gathering.stderr)
        ran = gathering.result()
        if ran.not_started is not None:
            await self._forget(asked)
        return ran

    async def _start(self, asked: Order) -> AsyncProcess:
        try:
            return await self.session.start_process(
                asked.program,
                cwd=asked.cwd,
                env=asked.env,
                stdin=bool(asked.stdin),
                when_full="wait",
            )
        except CellkeepError:
            await self._forget(asked)
            raise

    async def _forget(self, asked: Order) -> None:
        """A command that did not begin has not removed its files."""
        for path, _ in asked.uploads:
            with suppress(CellkeepError):
                await self.session.remove(path)

    # --- files

    async def read(self, path: str, *, bytes_max: int = 100 << 20) -> bytes:
        """A file, as the commands inside see it. Raises ``OSError`` as ``open`` does, or ``FileTooLarge``."""
        asked = read_order(path, bytes_max)
        return check_file(path, await self._run(asked, FILE_SECONDS_MAX, Gathering(bytes_max + 1)))

    async def write(self, path: str, content: bytes) -> None:
        """Writes a file, and makes the folders above it. Raises ``OSError`` as ``open`` does."""
        asked = write_order(path, content)
        check_written(path, await self._run(asked, FILE_SECONDS_MAX, Gathering(OUTPUT_BYTES_MAX)))

    # --- code

    async def execute(self, code: str, *, timeout: float | None = None, **options: Any) -> Result:
        """Runs code in the session's interpreter, which keeps its variables. ``options``: as ``AsyncSession.run``."""
        with requests():
            result = await self.session.run(code, timeout=timeout, **options)
        return check_result(result)


async def _create(client: AsyncClient, creation: Creation) -> AsyncSession:
    while True:
        try:
            return await client.create(**creation.options)
        except CellkeepError as error:
            if is_lost(error):
                return await _find(client, creation, error)
            pause = creation.pause(error)
        await asyncio.sleep(pause)


async def _find(client: AsyncClient, creation: Creation, error: CellkeepError) -> AsyncSession:
    with requests():
        async for info in client.sessions(metadata=creation.filter):
            return await client.session(info.id)
    raise no_session(error) from error


async def _kill(process: AsyncProcess) -> None:
    # The command may have ended meanwhile. If the server is gone, the read of the output fails and says so.
    with suppress(CellkeepError):
        await process.signal("SIGKILL")


@asynccontextmanager
async def _deadline(process: AsyncProcess, seconds: float | None) -> AsyncIterator[asyncio.Event]:
    """Kills a command when its time is over, or when its caller is cancelled. The event tells the first."""
    passed = asyncio.Event()

    async def wait(delay: float) -> None:
        await asyncio.sleep(delay)
        passed.set()
        await _kill(process)

    waiting = asyncio.create_task(wait(seconds)) if seconds is not None else None
    try:
        yield passed
    except asyncio.CancelledError:
        killing = asyncio.ensure_future(_kill(process))
        with suppress(asyncio.CancelledError):
            await asyncio.shield(killing)
        raise
    finally:
        if waiting is not None:
            waiting.cancel()
