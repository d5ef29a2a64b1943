# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a session: what the server answers, and what ``Session`` and ``AsyncSession`` can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import httpx

from ._calls import Call, Retry, nothing, read_json
from .models import Json, SessionInfo

if TYPE_CHECKING:
    from ._aio_http import AsyncHttp
    from ._http import Http


@dataclass(frozen=True)
class CheckpointInfo:
    """A state of the session's interpreter and of its files that can be gone back to."""

    id: str
    #: The checkpoint that the interpreter had come from; ``None``: it had begun afresh.
    parent: str | None
    label: str | None
    #: The newest execution at that time.
    execution: str | None
    execution_count: int
    created_at: str
    #: Made by the session itself; the next such one takes its place.
    automatic: bool
    #: Threads besides the one that runs cells, which go on in what goes on from it.
    carried_threads: int
    #: How many threads, processes and sockets the copy has not got, by those names.
    lost: Mapping[str, int]
    #: Of all files that it keeps, and of the memory of its process that no other shares.
    file_bytes: int
    private_bytes: int | None
    #: The first files that could not be kept, with the reasons, and how many there were.
    unkept: Mapping[str, str]
    unkept_count: int
    #: In the answer to ``checkpoint()``: nothing had happened since this one.
    unchanged: bool
    #: The checkpoints that had to go for this one, in the answer that made it.
    evicted: tuple[str, ...]
    raw: Json = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> CheckpointInfo:
        files = raw.get("files") or {}
        return cls(
            id=raw["id"],
            parent=raw.get("parent"),
            label=raw.get("label"),
            execution=raw.get("execution"),
            execution_count=int(raw.get("execution_count", 0)),
            created_at=str(raw.get("created_at", "")),
            automatic=bool(raw.get("automatic", False)),
            carried_threads=int(raw.get("carried_threads", 0)),
            lost=_lost(raw),
            file_bytes=int(raw.get("file_bytes", 0)),
            private_bytes=raw.get("private_bytes"),
            unkept={one["path"]: one["reason"] for one in files.get("unkept") or ()},
            unkept_count=int(files.get("unkept_count", 0)),
            unchanged=bool(raw.get("unchanged", False)),
            evicted=tuple(raw.get("evicted") or ()),
            raw=raw,
        )


@dataclass(frozen=True)
class FileChange:
    """A file that differs between two states: ``created``, ``modified``, ``deleted``, or ``mode``:
    only its permissions are others."""

    path: str
    change: str
    #: Of the later one.
    bytes: int
    #: ``file``, ``directory`` or ``link``.
    kind: str = "file"
    bytes_before: int = 0
    #: Permissions, octal; None: it is not there.
    mode: str | None = None
    mode_before: str | None = None

    @classmethod
    def from_wire(cls, raw: Json) -> FileChange:
        return cls(
            path=raw["path"],
            change=str(raw["change"]),
            bytes=int(raw.get("bytes", 0)),
            kind=str(raw.get("kind", "file")),
            bytes_before=int(raw.get("bytes_before", 0)),
            mode=raw.get("mode"),
            mode_before=raw.get("mode_before"),
        )


@dataclass(frozen=True)
class Rollback:
    """The session after it went back to a checkpoint."""

    session: SessionInfo
    lost: Mapping[str, int]
    #: The checkpoint of the state that was left; ``None``: it was discarded, or there was none.
    left_as: str | None
    evicted: tuple[str, ...]
    #: The first files that are not as they were, with the reasons, and how many there are.
    failed: Mapping[str, str]
    failed_count: int
    raw: Json = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> Rollback:
        files = raw.get("files") or {}
        return cls(
            session=SessionInfo.from_wire(raw),
            lost=_lost(raw),
            left_as=raw.get("left_as"),
            evicted=tuple(raw.get("evicted") or ()),
            failed={one["path"]: one["reason"] for one in files.get("failed") or ()},
            failed_count=int(files.get("failed_count", 0)),
            raw=raw,
        )


def _lost(raw: Json) -> Mapping[str, int]:
    return {one["what"]: int(one["count"]) for one in raw.get("lost") or ()}


def make_checkpoint(path: str, label: str | None, on_threads: str | None) -> Call[CheckpointInfo]:
    given = {"label": label, "on_threads": on_threads}
    # Without a second try: the first may have made one.
    body = {key: value for key, value in given.items() if value is not None}
    return Call("POST", path + "/checkpoints", _checkpoint, Retry.IF_NOT_BEGUN, json=body)


def list_checkpoints(path: str) -> Call[list[CheckpointInfo]]:
    def parse(response: httpx.Response) -> list[CheckpointInfo]:
        return [CheckpointInfo.from_wire(one) for one in read_json(response)["checkpoints"]]

    return Call("GET", path + "/checkpoints", parse, Retry.ALWAYS)


def delete_checkpoint(path: str, checkpoint: str) -> Call[None]:
    address = f"{path}/checkpoints/{quote(checkpoint, safe='')}"
    return Call("DELETE", address, nothing, Retry.IF_NOT_BEGUN)


def roll_back(path: str, checkpoint: str, discard: bool, reseed: bool) -> Call[Rollback]:
    body = {"checkpoint": checkpoint, "discard": discard, "reseed": reseed}
    return Call(
        "POST",
        path + "/rollback",
        lambda answer: Rollback.from_wire(read_json(answer)),
        Retry.IF_NOT_BEGUN,
        json=body,
    )


