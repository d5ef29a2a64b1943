# SPDX-License-Identifier: Apache-2.0
"""The two ends of a file transfer: where bytes come from and where they go, chunk by chunk, so that
a broken transfer can go on or start again."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import httpx

from .errors import ProtocolError

#: What an upload takes: bytes, text, a local file's path, or a binary stream.
Upload = bytes | str | Path | BinaryIO
CHUNK_BYTES = 1 << 18


class Source:
    """The bytes of an upload. A ``str`` is content, not a path."""

    def __init__(self, content: Upload) -> None:
        self._path = content if isinstance(content, Path) else None
        if isinstance(content, str):
            content = content.encode()
        self._stream = io.BytesIO(content) if isinstance(content, bytes) else None
        if self._stream is None and not isinstance(content, bytes | Path):
            self._stream = content  # type: ignore[assignment]
        self._start = self._position()

    def _position(self) -> int | None:
        if self._stream is None or not self._stream.seekable():
            return None
        return self._stream.tell()

    @property
    def replayable(self) -> bool:
        return self._path is not None or self._start is not None

    def total(self) -> int | None:
        """The number of bytes, if it is known before they are read."""
        if self._path is not None:
            return self._path.stat().st_size
        if self._stream is None or self._start is None:
            return None
        end = self._stream.seek(0, os.SEEK_END)
        self._stream.seek(self._start)
        return end - self._start

    def chunks(self) -> Iterator[bytes]:
        """Yields the content in chunks. Each call begins at the first byte."""
        if self._path is not None:
            with self._path.open("rb") as stream:
                yield from iter(lambda: stream.read(CHUNK_BYTES), b"")
            return
        if self._stream is not None:
            if self._start is not None:
                self._stream.seek(self._start)
            rest = self._stream
            yield from iter(lambda: rest.read(CHUNK_BYTES), b"")


class Download:
    """A download. When the connection breaks it keeps the bytes that have arrived: the next request
    asks for the rest, of the same version of the file only (``If-Range``)."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._start = sink.tell() if sink.seekable() else None
        self.done = 0
        self.total: int | None = None
        self._etag: str | None = None

    def headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity"}
        if self.done and self._etag:
            headers["Range"] = f"bytes={self.done}-"
            headers["If-Range"] = self._etag
        return headers

    def opened(self, response: httpx.Response) -> None:
        """The answer's head has arrived."""
        if response.status_code == 206:
            span, _, total = response.headers.get("Content-Range", "").rpartition("/")
            if not span.startswith(f"bytes {self.done}-"):
                raise ProtocolError(f"not the range that was asked for: {span}")
            self.total = int(total)
            return
        if self.done:  # The file is another one now, or ranges are not offered: from the start.
            if self._start is None:
                raise ProtocolError("the file changed while it was read")
            self._sink.seek(self._start)
            self._sink.truncate()
            self.done = 0
        self._etag = response.headers.get("ETag")
        length = response.headers.get("Content-Length")
        self.total = int(length) if length is not None else None

    def write(self, chunk: bytes) -> None:
        self._sink.write(chunk)
        self.done += len(chunk)
