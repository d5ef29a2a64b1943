# SPDX-License-Identifier: Apache-2.0
"""What sessions, their checkpoints and their branches are, as plain values: the model that
test_time_travel.py holds a server against. It knows nothing of processes, and nothing of how the server
does it. What cells do to it is in time_cells.py.
"""

import copy
from dataclasses import dataclass, field
from typing import NamedTuple

# What no program removes: a file that is open, and the directories that the interpreter may be in.
PLACES = ("keep/one", "keep/two")
JOURNAL = "keep/journal"
# Of the 625 numbers of a random state these are looked at: every so many.
STRIDE = 208


class Entry(NamedTuple):
    kind: str
    mode: int
    text: str  # of a link: its target


Files = dict[str, Entry]


def parent_of(path: str) -> str:
    return path.rpartition("/")[0]


def find_change(earlier: Entry | None, later: Entry | None) -> str | None:
    if earlier == later:
        return None
    if earlier is None or later is None:
        return "created" if earlier is None else "deleted"
    only_mode = (earlier.kind, earlier.text) == (later.kind, later.text)
    return "mode" if only_mode else "modified"


def compare(earlier: Files, later: Files) -> dict[str, str]:
    changes = {path: find_change(earlier.get(path), later.get(path)) for path in {*earlier, *later}}
    return {path: change for path, change in changes.items() if change}


@dataclass
class Memory:
    """Of an interpreter, from its first cell on."""

    values: dict[str, object] = field(default_factory=dict)
    number: int = 0
    stage: str = "begun"
    place: str = PLACES[0]
    position: int = 0
    random: tuple | None = None  # None: made anew, so nothing is known
    count: int = 0
    prepared: bool = False

    def copy(self) -> "Memory":
        return copy.deepcopy(self)  # two names of one list stay that


@dataclass
class Mark:
    """A checkpoint."""

    id: str
    parent: str | None
    label: str | None
    automatic: bool
    execution: str | None
    memory: Memory
    files: Files


@dataclass
class Plan:
    """What a request for a checkpoint must come to."""

    same: Mark | None = None  # nothing has happened since that one
    full: bool = False
    victim: Mark | None = None


class Box:
    """A session."""

    MARKS_MAX = 8

    def __init__(self, auto: bool, parent: "Box | None" = None) -> None:
        self.auto, self.parent = auto, parent
        self.memory, self.files = Memory(), Files()
        self.marks: list[Mark] = []
        self.gone: dict[str, str] = {}
        self.origin: str | None = None  # that the interpreter was copied to, or came from, last
        self.settled: str | None = None  # that it is as, because no code has run since
        self.base = Files()  # of a branch: what its next merge begins from
        self.last_execution: str | None = None

    def find(self, ident: str | None) -> Mark | None:
        return next((one for one in self.marks if one.id == ident), None)

    @property
    def automatic(self) -> Mark | None:
        return next((one for one in self.marks if one.automatic), None)

    # --- checkpoints

    def plan(self, label: str | None, kept: str | None = None) -> Plan:
        if self.is_unchanged(label):
            return Plan(same=self.find(self.origin))
        if len(self.marks) < self.MARKS_MAX:
            return Plan()
        free = [one for one in self.marks if one.id != kept]
        victims = [one for one in free if one.automatic] + [one for one in free if one.label is None]
        return Plan(full=not victims, victim=victims[0] if victims else None)

    def is_unchanged(self, label: str | None) -> bool:
        origin = self.find(self.origin)
        if origin is None or self.settled != origin.id:
            return False
        return self.files == origin.files and label in (None, origin.label)

    def add(self, ident: str, label: str | None, victim: Mark | None, automatic: bool = False) -> None:
        if victim is not None:
            self.remove(victim, "evicted")
        mark = Mark(
            ident, self.origin, label, automatic, self.last_execution, self.memory.copy(), dict(self.files)
        )
        self.marks.append(mark)
        self.origin = self.settled = ident

    def remove(self, mark: Mark, why: str) -> None:
        self.marks.remove(mark)
        self.gone[mark.id] = why
        for one in self.marks:
            if one.parent == mark.id:
                one.parent = mark.parent
        if self.origin == mark.id:
            self.origin = mark.parent

    def plan_automatic(self) -> Plan:
        """After a cell, in a session that makes them by itself."""
        before = self.automatic
        return Plan(full=before is None and len(self.marks) >= self.MARKS_MAX, victim=before)

    def go_back(self, mark: Mark, reseed: bool) -> None:
        self.memory = mark.memory.copy()
        self.files = dict(mark.files)
        self.origin = mark.id
        self.settled = None if reseed else mark.id
        if reseed:
            self.memory.random = None

    def branch(self, mark: Mark, reseed: bool) -> "Box":
        made = type(self)(self.auto, self)
        made.memory, made.files, made.base = mark.memory.copy(), dict(mark.files), dict(mark.files)
        if reseed:
            made.memory.random = None
        return made

    def begin_anew(self) -> None:
        """A fresh interpreter."""
        self.memory, self.origin, self.settled = Memory(), None, None

    def revive(self, mark: Mark) -> None:
        """After a death: the memory alone."""
        self.memory = mark.memory.copy()
        self.origin = self.settled = mark.id

    # --- what is read back

    def state(self, drawn: list[float | None]) -> dict:
        return {
            "values": self.memory.values,
            "number": self.memory.number,
            "stage": self.memory.stage,
            "place": "/workspace/" + self.memory.place,
            "position": self.memory.position,
            "drawn": drawn,
            "random": self.memory.random and self.memory.random[1][::STRIDE],
            "files": {path: list(entry) for path, entry in self.files.items()},
        }

    def tree(self) -> list[dict]:
        return [
            {
                "id": one.id,
                "parent": one.parent,
                "label": one.label,
                "automatic": one.automatic,
                "execution": one.execution,
                "execution_count": one.memory.count,
                "file_bytes": sum(len(each.text) for each in one.files.values() if each.kind == "file"),
                "count": len(one.files),
            }
            for one in self.marks
        ]


