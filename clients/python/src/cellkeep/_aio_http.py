# SPDX-License-Identifier: Apache-2.0
"""Sends calls over asyncio: the twin of _http.py, attempt for attempt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import httpx

from ._calls import Call, Retry, check, read_json, retry_delay
from ._http import CONNECT_SECONDS, RETRY_SECONDS_MAX, retriable
from ._stream import SILENCE_SECONDS_MAX, Followed
from ._transfer import Download, Source
from .discovery import Target
from .errors import ConnectionFailed, ProblemError
from .models import FileEntry
from .progress import ProgressCallback

T = TypeVar("T")


class AsyncHttp:
    """One server's connections, of one event loop."""

    def __init__(
        self,
        target: Target,
        timeout: float,
        retries: int,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.retries = retries
        self._timeout = timeout
        if transport is None and target.socket is not None:
            transport = httpx.AsyncHTTPTransport(uds=target.socket)
        self._client = httpx.AsyncClient(
            base_url=target.url,
            headers={"Authorization": f"Bearer {target.token}"} if target.token else {},
            timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
            transport=transport,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=target.socket is None,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def _attempts(self, attempt: Callable[[], Awaitable[T]], retry: Retry) -> T:
        for number in range(self.retries + 1):
            try:
                return await attempt()
            except (httpx.TransportError, ProblemError) as error:
                if number == self.retries or not retriable(error, retry):
                    if isinstance(error, ProblemError):
                        raise
                    raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
                asked = error.retry_after if isinstance(error, ProblemError) else None
            await asyncio.sleep(retry_delay(number, asked, RETRY_SECONDS_MAX))
        raise AssertionError("unreachable")

    async def send(self, call: Call[T]) -> T:
        timeout = httpx.Timeout(call.read_timeout or self._timeout, connect=CONNECT_SECONDS)

        async def attempt() -> T:
            response = await self._client.request(
                call.method,
                call.path,
                json=call.json,
                params=call.params,
                headers=call.headers,
                timeout=timeout,
            )
            check(response)
            return call.parse(response)

        return await self._attempts(attempt, call.retry)

    async def events(self, stream: Followed[T]) -> AsyncIterator[T]:
        """All that it brings up to its end, over as many connections as it takes."""
        failures = 0
        while not stream.finished:
            asked = None
            try:
                async for event in self._connection(stream):
                    failures = 0
                    yield event
                failures += 1
                error: Exception = ConnectionFailed("the stream ended before the execution did")
            except (httpx.TransportError, ProblemError) as broken:
                # A new request joins the same execution: the POST by its key, the GET by its path.
                if not retriable(broken, Retry.ALWAYS):
                    raise
                failures += 1
                error = broken
                asked = broken.retry_after if isinstance(broken, ProblemError) else None
            if not stream.finished:
                if failures > self.retries:
                    if isinstance(error, ProblemError | ConnectionFailed):
                        raise error
                    raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
                await asyncio.sleep(retry_delay(failures - 1, asked, RETRY_SECONDS_MAX))

    async def _connection(self, stream: Followed[T]) -> AsyncIterator[T]:
        method, path, headers, body = stream.request()
        timeout = httpx.Timeout(self._timeout, connect=CONNECT_SECONDS, read=SILENCE_SECONDS_MAX)
        async with self._client.stream(
            method, path, headers=headers, json=body, timeout=timeout
        ) as response:
            if response.status_code >= 400:
                await response.aread()
                check(response)
            stream.opened(response)
            async for chunk in response.aiter_raw():
                for event in stream.feed(chunk):
                    yield event
                if stream.finished:
                    return

    async def download(self, path: str, sink: Download, report: ProgressCallback) -> None:
        async def attempt() -> None:
            async with self._client.stream("GET", path, headers=sink.headers()) as response:
                if response.status_code >= 400:
                    await response.aread()
                    check(response)
                sink.opened(response)
                report(sink.done, sink.total)
                async for chunk in response.aiter_raw():
                    sink.write(chunk)
                    report(sink.done, sink.total)

        await self._attempts(attempt, Retry.ALWAYS)

    async def upload(self, path: str, source: Source, report: ProgressCallback) -> FileEntry:
        total = source.total()
        headers = {"Content-Type": "application/octet-stream"}
        if total is not None:
            headers["Content-Length"] = str(total)

        async def body() -> AsyncIterator[bytes]:
            done = 0
            report(done, total)
            chunks = source.chunks()
            while chunk := await asyncio.to_thread(next, chunks, b""):
                yield chunk
                done += len(chunk)
                report(done, total)

        async def attempt() -> FileEntry:
            response = await self._client.put(path, content=body(), headers=headers)
            check(response)
            return FileEntry.from_wire(read_json(response))

        return await self._attempts(attempt, Retry.ALWAYS if source.replayable else Retry.IF_NOT_BEGUN)
