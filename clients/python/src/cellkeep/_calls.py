# SPDX-License-Identifier: Apache-2.0
"""Every request of the API as a value, and how its answer is read. No input or output happens here:
the blocking client and the asyncio client send the same calls."""

from __future__ import annotations

import base64
import enum
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

from .errors import ProtocolError, problem_error
from .models import ExecutionInfo, FileEntry, Json, Limits, Result, SessionInfo

T = TypeVar("T")

#: What may be given as one input file: text, bytes, a local file, or the wire's own object (for
#: ``{"from": …}``, a file of the operator's inputs directory).
FileInput = str | bytes | Path | Mapping[str, str]
#: Input files by their path in the workspace.
Files = Mapping[str, FileInput]
#: ``None``: the server's default, no network. Otherwise the hosts that may be reached, or the
#: wire's own object.
Network = Sequence[str] | Mapping[str, Any] | None

#: How long after its deadline an answer may come: a restart of the interpreter and the network
#: take time.
ANSWER_GRACE_SECONDS = 60.0


class Retry(enum.Enum):
    """When a call may be sent again after it failed."""

    #: The call is idempotent: GET, PUT, DELETE, and a request with an idempotency key.
    ALWAYS = enum.auto()
    #: Only if the server cannot have begun: no connection, or it answered that it is full.
    IF_NOT_BEGUN = enum.auto()


@dataclass(frozen=True)
class Call(Generic[T]):
    method: str
    path: str
    parse: Callable[[httpx.Response], T]
    retry: Retry
    json: Json | None = None
    params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    #: Seconds of silence after which the call is given up; None: the client's default.
    read_timeout: float | None = None


def check(response: httpx.Response) -> None:
    """Raises the problem of a refused request. The body must have been read."""
    if response.status_code < 400:
        return
    try:
        document = response.json()
    except ValueError:
        document = {}
    if not isinstance(document, dict) or "title" not in document:
        document = {"title": response.reason_phrase, "detail": response.text[:500]}
    try:
        retry_after = float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        retry_after = None
    raise problem_error(response.status_code, document, retry_after)


