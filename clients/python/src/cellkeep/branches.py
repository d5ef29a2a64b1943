# SPDX-License-Identifier: Apache-2.0
"""Branches of a session: sessions that go on from a checkpoint of it, or from now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx

from ._calls import Call, Retry, read_json
from .checkpoints import CheckpointInfo
from .errors import ProblemError, problem_error
from .models import Json, Result, SessionInfo

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http
    from .aio import AsyncClient, AsyncSession
    from .client import Client, Session

#: Code, or the arguments of ``run``: ``{"code": …, "timeout": …}``.
Candidate: TypeAlias = str | Mapping[str, Any]


def make_branches(
    path: str,
    count: int,
    start: CheckpointInfo | str | None,
    labels: Sequence[str] | None,
    reseed: bool,
    on_threads: str | None,
) -> Call[list[SessionInfo | ProblemError]]:
    body: Json = {"count": count, "reseed": reseed}
    if start is not None:
        body["from"] = start if isinstance(start, str) else start.id
    if labels is not None:
        body["labels"] = list(labels)
    if on_threads is not None:
        body["on_threads"] = on_threads

    def parse(response: httpx.Response) -> list[SessionInfo | ProblemError]:
        return [_item(one) for one in read_json(response)["branches"]]

    # Without a second try: the first may have made some.
    return Call("POST", path + "/branches", parse, Retry.IF_NOT_BEGUN, json=body)


def _item(raw: Json) -> SessionInfo | ProblemError:
    if "session" in raw:
        return SessionInfo.from_wire(raw["session"])
    return problem_error(int(raw["error"]["status"]), raw["error"])


def _options(candidate: Candidate) -> tuple[str, dict[str, Any]]:
    if isinstance(candidate, str):
        return candidate, {}
    options = dict(candidate)
    return options.pop("code"), options


class SessionBranches:
    """The part of a ``Session``."""

    client: Client
    _http: Http
    _path: str

    def branches(
        self,
        count: int,
        start: CheckpointInfo | str | None = None,
        *,
        labels: Sequence[str] | None = None,
        reseed: bool = True,
        on_threads: str | None = None,
    ) -> list[Session | ProblemError]:
        """Sessions that go on from a checkpoint, or from now; in place of one that there is not, why.

        Each has memory and files of its own and lives until it is closed, also when this session has
        ended. ``reseed=False``: all draw the same random numbers.
        """
        from .client import Session

        call = make_branches(self._path, count, start, labels, reseed, on_threads)
        return [
            one if isinstance(one, ProblemError) else Session(attach=one.id, client=self.client)
            for one in self._http.send(call)
        ]

    def branch(
        self,
        start: CheckpointInfo | str | None = None,
        *,
        label: str | None = None,
        reseed: bool = True,
        on_threads: str | None = None,
    ) -> Session:
        """One branch. ``with session.branch() as b:`` ends it, and leaves this session as it was."""
        labels = None if label is None else [label]
        (made,) = self.branches(1, start, labels=labels, reseed=reseed, on_threads=on_threads)
        if isinstance(made, ProblemError):
            raise made
        return made

    def try_all(
        self,
        candidates: Iterable[Candidate],
        start: CheckpointInfo | str | None = None,
        *,
        on_threads: str | None = None,
    ) -> list[Result | ProblemError]:
        """Runs each candidate in a branch of its own, side by side, and ends the branches.

        The answers come in the order of the candidates. One for which there was no branch has the
        reason in its place.
        """
        wanted = [_options(one) for one in candidates]
        if not wanted:
            return []
        made = self.branches(len(wanted), start, on_threads=on_threads)
        try:
            begun = [
                one if isinstance(one, ProblemError) else one.submit(code, **options)
                for one, (code, options) in zip(made, wanted, strict=True)
            ]
            return [one if isinstance(one, ProblemError) else one.result() for one in begun]
        finally:
            for one in made:
                if not isinstance(one, ProblemError):
                    one.close()


class AsyncSessionBranches:
    """The part of an ``AsyncSession``."""

    client: AsyncClient
    _http: AsyncHttp

    if TYPE_CHECKING:

        @property
        def _path(self) -> str: ...

    async def branches(
        self,
        count: int,
        start: CheckpointInfo | str | None = None,
        *,
        labels: Sequence[str] | None = None,
        reseed: bool = True,
        on_threads: str | None = None,
    ) -> list[AsyncSession | ProblemError]:
        """Sessions that go on from a checkpoint, or from now; in place of one that there is not, why.

        Each has memory and files of its own and lives until it is closed, also when this session has
        ended. ``reseed=False``: all draw the same random numbers.
        """
        from .aio import AsyncSession

        call = make_branches(self._path, count, start, labels, reseed, on_threads)
        made: list[AsyncSession | ProblemError] = []
        for one in await self._http.send(call):
            if isinstance(one, ProblemError):
                made.append(one)
            else:
                made.append(await AsyncSession(attach=one.id, client=self.client).open())
        return made

    async def branch(
        self,
        start: CheckpointInfo | str | None = None,
        *,
        label: str | None = None,
        reseed: bool = True,
        on_threads: str | None = None,
    ) -> AsyncSession:
        """One branch. ``async with await session.branch() as b:`` ends it, and leaves this session
        as it was."""
        labels = None if label is None else [label]
        (made,) = await self.branches(1, start, labels=labels, reseed=reseed, on_threads=on_threads)
        if isinstance(made, ProblemError):
            raise made
        return made

    async def try_all(
        self,
        candidates: Iterable[Candidate],
        start: CheckpointInfo | str | None = None,
        *,
        on_threads: str | None = None,
    ) -> list[Result | ProblemError]:
        """Runs each candidate in a branch of its own, side by side, and ends the branches.

        The answers come in the order of the candidates. One for which there was no branch has the
        reason in its place.
        """
        wanted = [_options(one) for one in candidates]
        if not wanted:
            return []
        made = await self.branches(len(wanted), start, on_threads=on_threads)

        async def run(
            one: AsyncSession | ProblemError, code: str, options: dict[str, Any]
        ) -> Result | ProblemError:
            return one if isinstance(one, ProblemError) else await one.run(code, **options)

        try:
            runs = (run(one, code, options) for one, (code, options) in zip(made, wanted, strict=True))
            return list(await asyncio.gather(*runs))
        finally:
            for one in made:
                if not isinstance(one, ProblemError):
                    await one.close()
