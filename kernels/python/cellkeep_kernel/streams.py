# SPDX-License-Identifier: Apache-2.0
"""sys.stdout and sys.stderr: text files over the C++ output buffer, usable from any thread.

A forked child has no kernel link: its streams write to descriptors 1 and 2, which the server reads.
"""

import functools
import io
import os


class _Bytes(io.BufferedIOBase):
    """The .buffer of a stream: takes bytes, for code such as sys.stdout.buffer.write(data)."""

    def __init__(self, stream):
        import codecs

        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        self._stream.write(self._decoder.decode(data))
        return len(data)

    def flush(self):
        self._stream.flush()

    def fileno(self):
        return self._stream.fileno()


class OutStream(io.TextIOBase):
    encoding = "utf-8"
    newlines = None
    line_buffering = True
    mode = "w"

    def __init__(self, host, fd, errors, schedule_flush):
        self._host = host
        self._fd = fd
        self._to_stderr = fd == 2
        self._errors = errors
        self._schedule_flush = schedule_flush
        self._direct = False
        self._buffer = None
        self.name = "<stderr>" if self._to_stderr else "<stdout>"

    @property
    def errors(self):
        return self._errors

    @property
    def buffer(self):
        if self._buffer is None:
            self._buffer = _Bytes(self)
        return self._buffer

    def writable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        return self._fd

    def reconfigure(self, *, errors=None, **_others):
        """Only the error handler can change: the encoding is the wire's, and lines go out at once."""
        if errors is not None:
            self._errors = errors

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if self._direct:
            self._write_to_descriptor(text)
            return len(text)
        try:
            scheduled = self._host.write(self._to_stderr, text)
        except UnicodeEncodeError:
            if self._errors == "strict":
                raise
            text = text.encode("utf-8", self._errors).decode("utf-8", "replace")
            scheduled = self._host.write(self._to_stderr, text)
        if scheduled:
            self._schedule_flush()
        return len(text)

    def flush(self):
        if not self._direct:
            self._host.flush()

    def close(self):
        """Ignored, as for ipykernel's streams: a library that closes sys.stdout would silence the
        session for good."""
        self.flush()

    def schedule_flush(self):
        self._schedule_flush()

    def write_directly(self):
        """For a forked child."""
        self._direct = True

    def _write_to_descriptor(self, text):
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        while data:
            data = data[os.write(self._fd, data):]


@functools.cache  # once in a zygote
def make_fast(base, kind):
    """OutStream's equal over the C++ half's TextStream, whose write() takes what is usual.

    kind: of the host that it can write to; over another one it is an OutStream.
    """

    class FastStream(base, OutStream):
        write_slowly = OutStream.write

        def __init__(self, host, fd, errors, schedule_flush):
            OutStream.__init__(self, host, fd, errors, schedule_flush)
            self.bind(host if isinstance(host, kind) else None, fd == 2)

        def write_directly(self):
            self.bind(None, self._to_stderr)
            OutStream.write_directly(self)

    FastStream.__name__ = FastStream.__qualname__ = OutStream.__name__
    return FastStream
