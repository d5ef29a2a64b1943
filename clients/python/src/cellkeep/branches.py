# SPDX-License-Identifier: Apache-2.0
"""Branches of a session: sessions that go on from a checkpoint of it, or from now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import httpx

from ._calls import Call, Retry, read_json
from .batches import AsyncBatch, Batch, BatchItem, Candidate, begin_batch
from .checkpoints import CheckpointInfo
from .errors import ProblemError, problem_error
from .merges import Merge, merge_branch
from .models import Json, Result, SessionInfo

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http
    from .aio import AsyncClient, AsyncSession
    from .client import Client, Session


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


def _from(
    session: str, start: CheckpointInfo | str | None, reseed: bool, on_threads: str | None
) -> Json:
    state: Json = {"session": session, "reseed": reseed}
    if start is not None:
        state["checkpoint"] = start if isinstance(start, str) else start.id
    if on_threads is not None:
        state["on_threads"] = on_threads
    return {"from": state}


def _answer(item: BatchItem) -> Result | ProblemError:
    if item.result is not None:
        return item.result
    return item.error or ProblemError(409, {"title": "The item did not run", "detail": item.status})


def _in_order(items: list[BatchItem]) -> list[Result | ProblemError]:
    return [_answer(one) for one in sorted(items, key=lambda one: one.index)]


class SessionBranches:
    """The part of a ``Session``."""

    client: Client
    _http: Http
    _path: str

    if TYPE_CHECKING:

        @property
        def id(self) -> str: ...

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

    def merge(
        self, branch: Session | str, paths: Sequence[str] | None = None, *, force: bool = False
    ) -> Merge:
        """Takes what a branch has changed in its files since it was made, or last merged.

        Where this session has changed the same, that is a ``Conflict`` whose ``document`` lists the
        ``conflicts``, and nothing is done; with ``force`` the branch wins. ``paths``: only these
        files and what is in these directories. All or nothing.
        """
        ident = branch if isinstance(branch, str) else branch.id
        return self._http.send(merge_branch(self._path, ident, paths, force))

    def batch(
        self,
        candidates: Iterable[Candidate],
        start: CheckpointInfo | str | None = None,
        *,
        code: str | None = None,
        reseed: bool = True,
        on_threads: str | None = None,
        concurrency: int | None = None,
        stop_on: str | None = None,
        keep: str | None = None,
        budget: float | None = None,
    ) -> Batch:
        """Runs each candidate in a branch of its own, some at a time, and gives each as it ends.

        ``code`` is of candidates without. ``stop_on``: ``"first_success"`` or ``"first_error"``.
        ``keep``: ``"winner"`` or ``"all"``, whose branches stay. ``budget``: seconds that all runs
        together may take.
        """
        more = _from(self.id, start, reseed, on_threads)
        call = begin_batch(candidates, more, code, concurrency, stop_on, keep, budget)
        return Batch(self._http, self._http.send(call))

    def try_all(
        self,
        candidates: Iterable[Candidate],
        start: CheckpointInfo | str | None = None,
        *,
        on_threads: str | None = None,
        concurrency: int | None = None,
    ) -> list[Result | ProblemError]:
        """Runs each candidate in a branch of its own, some at a time, and ends the branches.

        The answers come in the order of the candidates. One for which there was no branch has the
        reason in its place. :meth:`batch` gives them as they come, and can stop early.
        """
        wanted = list(candidates)
        if not wanted:
            return []
        with self.batch(
            wanted, start, on_threads=on_threads, concurrency=concurrency
        ) as batch:
            return _in_order(list(batch))


class AsyncSessionBranches:
    """The part of an ``AsyncSession``."""

    client: AsyncClient
    _http: AsyncHttp

    if TYPE_CHECKING:

        @property
        def _path(self) -> str: ...

        @property
        def id(self) -> str: ...

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

    async def merge(
        self, branch: AsyncSession | str, paths: Sequence[str] | None = None, *, force: bool = False
    ) -> Merge:
        """Takes what a branch has changed in its files since it was made, or last merged.

        Where this session has changed the same, that is a ``Conflict`` whose ``document`` lists the
        ``conflicts``, and nothing is done; with ``force`` the branch wins. ``paths``: only these
        files and what is in these directories. All or nothing.
        """
        ident = branch if isinstance(branch, str) else branch.id
        return await self._http.send(merge_branch(self._path, ident, paths, force))

    async def batch(
        self,
        candidates: Iterable[Candidate],
        start: CheckpointInfo | str | None = None,
        *,
        code: str | None = None,
        reseed: bool = True,
        on_threads: str | None = None,
        concurrency: int | None = None,
        stop_on: str | None = None,
        keep: str | None = None,
        budget: float | None = None,
    ) -> AsyncBatch:
        """Runs each candidate in a branch of its own, some at a time, and gives each as it ends.

        ``code`` is of candidates without. ``stop_on``: ``"first_success"`` or ``"first_error"``.
        ``keep``: ``"winner"`` or ``"all"``, whose branches stay. ``budget``: seconds that all runs
        together may take.
        """
        more = _from(self.id, start, reseed, on_threads)
        call = begin_batch(candidates, more, code, concurrency, stop_on, keep, budget)
        return AsyncBatch(self._http, await self._http.send(call))

    async def try_all(
        self,
        candidates: Iterable[Candidate],
        start: CheckpointInfo | str | None = None,
        *,
        on_threads: str | None = None,
        concurrency: int | None = None,
    ) -> list[Result | ProblemError]:
        """Runs each candidate in a branch of its own, some at a time, and ends the branches.

        The answers come in the order of the candidates. One for which there was no branch has the
        reason in its place. :meth:`batch` gives them as they come, and can stop early.
        """
        wanted = list(candidates)
        if not wanted:
            return []
        async with await self.batch(
            wanted, start, on_threads=on_threads, concurrency=concurrency
        ) as batch:
            return _in_order([one async for one in batch])
