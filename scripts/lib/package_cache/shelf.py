# SPDX-License-Identifier: Apache-2.0
"""The files that the cache keeps: how much disk they have, which one goes first, and who fetches now."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

#: Files that are fetched at the same time.
FETCHES_MAX = 3
#: A request waits so long for its turn: less than the 15 seconds that pip waits.
TURN_SECONDS = 10.0


class Shelf:
    """Of `disk` bytes half is for the files that are kept. One that arrives is there twice for a moment, and may
    have a sixteenth; so may the database and its journal."""

    def __init__(self, state: Path, disk: int) -> None:
        self.files = state / "+files"
        self.database = state / ".sqlite"
        self.kept_max = disk // 2
        self.file_max = disk // 16
        self._room = threading.Lock()
        self._changed = threading.Condition()
        self._fetched: set[str] = set()

    def begin(self, name: str) -> bool:
        """Waits until the caller alone may fetch this file. False: that took too long."""
        with self._changed:
            may = lambda: name not in self._fetched and len(self._fetched) < FETCHES_MAX  # noqa: E731
            if not self._changed.wait_for(may, TURN_SECONDS):
                return False
            self._fetched.add(name)
            return True

    def end(self, name: str, known: bool) -> None:
        """If it was known before, something is in its place again: devpi does not start if a file of its last
        change is missing."""
        if known:
            (self.files / name).touch(mode=0o600)
        with self._changed:
            self._fetched.discard(name)
            self._changed.notify_all()

    def touch(self, name: str) -> None:
        """The file was used just now."""
        os.utime(self.files / name)

    def clear(self, name: str) -> bool:
        """Nothing is in the file's place, as devpi wants it before it fetches; whether something was."""
        try:
            (self.files / name).unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def empty(self, name: str) -> None:
        """An empty file takes its place. Nothing is cut off for somebody who is reading it."""
        (self.files / name).unlink(missing_ok=True)
        (self.files / name).touch(mode=0o600)

    def make_room(self) -> list[str]:
        """Removes the files that were not used for the longest time; an empty one holds the place of each."""
        with self._room:
            found = sorted(self._kept())
            kept = sum(size for _, size, _ in found)
            removed = []
            for _, size, path in found:
                if kept <= self.kept_max:
                    break
                name = str(path.relative_to(self.files))
                self.empty(name)
                kept -= size
                removed.append(name)
            return removed

    def _kept(self) -> Iterator[tuple[int, int, Path]]:
        """When it was used, its size and its path, of each file."""
        for folder, _, names in os.walk(self.files):
            for name in names:
                try:
                    status = os.stat(os.path.join(folder, name))
                except FileNotFoundError:
                    continue  # Just now it was cleared, or renamed by devpi.
                if status.st_size > 0 and not name.endswith("-tmp"):
                    yield status.st_mtime_ns, status.st_size, Path(folder, name)

    def database_is_full(self) -> bool:
        """Nearly: what it writes beyond the bound of a file fails."""
        return self.database.exists() and self.database.stat().st_size > self.file_max * 3 // 4
