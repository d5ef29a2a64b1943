# SPDX-License-Identifier: Apache-2.0
"""Sends calls over a blocking connection: attempts, resumption, transfers. aio.py's twin is
_aio_http.py; what they decide is in _calls, _stream and _transfer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import httpx

from ._calls import Call, Retry, check, is_not_begun, read_json, retry_delay
from ._stream import SILENCE_SECONDS_MAX, Followed
from ._transfer import Download, Source
from .discovery import Target
from .errors import ConnectionFailed, ProblemError
from .models import FileEntry
from .progress import ProgressCallback

T = TypeVar("T")

RETRY_SECONDS_MAX = 10.0
CONNECT_SECONDS = 10.0


def retriable(error: Exception, retry: Retry) -> bool:
    """Whether a call that failed with this error may be sent again."""
    if isinstance(error, ProblemError):
        # 503: the server says that it did nothing and may be asked again.
        return error.status == 503
    return is_not_begun(error) or retry is Retry.ALWAYS


class Http:
    """One server's connections. Safe to use from several threads."""

    def __init__(
        self,
        target: Target,
        timeout: float,
        retries: int,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.retries = retries
        self._timeout = timeout
        if transport is None and target.socket is not None:
            transport = httpx.HTTPTransport(uds=target.socket)
        self._client = httpx.Client(
            base_url=target.url,
            headers={"Authorization": f"Bearer {target.token}"} if target.token else {},
            timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
            transport=transport,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=target.socket is None,
        )

    def close(self) -> None:
        self._client.close()

    def _attempts(self, attempt: Callable[[], T], retry: Retry) -> T:
        for number in range(self.retries + 1):
            try:
                return attempt()
            except (httpx.TransportError, ProblemError) as error:
                if number == self.retries or not retriable(error, retry):
                    if isinstance(error, ProblemError):
                        raise
                    raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
                asked = error.retry_after if isinstance(error, ProblemError) else None
            time.sleep(retry_delay(number, asked, RETRY_SECONDS_MAX))
        raise AssertionError("unreachable")

    def send(self, call: Call[T]) -> T:
        timeout = httpx.Timeout(call.read_timeout or self._timeout, connect=CONNECT_SECONDS)

        def attempt() -> T:
            response = self._client.request(
                call.method,
                call.path,
                json=call.json,
                params=call.params,
                headers=call.headers,
                timeout=timeout,
            )
            check(response)
            return call.parse(response)

        return self._attempts(attempt, call.retry)

    def events(self, stream: Followed[T]) -> Iterator[T]:
        """All that it brings up to its end, over as many connections as it takes."""
        failures = 0
        while not stream.finished:
            asked = None
            try:
                for event in self._connection(stream):
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
                time.sleep(retry_delay(failures - 1, asked, RETRY_SECONDS_MAX))

    def _connection(self, stream: Followed[T]) -> Iterator[T]:
        method, path, headers, body = stream.request()
        timeout = httpx.Timeout(self._timeout, connect=CONNECT_SECONDS, read=SILENCE_SECONDS_MAX)
        with self._client.stream(
            method, path, headers=headers, json=body, timeout=timeout
        ) as response:
            if response.status_code >= 400:
                response.read()
                check(response)
            stream.opened(response)
            for chunk in response.iter_raw():
                yield from stream.feed(chunk)
                if stream.finished:
                    return

    def download(self, path: str, sink: Download, report: ProgressCallback) -> None:
        def attempt() -> None:
            with self._client.stream("GET", path, headers=sink.headers()) as response:
                if response.status_code >= 400:
                    response.read()
                    check(response)
                sink.opened(response)
                report(sink.done, sink.total)
                for chunk in response.iter_raw():
                    sink.write(chunk)
                    report(sink.done, sink.total)

        self._attempts(attempt, Retry.ALWAYS)

    def upload(self, path: str, source: Source, report: ProgressCallback) -> FileEntry:
        total = source.total()
        headers = {"Content-Type": "application/octet-stream"}
        if total is not None:
            headers["Content-Length"] = str(total)

        def body() -> Iterator[bytes]:
            done = 0
            report(done, total)
            for chunk in source.chunks():
                yield chunk
                done += len(chunk)
                report(done, total)

        def attempt() -> FileEntry:
            response = self._client.put(path, content=body(), headers=headers)
            check(response)
            return FileEntry.from_wire(read_json(response))

        return self._attempts(attempt, Retry.ALWAYS if source.replayable else Retry.IF_NOT_BEGUN)
