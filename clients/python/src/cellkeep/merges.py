# SPDX-License-Identifier: Apache-2.0
"""A branch's files taken into its parent: what the server answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ._calls import Call, Retry, read_json
from .checkpoints import FileChange
from .models import Json


@dataclass(frozen=True)
class MergeConflict:
    """A file that both have changed; ``None``: it cannot be read, or only what is in it has changed."""

    path: str
    here: str | None
    branch: str | None


@dataclass(frozen=True)
class Merge:
    """What was taken."""

    #: The first 1000 files that were changed, and how many there are.
    files: tuple[FileChange, ...]
    file_count: int
    #: With ``force``: what the branch has won.
    overruled: tuple[MergeConflict, ...]
    #: What could not be read, with the reasons; it is as it was.
    skipped: Mapping[str, str]
    #: Of ``paths``: the branch has changed nothing there.
    unmatched: tuple[str, ...]
    raw: Json = field(repr=False)

    @classmethod
    def from_wire(cls, raw: Json) -> Merge:
        return cls(
            files=tuple(FileChange.from_wire(one) for one in raw.get("files") or ()),
            file_count=int(raw.get("file_count", 0)),
            overruled=conflicts_of(raw.get("overruled")),
            skipped={one["path"]: one["reason"] for one in raw.get("skipped") or ()},
            unmatched=tuple(raw.get("unmatched") or ()),
            raw=raw,
        )


def conflicts_of(raw: Sequence[Json] | None) -> tuple[MergeConflict, ...]:
    """Of a merge, or of the ``document`` of a ``Conflict`` whose kind is ``merge-conflict``.

    >>> conflicts_of([{"path": "a", "here": "modified", "branch": "deleted"}])
    (MergeConflict(path='a', here='modified', branch='deleted'),)
    """
    return tuple(MergeConflict(one["path"], one["here"], one["branch"]) for one in raw or ())


def merge_branch(path: str, branch: str, paths: Sequence[str] | None, force: bool) -> Call[Merge]:
    body: Json = {"from": branch, "force": force}
    if paths is not None:
        body["paths"] = list(paths)
    # A second one finds nothing left to do, and would say so.
    return Call(
        "POST",
        path + "/merge",
        lambda answer: Merge.from_wire(read_json(answer)),
        Retry.IF_NOT_BEGUN,
        json=body,
    )
