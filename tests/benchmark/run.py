# SPDX-License-Identifier: Apache-2.0
"""One run: the subjects, their turns, and the report with their answers.

Everything is interleaved: each round measures every subject once before any is measured again, so
that a busy moment of the machine falls on all of them alike. After its turn the run waits
until the subject is at rest. A subject that fails has its error in its cell, and the run goes on.
"""

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from floors import BareFork, PingPong
from processes import settle
from report import Cell, Report, Row, named
from subjects import Cellkeep, Kernel, Subject, jupyter_server, kernel_gateway

SPARES = 4
LANGUAGES = ("javascript", "typescript", "bash", "sql", "cpp")
# More sessions than any row has at a time, because ending takes a moment.
SESSIONS_BESIDE = 64


@dataclass(frozen=True)
class Form:
    """How much is measured."""

    name: str
    peers: bool  # all of them; else ipykernel alone
    cold: int
    warm: int
    imports: int
    forks: int
    in_a_row: int
    in_a_row_rounds: int
    at_once: tuple[int, ...]
    at_once_rounds: int
    peers_at_once_max: int
    blocks: int
    block: int
    lines: int
    print_rounds: int
    slow_rounds: int
    slow_seconds: float
    picture_bytes: int
    picture_rounds: int
    memory: tuple[int, ...]
    peers_memory_max: int
    ipykernel_memory_max: int
    idle_seconds: float
    wall_rounds: int
    languages: tuple[str, ...]
    language_starts: int
    language_trips: int
    checkpoints: int
    heap_bytes: int
    file_bytes: int
    branches: tuple[int, ...]
    branches_alive: int


TINY = Form(
    "tiny", False, 1, 1, 1, 5, 4, 1, (2,), 1, 2, 2, 10, 20_000, 1, 1, 0.3, 1_000_000, 1,
    (1, 2), 2, 2, 0.5, 0, ("bash",), 1, 3, 2, 10_000_000, 1_000_000, (2,), 3,
)  # fmt: skip
QUICK = Form(
    "quick", True, 1, 3, 2, 50, 12, 1, (1, 10, 50), 1, 10, 4, 25, 100_000, 1, 1, 1.0, 10_000_000, 1,
    (1, 10), 1, 1, 2.0, 3, LANGUAGES, 1, 20, 5, 1_000_000_000, 100_000_000, (100,), 100,
)  # fmt: skip
LONG = Form(
    "long", True, 3, 20, 20, 200, 12, 4, (1, 10, 50), 2, 50, 20, 50, 100_000, 5, 2, 2.0, 10_000_000, 5,
    (1, 10, 100, 1000), 10, 100, 10.0, 15, LANGUAGES, 10, 200,
    50, 1_000_000_000, 100_000_000, (100,), 1000,
)  # fmt: skip


class Run:
    def __init__(self, form: Form, binary: Path, folder: Path) -> None:
        self.form, self.binary, self.folder, self.report = form, binary, folder, Report()
        most = max(*form.at_once, *form.memory, *form.branches, form.branches_alive) + SESSIONS_BESIDE
        self.cellkeep = Cellkeep(folder, binary, most)
        kernel = Kernel(folder, "ipykernel", "python3")
        self.subjects: list[Subject] = [self.cellkeep, kernel]
        # Apart from the others where spares make no difference: once there, a session is a session.
        self.starters: list[Subject] = [self.cellkeep, kernel]
        if form.peers:
            more = [
                Kernel(folder, "xeus-python", "xpython"),
                jupyter_server(folder),
                kernel_gateway(folder),
            ]
            self.subjects += more
            self.starters = [
                self.cellkeep,
                Cellkeep(folder, binary, most, spares=SPARES),
                kernel,
                *more,
            ]
        self.broken: dict[str, str] = {}

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Starts all servers, and stops them. A server that cannot start has its error in all its cells."""
        try:
            for subject in self.starters:
                self.start(subject)
            yield
        finally:
            for subject in self.starters:
                self.stop(subject)

    @property
    def ours(self) -> list[Subject]:
        return [subject for subject in self.starters if isinstance(subject, Cellkeep)]

    def restart(self, subject: Subject) -> None:
        """Starts its server anew and waits until it is at rest."""
        if subject.name not in self.broken:
            self.stop(subject)
            self.start(subject)
            settle(subject.pids)

    def start(self, subject: Subject) -> None:
        try:
            if isinstance(subject, Cellkeep):
                subject.make_image()  # another server may have removed it meanwhile
            subject.start()
        except Exception as error:
            self.broken[subject.name] = f"did not start: {named(error)}"
            print(f"    {subject.name}: {self.broken[subject.name]}", flush=True)

    def stop(self, subject: Subject) -> None:
        try:
            subject.stop()
        except Exception as error:
            row = self.report.find("stop") or self.report.row("stop", "the end", "times")
            row.cell(subject.name).error = named(error)

    def turn(
        self,
        row: Row,
        name: str,
        action: Callable[[Cell], object],
        rest: Subject | None = None,
    ) -> None:
        """One subject's turn in a row. `rest` is the subject to wait for afterwards."""
        cell = row.cell(name)
        if name in self.broken:
            cell.error = self.broken[name]
        if cell.error:
            return
        gc.collect()
        try:
            action(cell)
        except Exception as error:  # whatever a peer does wrong is a result, not our end
            cell.error = named(error)
            print(f"    {row.title}: {name}: {cell.error}", flush=True)
        if rest is not None:
            settle(rest.pids)

    @contextlib.contextmanager
    def floors(self, *kinds: type[PingPong] | type[BareFork]) -> Iterator[list]:
        made: list[PingPong | BareFork] = []
        try:
            for kind in kinds:
                made.append(kind())
            yield made
        finally:
            for each in made:
                each.close()
