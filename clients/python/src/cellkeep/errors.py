# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as exceptions.

A program that fails is not an exception: it is a result whose ``status`` says so. Exceptions are for
requests that the server refused (:class:`ProblemError`, with the server's problem document), for a
server that cannot be reached (:class:`ConnectionFailed`), and, when asked for with
:meth:`cellkeep.Result.raise_for_status`, for code that failed (:class:`ExecutionFailed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import Result


class CellkeepError(Exception):
    """The base of everything this package raises on purpose."""


class ConnectionFailed(CellkeepError):
    """The server was not reached, or went away before it answered."""


class ProtocolError(CellkeepError):
    """The answer is not one a Cellkeep server gives."""


class ExecutionFailed(CellkeepError):
    """The code did not end with status ``ok``; ``result`` is the whole answer."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(result.error.summary if result.error else result.status)


@dataclass(frozen=True)
class FieldError:
    """One thing wrong in a request's body; ``pointer`` is a JSON pointer (RFC 6901)."""

    pointer: str
    message: str


class ProblemError(CellkeepError):
    """The server refused the request with a problem document (RFC 9457).

    >>> error = problem_error(404, {"type": "/problems/unknown-session", "title": "No such session",
    ...                             "status": 404, "detail": "There is no session ses_1."})
    >>> isinstance(error, NotFound), error.kind, str(error)
    (True, 'unknown-session', '404 No such session: There is no session ses_1.')
    """

    def __init__(
        self, status: int, document: Mapping[str, Any], retry_after: float | None = None
    ) -> None:
        self.status = status
        #: The problem document as the server sent it.
        self.document = dict(document)
        #: The problem's stable name: the last part of its ``type``.
        self.kind = str(document.get("type", "")).rpartition("/")[2]
        self.title = str(document.get("title", "The request failed"))
        self.detail = str(document.get("detail", ""))
        #: Every field at fault, when the body was.
        self.errors = tuple(
            FieldError(str(entry.get("pointer", "")), str(entry.get("message", "")))
            for entry in document.get("errors", ())
            if isinstance(entry, Mapping)
        )
        #: Seconds after which to try again, if the server sent a time.
        self.retry_after = retry_after
        super().__init__(f"{status} {self.title}: {self.detail}")


class BadRequest(ProblemError):
    """400, 406, 415: malformed."""


class Unauthorized(ProblemError):
    """401: no valid token."""


class Forbidden(Unauthorized):
    """403: the token is valid, and its role or the operator does not allow this.

    >>> error = problem_error(403, {"type": "/problems/read-only-role", "status": 403})
    >>> isinstance(error, Forbidden), isinstance(error, Unauthorized), error.kind
    (True, True, 'read-only-role')
    """


class NotFound(ProblemError):
    """404: no such session, execution or file."""


class Ended(NotFound):
    """410: the session has ended (``document``: when and why), or an answer is forgotten."""


class Conflict(ProblemError):
    """409, 412: the state, or a precondition, forbids it."""


class TooLarge(ProblemError):
    """413: a body, a file or the workspace is full."""


class Invalid(ProblemError):
    """422: ``errors`` names every field at fault."""


class LimitReached(ProblemError):
    """429: too many sessions, a full queue, a spent budget or an open circuit breaker.

    For a spent budget, ``budget``, ``used`` and ``limit`` say which and how much.
    """

    @property
    def budget(self) -> str | None:
        value = self.document.get("budget")
        return value if isinstance(value, str) else None

    @property
    def used(self) -> float | None:
        value = self.document.get("used")
        return value if isinstance(value, int | float) else None

    @property
    def limit(self) -> float | None:
        value = self.document.get("limit")
        return value if isinstance(value, int | float) else None


class ServerError(ProblemError):
    """500 and above: the server failed, is full (503) or took too long (504)."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    406: BadRequest,
    409: Conflict,
    410: Ended,
    412: Conflict,
    413: TooLarge,
    415: BadRequest,
    422: Invalid,
    429: LimitReached,
}


def problem_error(
    status: int, document: Mapping[str, Any], retry_after: float | None = None
) -> ProblemError:
    """The exception for a status, with its document."""
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ProblemError)
    return kind(status, document, retry_after)
