# SPDX-License-Identifier: Apache-2.0
"""The events of one execution, for asyncio: the twin of ``Events`` in client.py."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ._aio_http import AsyncHttp
from ._stream import EventStream
from .errors import ProtocolError
from .models import Event, Result


class AsyncEvents(AsyncIterator[Event]):
    """The events of one execution; after the last of them, ``result`` is the whole answer.
    Leaving it early closes the connection; the execution goes on, unless it was started with
    ``on_disconnect="interrupt"``."""

    def __init__(self, http: AsyncHttp, stream: EventStream) -> None:
        self._stream = stream
        self._events = http.events(stream)
        self._result: Result | None = None

    async def __anext__(self) -> Event:
        event = await anext(self._events)
        self._result = event.result or self._result
        return event

    async def close(self) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    async def __aenter__(self) -> AsyncEvents:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def execution_path(self) -> str | None:
        """The path of the execution on the server, once the server has sent it."""
        return self._stream.path

    async def result(self) -> Result:
        """The whole answer. Reads what has not been read yet."""
        async for _ in self:
            pass
        if self._result is None:
            raise ProtocolError("the execution ended without an answer")
        return self._result