class Merge:
    """What a merge of a branch into its parent must come to."""

    def __init__(self, parent: Box, branch: Box, paths: list[str] | None) -> None:
        self._base, self._here, self._branch = branch.base, parent.files, branch.files
        self._wanted, self._matched = paths, set[str]()
        self.steps: dict[str, Entry | None] = {}
        self.conflicts: dict[str, tuple[str | None, str | None]] = {}
        for path in sorted({*self._base, *self._here, *self._branch}):
            self._consider(path)
        self.unmatched = sorted(set(paths or []) - self._matched)

    def _consider(self, path: str) -> None:
        base, here, branch = self._base.get(path), self._here.get(path), self._branch.get(path)
        if base == branch or not self._is_wanted(path):
            if here is not None and base is None and branch is None and self._loses_directory(path):
                self.conflicts[path] = ("created", "deleted")
                self.steps[path] = None
        elif here != branch:
            if base != here:
                self.conflicts[path] = (find_change(base, here), find_change(base, branch))
            if branch is not None:
                self._make_way(path)
            self.steps[path] = branch

    def _is_wanted(self, path: str) -> bool:
        if self._wanted is None:
            return True
        found = [one for one in self._wanted if path == one or path.startswith(one + "/")]
        self._matched.update(found)
        return bool(found)

    def _loses_directory(self, path: str) -> bool:
        parent = parent_of(path)
        wanted = self.steps.get(parent)
        return parent in self.steps and (wanted is None or wanted.kind != "directory")

    def _make_way(self, path: str) -> None:
        parent = parent_of(path)
        here = self._here.get(parent)
        if not parent or parent in self.steps or (here is not None and here.kind == "directory"):
            return
        base, branch = self._base.get(parent), self._branch[parent]
        if here is not None or base is not None:
            self.conflicts[parent] = (find_change(base, here), find_change(base, branch))
        self._make_way(parent)
        self.steps[parent] = branch

    def changes(self) -> dict[str, str | None]:
        return {path: find_change(self._here.get(path), want) for path, want in self.steps.items()}

    def do(self, parent: Box, branch: Box) -> None:
        def after(files: Files, changes: dict) -> Files:
            return {path: one for path, one in {**files, **changes}.items() if one is not None}

        agreed = {path: self._branch.get(path) for path in self._all_agreed()}
        branch.base = after(branch.base, {**agreed, **self.steps})
        parent.files = after(parent.files, self.steps)

    def _all_agreed(self) -> list[str]:
        """What both have done alike, within what was asked for."""
        every = {*self._base, *self._here, *self._branch} - set(self.steps)
        return [
            path
            for path in every
            if self._base.get(path) != self._branch.get(path)
            and self._here.get(path) == self._branch.get(path)
            and self._is_wanted(path)
        ]
