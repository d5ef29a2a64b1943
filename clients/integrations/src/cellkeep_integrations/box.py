# SPDX-License-Identifier: Apache-2.0
"""A sandbox for blocking programs; aio.py has its twin for asyncio."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from cellkeep import CellkeepError, Client, Conflict, NotFound, Process, Result, Session

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
from .reasons import OutOfTime, SandboxBroken, check_result, is_lost, requests


class Box:
    """One session, used by commands, files and code. Leaving the ``with`` block ends it.

    Every method raises :class:`SandboxBroken` if the sandbox fails. A program that fails is a value. Several
    threads may use one sandbox.
    """

    def __init__(self, session: Session, *, owned_client: Client | None = None) -> None:
        self.session = session
        self._owned_client = owned_client

    @classmethod
    def create(
        cls, client: Client | None = None, *, patience: float = PATIENCE_SECONDS, **options: Any
    ) -> Box:
        """A new session, made with ``options`` as ``Client.create`` takes them.

        A server that is full is asked again for ``patience`` seconds. A session whose creation was cut off on
        the way is found again, so that none is lost.
        """
        with requests():
            own = Client() if client is None else None
        creation = Creation(options, patience)
        try:
            return cls(_create(client or own or Client(), creation), owned_client=own)
        except BaseException:
            if own is not None:
                own.close()
            raise

    @classmethod
    def adopt(cls, session_id: str, client: Client | None = None) -> Box:
        """A session that is there already."""
        with requests():
            own = Client() if client is None else None
            try:
                return cls((client or own or Client()).session(session_id), owned_client=own)
            except BaseException:
                if own is not None:
                    own.close()
                raise

    @property
    def id(self) -> str:
        return self.session.id

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session. It is no error if it has ended."""
        try:
            with requests():
                self.session.close()
        finally:
            self.leave()

    def leave(self) -> None:
        """Lets the session live on."""
        if self._owned_client is not None:
            self._owned_client.close()

    # --- commands

    def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> Ran:
        """Runs a line of the shell, or a list of arguments, to its end.

        ``timeout`` is in seconds; beyond it the command is killed, and :class:`OutOfTime` has what it wrote. Of
        each stream the first ``output_bytes_max`` bytes are kept.
        """
        return self._run(order(command, cwd, env, stdin), timeout, Gathering(output_bytes_max))

    def _run(self, asked: Order, timeout: float | None, gathering: Gathering) -> Ran:
        with requests():
            for path, content in asked.uploads:
                self.session.upload(content, path)
            process = self._start(asked)
            with _Deadline(process, timeout) as deadline:
                if asked.stdin:
                    # A command that ends without having read is none that failed.
                    with suppress(Conflict):
                        process.write(asked.stdin, close=True)
                for event in process.events():
                    gathering.add(event)
        if deadline.passed and gathering.killed and timeout is not None:
            raise OutOfTime(timeout, gathering.stdout, gathering.stderr)
        ran = gathering.result()
        if ran.not_started is not None:
            self._forget(asked)
        return ran

    def _start(self, asked: Order) -> Process:
        try:
            return self.session.start_process(
                asked.program,
                cwd=asked.cwd,
                env=asked.env,
                stdin=bool(asked.stdin),
                when_full="wait",
            )
        except CellkeepError:
            self._forget(asked)
            raise

    def _forget(self, asked: Order) -> None:
        """A command that did not begin has not removed its files."""
        for path, _ in asked.uploads:
            with suppress(CellkeepError):
                self.session.remove(path)

    # --- files

    def read(self, path: str, *, bytes_max: int = 100 << 20) -> bytes:
        """A file, as the commands inside see it. Raises ``OSError`` as ``open`` does, or ``FileTooLarge``."""
        return check_file(
            path, self._run(read_order(path, bytes_max), FILE_SECONDS_MAX, Gathering(bytes_max + 1))
        )

    def write(self, path: str, content: bytes) -> None:
        """Writes a file, and makes the folders above it. Raises ``OSError`` as ``open`` does."""
        check_written(
            path,
            self._run(write_order(path, content), FILE_SECONDS_MAX, Gathering(OUTPUT_BYTES_MAX)),
        )

    # --- code

    def execute(self, code: str, *, timeout: float | None = None, **options: Any) -> Result:
        """Runs code in the session's interpreter, which keeps its variables. ``options``: as ``Session.run``."""
        with requests():
            result = self.session.run(code, timeout=timeout, **options)
        return check_result(result)


def _create(client: Client, creation: Creation) -> Session:
    while True:
        try:
            return client.create(**creation.options)
        except CellkeepError as error:
            if is_lost(error):
                return _find(client, creation, error)
            pause = creation.pause(error)
        time.sleep(pause)  # as long as the server asked for


def _find(client: Client, creation: Creation, error: CellkeepError) -> Session:
    with requests():
        for info in client.sessions(metadata=creation.filter):
            return client.session(info.id)
    raise no_session(error) from error


class _Deadline:
    """Kills a command when its time is over, or when its caller stops waiting for it."""

    def __init__(self, process: Process, seconds: float | None) -> None:
        self._process = process
        self._timer = threading.Timer(seconds, self._pass) if seconds is not None else None
        self.passed = False

    def _pass(self) -> None:
        self.passed = True
        self._kill()

    def _kill(self) -> None:
        # The command may have ended meanwhile. If the server is gone, the read of the output fails and says so.
        with suppress(CellkeepError):
            self._process.signal("SIGKILL")

    def __enter__(self) -> _Deadline:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if kind is not None and not issubclass(kind, NotFound | SandboxBroken):
            self._kill()
