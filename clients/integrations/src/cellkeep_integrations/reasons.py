# SPDX-License-Identifier: Apache-2.0
"""Why a sandbox failed, as opposed to the program in it.

A program's own failure is a value with an exit code. What the sandbox or its server failed at is an exception, so
that no evaluation counts it as an answer, and no training run as a reward.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from cellkeep import (
    CellkeepError,
    ConnectionFailed,
    LimitReached,
    NotFound,
    ProblemError,
    ProcessInfo,
    Result,
    ServerError,
    TooLarge,
)

#: ``oom``: the memory limit. ``timeout``: the time that the caller gave. ``dead``: the session or its interpreter
#: has ended. ``capacity``: the server takes no more sessions, commands or work, or a budget is spent.
#: ``disk_full``: the workspace is. ``unreachable``: the server is. ``refused``: the server does not do what was
#: asked, as with a wrong token.
Reason: TypeAlias = Literal[
    "oom", "timeout", "dead", "capacity", "disk_full", "unreachable", "refused"
]

_OF_STATUS: dict[str, Reason] = {
    "oom": "oom",
    "timeout": "timeout",
    "dead": "dead",
    "disk_full": "disk_full",
}


class SandboxBroken(RuntimeError):
    """The sandbox failed. What ran in it has no result."""

    def __init__(self, reason: Reason, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: Reason = reason
        self.detail = detail
        #: Seconds after which to try again, if the server sent a time.
        self.retry_after = retry_after


class OutOfTime(SandboxBroken):
    """A command did not end in the time that the caller gave. It was killed; the sandbox lives on."""

    def __init__(self, seconds: float, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__("timeout", f"the command did not end within {seconds:g} s")
        self.seconds = seconds
        #: What it wrote before.
        self.stdout = stdout
        self.stderr = stderr


class SandboxLost(BaseException):
    """The same for frameworks that tell the model each ``Exception`` of a tool or of code, and go on.

    This one ends the agent's run. ``__cause__`` says more.
    """

    def __init__(self, broken: SandboxBroken) -> None:
        super().__init__(str(broken))
        self.reason: Reason = broken.reason


@contextmanager
def ending_the_run() -> Iterator[None]:
    """Turns :class:`SandboxBroken` into :class:`SandboxLost`."""
    try:
        yield
    except SandboxBroken as broken:
        raise SandboxLost(broken) from broken


def reason_of(error: CellkeepError) -> Reason:
    """What a failed request says about the sandbox.

    >>> from cellkeep.errors import problem_error
    >>> def of(status, kind):
    ...     return reason_of(problem_error(status, {"type": "/problems/" + kind}))
    >>> of(410, "session-ended"), of(429, "limit-reached"), of(503, "unavailable"), of(401, "unauthorized")
    ('dead', 'capacity', 'capacity', 'refused')
    >>> of(413, "workspace-full"), of(413, "too-large"), of(500, "internal-error")
    ('disk_full', 'refused', 'unreachable')
    """
    if isinstance(error, LimitReached):
        return "capacity"
    if isinstance(error, NotFound):
        return "dead"
    if isinstance(error, TooLarge):
        return "disk_full" if error.kind == "workspace-full" else "refused"
    if isinstance(error, ServerError):
        return "capacity" if error.status == 503 else "unreachable"
    return "refused" if isinstance(error, ProblemError) else "unreachable"


def broken_by(error: CellkeepError) -> SandboxBroken:
    """The same as an exception."""
    after = error.retry_after if isinstance(error, ProblemError) else None
    return SandboxBroken(reason_of(error), str(error), after)


@contextmanager
def requests() -> Iterator[None]:
    """Turns each refused or failed request of the block into :class:`SandboxBroken`."""
    try:
        yield
    except CellkeepError as error:
        raise broken_by(error) from error


def is_lost(error: Exception) -> bool:
    """Whether the connection failed, so that the server may or may not have done what was asked."""
    return isinstance(error, ConnectionFailed)


def check_result(result: Result) -> Result:
    """Gives back what a program is responsible for, also an error of its own; else raises :class:`SandboxBroken`."""
    reason = _OF_STATUS.get(result.status)
    if reason is not None:
        raise SandboxBroken(reason, result.error.summary if result.error else result.status)
    return result


def check_end(info: ProcessInfo) -> None:
    """Raises :class:`SandboxBroken` if a command did not end by its own doing."""
    if info.reason == "session_ended":
        raise SandboxBroken("dead", "the session ended while the command ran")
    # SIGKILL is what the kernel sends at the memory limit, and what a shell reports as 137.
    if info.reason == "oom" or info.signal == "SIGKILL" or info.exit_code == 137:
        raise SandboxBroken("oom", "the command was killed, as happens at the memory limit")
