# SPDX-License-Identifier: Apache-2.0
"""Batches: many candidates tried from one state, each in a session of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import httpx

from ._calls import (
    Call,
    Network,
    Retry,
    Run,
    create_session,
    nothing,
    read_json,
    session_fields,
)
from ._stream import LineStream
from .errors import NotFound, ProblemError, problem_error
from .models import Json, Limits, Result, SessionInfo

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http
    from .aio import AsyncSession
    from .client import Session

#: Code, or the arguments of ``run``, and ``label`` and ``env``: ``{"code": …, "timeout": …}``.
Candidate: TypeAlias = str | Mapping[str, Any]


@dataclass(frozen=True)
class BatchItem:
    """One item that has ended."""

    #: Its place among the candidates.
    index: int
    label: str | None
    #: That of its result; ``refused``: it did not run, and ``error`` says why; ``stopped``: it was
    #: ended, or not begun, because of others.
    status: str
    reason: str | None
    #: Without what was printed and shown if that was too long (``omitted``); None if it did not run.
    result: Result | None
    omitted: bool
    error: ProblemError | None
    #: Of its session, if that stays.
    session_id: str | None
    raw: Json = field(repr=False)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @classmethod
    def from_wire(cls, raw: Json) -> BatchItem:
        problem = raw.get("error")
        return cls(
            index=int(raw["index"]),
            label=raw.get("label"),
            status=str(raw["status"]),
            reason=raw.get("reason"),
            result=_result(raw),
            omitted=bool(raw.get("omitted", False)),
            error=problem_error(int(problem["status"]), problem) if problem else None,
            session_id=raw.get("session_id"),
            raw=raw,
        )


def _result(raw: Json) -> Result | None:
    if raw.get("execution"):
        return Result.from_wire(raw["execution"])
    if raw.get("execution_id") is None:
        return None
    known = {"id": raw["execution_id"], "status": raw["status"], "metrics": raw.get("metrics")}
    return Result.from_wire(known)


@dataclass(frozen=True)
class BatchInfo:
    """How a batch stands."""

    id: str
    #: ``running`` or ``finished``.
    state: str
    items: int
    done: int
    #: Items that have ended, by their status.
    counts: Mapping[str, int]
    #: The index of the first item that succeeded.
    winner: int | None
    #: Sessions that stay.
    kept: tuple[str, ...]
    #: ``first_success``, ``first_error``, ``budget``, ``deleted``, ``disconnected``; None: nothing.
    stopped_by: str | None
    #: What all runs together have taken.
    wall_ms: int
    raw: Json = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> BatchInfo:
        return cls(
            id=raw["id"],
            state=str(raw["state"]),
            items=int(raw["items"]),
            done=int(raw["done"]),
            counts=dict(raw.get("counts") or {}),
            winner=raw.get("winner"),
            kept=tuple(raw.get("kept") or ()),
            stopped_by=raw.get("stopped_by"),
            wall_ms=int(raw.get("wall_ms", 0)),
            raw=raw,
        )


def batch_path(ident: str) -> str:
    return "/v1/batch/" + quote(ident, safe="")


def item_wire(candidate: Candidate) -> Json:
    """An item as the server takes it.

    >>> item_wire({"timeout": 2, "label": "a", "env": {"RATE": "1"}})
    {'timeout_ms': 2000, 'label': 'a', 'env': {'RATE': '1'}}
    """
    options = {"code": candidate} if isinstance(candidate, str) else dict(candidate)
    own = {name: options.pop(name) for name in ("label", "env") if name in options}
    code = options.pop("code", None)
    run = Run.make(code or "", session_path=None, wall_ms=None, **options)
    not_of_items = {"idempotency_key", "on_disconnect", *(["code"] if code is None else [])}
    return {**{key: run.body[key] for key in run.body if key not in not_of_items}, **own}


def begin_batch(
    candidates: Iterable[Candidate],
    more: Json,
    code: str | None,
    concurrency: int | None,
    stop_on: str | None,
    keep: str | None,
    budget: float | None,
) -> Call[BatchInfo]:
    given = {
        "code": code,
        "concurrency": concurrency,
        "stop_on": stop_on,
        "keep": keep,
        "budget": {"wall_ms": max(1, round(budget * 1000))} if budget is not None else None,
    }
    body = {**more, **{key: value for key, value in given.items() if value is not None}}
    body["items"] = [item_wire(one) for one in candidates]
    # Without a second try: the first may have begun.
    return Call(
        "POST",
        "/v1/batch",
        _info,
        Retry.IF_NOT_BEGUN,
        json=body,
        headers={"Prefer": "respond-async"},
    )


def get_batch(ident: str) -> Call[BatchInfo]:
    return Call("GET", batch_path(ident), _info, Retry.ALWAYS)


def end_batch(ident: str) -> Call[None]:
    return Call("DELETE", batch_path(ident), nothing, Retry.ALWAYS)


def start_session(
    session: str,
    checkpoint: str | None,
    label: str | None,
    reseed: bool,
    on_threads: str | None,
) -> Call[SessionInfo]:
    given = {"session": session, "checkpoint": checkpoint, "reseed": reseed, "on_threads": on_threads}
    body: Json = {"from": {key: value for key, value in given.items() if value is not None}}
    return create_session(body if label is None else {**body, "label": label})


def _info(response: httpx.Response) -> BatchInfo:
    return BatchInfo.from_wire(read_json(response))


class Batch(Iterator[BatchItem]):
    """A batch that runs: its items, as they end. Leaving the ``with`` block ends it."""

    def __init__(self, http: Http, info: BatchInfo) -> None:
        self._http = http
        self.info = info
        self._lines = http.events(LineStream(batch_path(info.id)))

    @property
    def id(self) -> str:
        return self.info.id

    def __next__(self) -> BatchItem:
        line = next(self._lines)
        if "summary" in line:
            self.info = BatchInfo.from_wire(line["summary"])
            raise StopIteration
        return BatchItem.from_wire(line)

    def refresh(self) -> BatchInfo:
        """Asks the server how it stands."""
        self.info = self._http.send(get_batch(self.id))
        return self.info

    def summary(self) -> BatchInfo:
        """How it has ended. Reads what has not been read yet."""
        for _ in self:
            pass
        return self.info

    def close(self) -> None:
        """Ends what runs of it. Sessions that it has kept stay."""
        try:
            self._http.send(end_batch(self.id))
        except NotFound:
            pass

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncBatch(AsyncIterator[BatchItem]):
    """A batch that runs: its items, as they end. Leaving the ``async with`` block ends it."""

    def __init__(self, http: AsyncHttp, info: BatchInfo) -> None:
        self._http = http
        self.info = info
        self._lines = http.events(LineStream(batch_path(info.id)))

    @property
    def id(self) -> str:
        return self.info.id

    async def __anext__(self) -> BatchItem:
        line = await anext(self._lines)
        if "summary" in line:
            self.info = BatchInfo.from_wire(line["summary"])
            raise StopAsyncIteration
        return BatchItem.from_wire(line)

    async def refresh(self) -> BatchInfo:
        """Asks the server how it stands."""
        self.info = await self._http.send(get_batch(self.id))
        return self.info

    async def summary(self) -> BatchInfo:
        """How it has ended. Reads what has not been read yet."""
        async for _ in self:
            pass
        return self.info

    async def close(self) -> None:
        """Ends what runs of it. Sessions that it has kept stay."""
        try:
            await self._http.send(end_batch(self.id))
        except NotFound:
            pass

    async def __aenter__(self) -> AsyncBatch:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _fresh(
    language: str | None, limits: Limits | None, network: Network, env: Mapping[str, str] | None
) -> Json:
    fields = session_fields(language, None, limits, network, env, None, None)
    return {"session": fields} if fields else {}


class ClientBatches:
    """The part of a ``Client``."""

    _http: Http

    if TYPE_CHECKING:

        def session(self, session_id: str) -> Session: ...

    def batch(
        self,
        candidates: Iterable[Candidate],
        *,
        code: str | None = None,
        language: str | None = None,
        limits: Limits | None = None,
        network: Network = None,
        env: Mapping[str, str] | None = None,
        concurrency: int | None = None,
        stop_on: str | None = None,
        keep: str | None = None,
        budget: float | None = None,
    ) -> Batch:
        """Runs each candidate in a fresh session, some at a time; ``code`` is of those without.

        ``stop_on``: ``"first_success"`` or ``"first_error"``. ``keep``: ``"winner"`` or ``"all"``,
        whose sessions stay. ``budget``: seconds that all runs together may take.
        """
        more = _fresh(language, limits, network, env)
        call = begin_batch(candidates, more, code, concurrency, stop_on, keep, budget)
        return Batch(self._http, self._http.send(call))

    def find_batch(self, ident: str) -> Batch:
        """A batch that was begun before, from its first item."""
        return Batch(self._http, self._http.send(get_batch(ident)))

    def start_from(
        self,
        session: str,
        checkpoint: str | None = None,
        *,
        label: str | None = None,
        reseed: bool = True,
        on_threads: str | None = None,
    ) -> Session:
        """A session that goes on from a checkpoint of another one, or from now: a branch of it."""
        call = start_session(session, checkpoint, label, reseed, on_threads)
        return self.session((self._http.send(call)).id)


class AsyncClientBatches:
    """The part of an ``AsyncClient``."""

    _http: AsyncHttp

    if TYPE_CHECKING:

        async def session(self, session_id: str) -> AsyncSession: ...

    async def batch(
        self,
        candidates: Iterable[Candidate],
        *,
        code: str | None = None,
        language: str | None = None,
        limits: Limits | None = None,
        network: Network = None,
        env: Mapping[str, str] | None = None,
        concurrency: int | None = None,
        stop_on: str | None = None,
        keep: str | None = None,
        budget: float | None = None,
    ) -> AsyncBatch:
        """Runs each candidate in a fresh session, some at a time; ``code`` is of those without.

        ``stop_on``: ``"first_success"`` or ``"first_error"``. ``keep``: ``"winner"`` or ``"all"``,
        whose sessions stay. ``budget``: seconds that all runs together may take.
        """
        more = _fresh(language, limits, network, env)
        call = begin_batch(candidates, more, code, concurrency, stop_on, keep, budget)
        return AsyncBatch(self._http, await self._http.send(call))

    async def find_batch(self, ident: str) -> AsyncBatch:
        """A batch that was begun before, from its first item."""
        return AsyncBatch(self._http, await self._http.send(get_batch(ident)))

    async def start_from(
        self,
        session: str,
        checkpoint: str | None = None,
        *,
        label: str | None = None,
        reseed: bool = True,
        on_threads: str | None = None,
    ) -> AsyncSession:
        """A session that goes on from a checkpoint of another one, or from now: a branch of it."""
        call = start_session(session, checkpoint, label, reseed, on_threads)
        return await self.session((await self._http.send(call)).id)
