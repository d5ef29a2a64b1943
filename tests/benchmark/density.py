# SPDX-License-Identifier: Apache-2.0
"""Rows of many sessions that live at the same time: memory, idle processor time, and whether the
last one costs what the first did.

The subjects run one after the other, because they would take memory from each other. Each one starts
a new server, because memory that a server already holds would hide what sessions cost. Each session
has only used pandas, numpy and matplotlib before.
"""

import statistics
import threading
import time

import psutil
from clients import Client
from floors import BareFork
from processes import cpu_seconds, ensure_running, memory_of, settle, wake_ups
from report import Cell, Row, named
from run import Run
from starts import PACKAGES_RESULT, USE_PACKAGES
from subjects import Session, Subject

# No session is added when less memory than this is free, or after this time.
MEMORY_LEFT_BYTES_MIN = 2_000_000_000
GROWTH_SECONDS_MAX = 420.0
TRIPS = 50
AVERAGED = 10
# Rows about all sessions of a subject together, for any number of them.
TOGETHER = ("live", "growth", "idle")


class TooManyError(Exception):
    """The machine has no memory for all the sessions, or they take too long."""


class Growth:
    """A growing number of sessions of one subject."""

    def __init__(self, run: Run, subject: Subject) -> None:
        self._run, self._subject = run, subject
        self.sessions: list[Session] = []
        self.starts: list[float] = []
        self.first_trip = 0.0
        self._rss_before = memory_of(subject.server_pids()).rss
        self._deadline = time.monotonic() + GROWTH_SECONDS_MAX

    def grow(self, count: int) -> None:
        while len(self.sessions) < count:
            have = len(self.sessions)
            free = psutil.virtual_memory().available
            if free < MEMORY_LEFT_BYTES_MIN:
                raise TooManyError(f"{have} of {count} sessions: {free / 1e9:.1f} GB memory left")
            if time.monotonic() > self._deadline:
                raise TooManyError(f"{have} of {count} sessions in {GROWTH_SECONDS_MAX:.0f} s")
            began = time.perf_counter()
            self.sessions.append(self._subject.open())
            self.sessions[-1].first_result(USE_PACKAGES, PACKAGES_RESULT)
            self.starts.append(time.perf_counter() - began)

    def memory(self, cell: Cell) -> None:
        count = len(self.sessions)
        if not count:
            return
        settle(self._subject.pids)
        pids = self._subject.session_pids(self.sessions)
        found = memory_of(pids)
        ensure_running(pids)
        cell.facts["sessions"] = count
        cell.facts["pss"] = found.pss / count
        cell.facts["private_dirty"] = found.private_dirty / count
        servers = self._subject.server_pids()
        if servers:
            rss = memory_of(servers).rss
            cell.facts["server_rss"] = (rss - self._rss_before) / count
            cell.facts["server_rss_whole"] = rss
            shared = self._subject.pids() - pids - servers
            cell.facts["shared_pss"] = memory_of(shared).pss

    def idle(self, cell: Cell, seconds: float) -> None:
        count = len(self.sessions)
        if not count:
            raise TooManyError("no session is there")
        own = self._subject.session_pids(self.sessions)
        pids = own | self._subject.pids()
        settle(lambda: pids)
        cpu, woken, began = cpu_seconds(pids), wake_ups(pids), time.monotonic()
        threading.Event().wait(seconds)
        took = time.monotonic() - began
        ensure_running(own)
        cell.facts["sessions"] = count
        cell.facts["cpu_us"] = (cpu_seconds(pids) - cpu) * 1e6 / took / count
        cell.facts["wake_ups"] = (wake_ups(pids) - woken) / took / count

    def answers(self, cell: Cell, asked: int) -> None:
        cell.facts["asked"] = asked
        cell.facts["answered"] = 0
        for number, session in enumerate(self.sessions):
            if session.value(f"{number} + 1") == str(number + 1):
                cell.facts["answered"] += 1

    def trip(self, session: Session) -> float:
        client: Client = session.ways[session.main]()
        try:
            client.execute("1+1")
            return statistics.median(
                client.execute("1+1").checked("2").seconds for _ in range(TRIPS)
            )
        finally:
            client.close()

    def cost(self, cell: Cell) -> None:
        """The last ones against the first ones."""
        some = min(AVERAGED, len(self.starts) // 2)
        if not some or not self.first_trip:
            raise TooManyError(f"{len(self.sessions)} sessions are no growth")
        last_trip = self.trip(self.sessions[-1])
        first = statistics.median(self.starts[:some])
        last = statistics.median(self.starts[-some:])
        cell.facts |= {
            "sessions": len(self.sessions),
            "first_start_ms": first * 1000,
            "last_start_ms": last * 1000,
            "start": last / first,
            "first_trip_ms": self.first_trip * 1000,
            "last_trip_ms": last_trip * 1000,
            "trip": last_trip / self.first_trip,
        }

    def close(self) -> list[str]:
        failures = []
        for session in self.sessions:
            try:
                session.close()
            except Exception as error:
                failures.append(str(error))
        return failures


def _one_subject(run: Run, subject: Subject, steps: list[int], rows: dict) -> None:
    first = subject.open()  # memory that a server needs once is not the cost of a session
    try:
        first.first_result()
    finally:
        first.close()
    settle(subject.pids)
    growth = Growth(run, subject)

    def reach(cell: Cell, step: int) -> None:
        try:
            growth.grow(step)
        finally:  # the number that was reached is a figure, too
            growth.memory(cell)
        if step == 1:
            growth.first_trip = growth.trip(growth.sessions[0])

    try:
        for step in steps:
            run.turn(rows[step], subject.name, lambda cell, step=step: reach(cell, step))
        turn = run.turn
        turn(rows["idle"], subject.name, lambda cell: growth.idle(cell, run.form.idle_seconds))
        turn(rows["live"], subject.name, lambda cell: growth.answers(cell, steps[-1]))
        if steps[-1] > 1:
            turn(rows["growth"], subject.name, growth.cost)
    finally:
        failures = growth.close()
    if failures:
        raise RuntimeError(f"{len(failures)} sessions did not end, such as: {failures[0]}")


def _forks(steps: list[int], rows: dict, run: Run) -> None:
    """The limit: pages that the child of a warm process has of its own."""
    with run.floors(BareFork) as (fork,):
        pids: list[int] = []
        for step in steps:

            def hold(cell: Cell, step: int = step) -> None:
                pids.extend(fork.hold() for _ in range(step - len(pids)))
                settle(lambda: pids)
                found = memory_of(pids)
                cell.facts["sessions"] = step
                cell.facts["pss"] = found.pss / step
                cell.facts["private_dirty"] = found.private_dirty / step

            run.turn(rows[step], fork.name, hold)


def _name(error: Exception, subject: Subject, rows: list[Row]) -> None:
    """Writes the error into every empty cell, or into the first if none is empty."""
    print(f"    many that stay: {subject.name}: {named(error)}", flush=True)
    cells = [row.cell(subject.name) for row in rows]
    for cell in [cell for cell in cells if not (cell.error or cell.facts)] or cells[:1]:
        cell.error = named(error)


def measure_density(run: Run) -> None:
    steps = sorted(run.form.memory)
    most = steps[-1]
    rows: dict = {
        step: run.report.row(
            f"memory_{step}",
            f"memory of a session with pandas, of {step:,}",
            "memory",
        )
        for step in steps
    }
    rows["live"] = run.report.row(f"live_{most}", "sessions alive at once that answer", "live")
    title = f"the last of {most:,} against the first"
    rows["growth"] = run.report.row("growth", title, "growth")
    rows["idle"] = run.report.row("idle", "a session at rest", "idle")
    for subject in run.subjects:
        most_of = {run.cellkeep.name: most, "ipykernel": run.form.ipykernel_memory_max}
        mine = [
            step
            for step in steps
            if step <= most_of.get(subject.name, run.form.peers_memory_max)
        ]
        try:
            if subject.name not in run.broken:
                run.start(subject)
            if subject.name in run.broken:
                raise RuntimeError(run.broken[subject.name])
            _one_subject(run, subject, mine, rows)
        except Exception as error:
            keys = [*mine, *(key for key in TOGETHER if key != "growth" or mine[-1] > 1)]
            _name(error, subject, [rows[key] for key in keys])
        finally:
            run.stop(subject)
    _forks(steps, rows, run)
