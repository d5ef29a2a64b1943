# SPDX-License-Identifier: Apache-2.0
"""deepagents and LangChain: a session as the backend of a deep agent."""

from __future__ import annotations

import errno
from types import TracebackType
from typing import Any

from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox

from .box import Box
from .commands import FileTooLarge, shell
from .reasons import OutOfTime

#: Seconds for a command that comes without a time.
TIMEOUT_SECONDS = 1800
#: By convention, and as deepagents' own backend says it.
_TIMED_OUT = 124
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def _error_of(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "file_not_found"
    if isinstance(error, IsADirectoryError):
        return "is_directory"
    return "permission_denied" if error.errno in _DENIED else "invalid_path"


class CellkeepSandbox(BaseSandbox):
    """``create_deep_agent(backend=CellkeepSandbox(limits={"memory_mb": 2048}))``.

    The session is made with ``options`` as ``Client.create`` takes them, or is that of ``box``. ``close`` ends
    it, also at the end of a ``with`` block. Whatever breaks the sandbox is raised as ``SandboxBroken``, which
    ends the agent's run; a command that is out of time has the exit code 124.
    """

    def __init__(
        self, box: Box | None = None, *, timeout: int = TIMEOUT_SECONDS, **options: Any
    ) -> None:
        if box is not None and options:
            raise ValueError("give either a box, or what its session is made with")
        if timeout <= 0:
            raise ValueError("the time of a command is positive")
        self.box = Box.create(**options) if box is None else box
        self._timeout = timeout

    @property
    def id(self) -> str:
        return self.box.id

    def __enter__(self) -> CellkeepSandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session."""
        self.box.close()

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a line of bash. ``timeout`` is in seconds; 0: none. ``ValueError``: it is negative."""
        if timeout is not None and timeout < 0:
            raise ValueError("the time of a command is not negative")
        seconds = self._timeout if timeout is None else timeout or None
        try:
            ran = self.box.run(shell(command), timeout=seconds)
        except OutOfTime as late:
            said = late.stdout.decode(errors="replace")
            return ExecuteResponse(f"{said}\nError: {late.detail}.", _TIMED_OUT)
        return ExecuteResponse(ran.text, ran.exit_code, ran.truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path, self._upload(path, content)) for path, content in files]

    def _upload(self, path: str, content: bytes) -> str | None:
        if not path.startswith("/") or "\0" in path:
            return "invalid_path"
        try:
            self.box.write(path, content)
        except OSError as error:
            return _error_of(error)
        return None

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/") or "\0" in path:
            return FileDownloadResponse(path, None, "invalid_path")
        try:
            return FileDownloadResponse(path, self.box.read(path), None)
        except OSError as error:
            return FileDownloadResponse(path, None, _error_of(error))
        except FileTooLarge:
            return FileDownloadResponse(path, None, "file_too_large")