def read_json(response: httpx.Response) -> Json:
    try:
        value = response.json()
    except ValueError as error:
        raise ProtocolError(f"the answer is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ProtocolError("the answer is not a JSON object")
    return value


def nothing(_: httpx.Response) -> None:
    return None


def _file_wire(path: str, content: FileInput) -> Json:
    if isinstance(content, Mapping):
        return {"path": path, **content}
    if isinstance(content, str):
        return {"path": path, "text": content}
    data = content.read_bytes() if isinstance(content, Path) else content
    return {"path": path, "base64": base64.b64encode(data).decode()}


def _network_wire(network: Network) -> Json | None:
    if network is None or isinstance(network, Mapping):
        return dict(network) if network is not None else None
    return {"mode": "allowlist", "allow": list(network)} if network else {"mode": "none"}


def _given(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _checkpoints(auto: str | None, branches: bool) -> Json | None:
    wanted = _given(auto=auto, branches=branches or None)
    return wanted or None


def session_fields(
    language: str | None,
    environment: str | None,
    limits: Limits | None,
    network: Network,
    env: Mapping[str, str] | None,
    files: Files | None,
    metadata: Mapping[str, Any] | None,
    checkpoints: str | None = None,
    branches: bool = False,
) -> Json:
    return _given(
        language=language,
        environment=environment,
        limits=dict(limits) if limits is not None else None,
        network=_network_wire(network),
        env=dict(env) if env is not None else None,
        files=[_file_wire(path, content) for path, content in files.items()] if files else None,
        metadata=dict(metadata) if metadata is not None else None,
        checkpoints=_checkpoints(checkpoints, branches),
    )


@dataclass(frozen=True)
class Run:
    """A request for one execution, with the key that makes a second attempt safe."""

    body: Json
    #: Where to POST it, and where executions of its kind are found afterwards.
    path: str
    answer_seconds: float

    @classmethod
    def make(
        cls,
        code: str,
        *,
        session_path: str | None,
        wall_ms: float | None,
        stdin: str | None = None,
        timeout: float | None = None,
        files: Files | None = None,
        reasoning: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        on_disconnect: str | None = None,
        language: str | None = None,
        tools: list[Json] | None = None,
        more: Json | None = None,
    ) -> Run:
        timeout_ms = max(1, round(timeout * 1000)) if timeout is not None else None
        body = _given(
            code=code,
            stdin=stdin,
            timeout_ms=timeout_ms,
            files=[_file_wire(path, content) for path, content in files.items()] if files else None,
            reasoning=reasoning,
            metadata=dict(metadata) if metadata is not None else None,
            idempotency_key=idempotency_key or uuid.uuid4().hex,
            on_disconnect=on_disconnect,
            language=language,
            tools=tools,
        )
        longest = timeout_ms if timeout_ms is not None else wall_ms or 30_000
        return cls(
            body={**(more or {}), **body},
            path=f"{session_path or '/v1'}/executions",
            answer_seconds=longest / 1000 + ANSWER_GRACE_SECONDS,
        )

    def whole(self) -> Call[Result]:
        return Call(
            "POST",
            self.path,
            lambda response: Result.from_wire(read_json(response)),
            Retry.ALWAYS,
            json=self.body,
            read_timeout=self.answer_seconds,
        )

    def submitted(self) -> Call[ExecutionInfo]:
        return Call(
            "POST",
            self.path,
            lambda response: ExecutionInfo.from_wire(read_json(response)),
            Retry.ALWAYS,
            json=self.body,
            headers={"Prefer": "respond-async"},
        )


def create_session(fields: Json) -> Call[SessionInfo]:
    return Call("POST", "/v1/sessions", session_info, Retry.IF_NOT_BEGUN, json=fields)


def session_info(response: httpx.Response) -> SessionInfo:
    return SessionInfo.from_wire(read_json(response))


def get_session(path: str) -> Call[SessionInfo]:
    return Call("GET", path, session_info, Retry.ALWAYS)


def list_sessions(
    after: str | None, state: str | None, metadata: Mapping[str, str] | None
) -> Call[tuple[list[SessionInfo], str | None]]:
    params = _given(after=after, state=state)
    params.update({f"metadata.{name}": value for name, value in (metadata or {}).items()})

    def parse(response: httpx.Response) -> tuple[list[SessionInfo], str | None]:
        page = read_json(response)
        return [SessionInfo.from_wire(one) for one in page["sessions"]], page.get("next")

    return Call("GET", "/v1/sessions", parse, Retry.ALWAYS, params=params)


def update_session(
    path: str,
    limits: Limits | None,
    network: Network,
    metadata: Mapping[str, Any] | None,
    keep_alive: bool | None,
) -> Call[SessionInfo]:
    body = _given(
        limits=dict(limits) if limits is not None else None,
        network=_network_wire(network),
        metadata=dict(metadata) if metadata is not None else None,
        keep_alive=keep_alive,
    )
    return Call("PATCH", path, session_info, Retry.ALWAYS, json=body)


def delete_session(path: str) -> Call[None]:
    return Call("DELETE", path, nothing, Retry.ALWAYS)


def interrupt(path: str, language: str | None = None) -> Call[None]:
    # A second interrupt could stop the code that runs after the intended one.
    body = _given(language=language) or None
    return Call("POST", path + "/interrupt", nothing, Retry.IF_NOT_BEGUN, json=body)


def restart(path: str, language: str | None = None) -> Call[SessionInfo]:
    body = _given(language=language) or None
    return Call("POST", path + "/restart", session_info, Retry.IF_NOT_BEGUN, json=body)


def get_execution(path: str) -> Call[ExecutionInfo]:
    return Call(
        "GET", path, lambda answer: ExecutionInfo.from_wire(read_json(answer)), Retry.ALWAYS
    )


def list_executions(path: str, after: str | None) -> Call[tuple[list[ExecutionInfo], str | None]]:
    def parse(response: httpx.Response) -> tuple[list[ExecutionInfo], str | None]:
        page = read_json(response)
        return [ExecutionInfo.from_wire(one) for one in page["executions"]], page.get("next")

    return Call("GET", path + "/executions", parse, Retry.ALWAYS, params=_given(after=after))


def file_path(session_path: str, path: str) -> str:
    """The address of a workspace file.

    >>> file_path("/v1/sessions/ses_1", "a dir/100%.csv")
    '/v1/sessions/ses_1/files/a%20dir/100%25.csv'
    """
    return f"{session_path}/files/{quote(path.removeprefix('/workspace/'), safe='/')}"


def list_files(session_path: str, path: str) -> Call[list[FileEntry]]:
    def parse(response: httpx.Response) -> list[FileEntry]:
        return [FileEntry.from_wire(one) for one in read_json(response)["entries"]]

    params = {"path": path} if path else {}
    return Call("GET", session_path + "/files", parse, Retry.ALWAYS, params=params)


def remove_file(session_path: str, path: str, recursive: bool) -> Call[None]:
    params = {"recursive": "true"} if recursive else {}
    return Call("DELETE", file_path(session_path, path), nothing, Retry.ALWAYS, params=params)


def is_not_begun(error: Exception) -> bool:
    """Whether the server cannot have acted on the request."""
    return isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def retry_delay(attempt: int, asked: float | None, longest: float) -> float:
    """Seconds to wait before the next attempt: what the server asked for, or 0.2, 0.4, 0.8 …

    >>> [retry_delay(n, None, 5.0) for n in range(6)], retry_delay(0, 3.0, 5.0)
    ([0.2, 0.4, 0.8, 1.6, 3.2, 5.0], 3.0)
    """
    return min(longest, asked if asked is not None else 0.2 * float(2**attempt))