#: One page of a comparison, and where the next one begins.
ChangesPage = tuple[list[FileChange], str | None]


def compare_files(path: str, against: str, later: str | None, after: str | None) -> Call[ChangesPage]:
    def parse(response: httpx.Response) -> ChangesPage:
        page = read_json(response)
        return [FileChange.from_wire(one) for one in page["files"]], page.get("next")

    given = {"against": against, "checkpoint": later, "after": after}
    query = {key: value for key, value in given.items() if value is not None}
    return Call("GET", path + "/diff", parse, Retry.ALWAYS, params=query)


def _checkpoint(response: httpx.Response) -> CheckpointInfo:
    return CheckpointInfo.from_wire(read_json(response))


class Named(Protocol):
    """A checkpoint or a session."""

    @property
    def id(self) -> str: ...


def _ident(named: Named | str) -> str:
    return named if isinstance(named, str) else named.id


def _ident_or_none(named: Named | str | None) -> str | None:
    return None if named is None else _ident(named)


class SessionCheckpoints:
    """The part of a ``Session``."""

    info: SessionInfo
    _http: Http
    _path: str

    def checkpoint(
        self, label: str | None = None, *, on_threads: str | None = None
    ) -> CheckpointInfo:
        """Keeps the interpreter's memory and the workspace's files, at the end of a cell.

        Threads go on in what goes on from it. ``on_threads="refuse"``: a ``Conflict`` if there are
        any besides the one that runs cells; ``"drop"``: the copy has not got them. ``unchanged`` of
        the answer: nothing had happened since that checkpoint.
        """
        return self._http.send(make_checkpoint(self._path, label, on_threads))

    def checkpoints(self) -> list[CheckpointInfo]:
        """The session's checkpoints, oldest first."""
        return self._http.send(list_checkpoints(self._path))

    def delete_checkpoint(self, checkpoint: CheckpointInfo | str) -> None:
        """Lets a checkpoint go."""
        ident = _ident(checkpoint)
        self._http.send(delete_checkpoint(self._path, ident))

    def diff(
        self, against: Named | str, later: CheckpointInfo | str | None = None
    ) -> list[FileChange]:
        """The files that differ from those of a checkpoint, or of another session now: in a
        checkpoint of this session, or now. A branch may name the checkpoint that it was made from.
        """
        changes: list[FileChange] = []
        after = None
        while True:
            call = compare_files(self._path, _ident(against), _ident_or_none(later), after)
            page, after = self._http.send(call)
            changes += page
            if after is None:
                return changes

    def rollback(
        self, checkpoint: CheckpointInfo | str, *, discard: bool = False, reseed: bool = False
    ) -> Rollback:
        """Goes back to a checkpoint; its variables and files are as they were.

        The state that is left becomes a checkpoint, ``left_as`` of the answer, unless ``discard``.
        ``reseed``: the random states of random and NumPy are made anew.
        """
        ident = _ident(checkpoint)
        answer = self._http.send(roll_back(self._path, ident, discard, reseed))
        self.info = answer.session
        return answer


class AsyncSessionCheckpoints:
    """The part of an ``AsyncSession``."""

    _info: SessionInfo | None
    _http: AsyncHttp

    if TYPE_CHECKING:

        @property
        def _path(self) -> str: ...

    async def checkpoint(
        self, label: str | None = None, *, on_threads: str | None = None
    ) -> CheckpointInfo:
        """Keeps the interpreter's memory and the workspace's files, at the end of a cell.

        Threads go on in what goes on from it. ``on_threads="refuse"``: a ``Conflict`` if there are
        any besides the one that runs cells; ``"drop"``: the copy has not got them. ``unchanged`` of
        the answer: nothing had happened since that checkpoint.
        """
        return await self._http.send(make_checkpoint(self._path, label, on_threads))

    async def checkpoints(self) -> list[CheckpointInfo]:
        """The session's checkpoints, oldest first."""
        return await self._http.send(list_checkpoints(self._path))

    async def delete_checkpoint(self, checkpoint: CheckpointInfo | str) -> None:
        """Lets a checkpoint go."""
        ident = _ident(checkpoint)
        await self._http.send(delete_checkpoint(self._path, ident))

    async def diff(
        self, against: Named | str, later: CheckpointInfo | str | None = None
    ) -> list[FileChange]:
        """The files that differ from those of a checkpoint, or of another session now: in a
        checkpoint of this session, or now. A branch may name the checkpoint that it was made from.
        """
        changes: list[FileChange] = []
        after = None
        while True:
            call = compare_files(self._path, _ident(against), _ident_or_none(later), after)
            page, after = await self._http.send(call)
            changes += page
            if after is None:
                return changes

    async def rollback(
        self, checkpoint: CheckpointInfo | str, *, discard: bool = False, reseed: bool = False
    ) -> Rollback:
        """Goes back to a checkpoint; its variables and files are as they were.

        The state that is left becomes a checkpoint, ``left_as`` of the answer, unless ``discard``.
        ``reseed``: the random states of random and NumPy are made anew.
        """
        ident = _ident(checkpoint)
        answer = await self._http.send(roll_back(self._path, ident, discard, reseed))
        self._info = answer.session
        return answer
