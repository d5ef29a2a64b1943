# SPDX-License-Identifier: Apache-2.0
"""Rows of beginnings: session start to first result, one after the other and many at once."""

import re
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from floors import BareFork
from report import Cell, Row, named
from run import Run
from subjects import Session, Subject

# The first code of a session with packages. Their import is part of the start, unless the session
# has them already.
USE_PACKAGES = """import matplotlib.pyplot as plt, numpy as np, pandas as pd
int(pd.DataFrame({'a': np.arange(10)})['a'].sum())"""
PACKAGES_RESULT = "45"
WALL_SECONDS_MAX = 600


def started(subject: Subject, *first: str) -> float:
    """Seconds from the request for a session to its first result."""
    session: Session | None = None
    try:
        began = time.perf_counter()
        session = subject.open()
        session.first_result(*first)
        return time.perf_counter() - began
    finally:
        if session is not None:
            session.close()


def measure_cold(run: Run) -> None:
    """Measures a start while nothing of the subject runs: the start of its server is part of it."""
    row = run.report.row("start_cold", "nothing running → first result", "times")

    def cold(subject: Subject, cell: Cell) -> None:
        began = time.perf_counter()
        try:
            subject.start()
            session = subject.open()
            try:
                session.first_result()
                cell.samples.append(time.perf_counter() - began)
            finally:
                session.close()
        finally:
            subject.stop()

    for _ in range(run.form.cold):
        for subject in run.starters:
            run.turn(row, subject.name, lambda cell, subject=subject: cold(subject, cell))


def measure_starts(run: Run) -> None:
    form = run.form
    warm = run.report.row("start_warm", "session start → first result", "times")
    packages = run.report.row("start_imports", "… using pandas, numpy, matplotlib", "times")
    for round_number in range(max(form.warm, form.imports)):
        for row, rounds, first in (
            (warm, form.warm, ()),
            (packages, form.imports, (USE_PACKAGES, PACKAGES_RESULT)),
        ):
            for subject in run.starters if round_number < rounds else []:
                run.turn(
                    row,
                    subject.name,
                    lambda cell, subject=subject, first=first: cell.samples.append(
                        started(subject, *first)
                    ),
                    subject,
                )
    with run.floors(BareFork) as (fork,):
        for row in (warm, packages):
            run.turn(
                row,
                fork.name,
                lambda cell: cell.samples.extend(fork.once() for _ in range(form.forks)),
            )


def measure_in_a_row(run: Run) -> None:
    """Only for Cellkeep, since no other subject keeps sessions ready: how long a start takes when the
    ready ones are used up. The first sessions, opened without a pause, use them up."""
    row = run.report.row("start_drained", "… asked for in a row, none ready any more", "times")

    def drain(subject: Subject, cell: Cell) -> None:
        sessions: list[Session] = []
        try:
            for number in range(run.form.in_a_row):
                began = time.perf_counter()
                sessions.append(subject.open())
                sessions[-1].first_result()
                if number >= run.form.in_a_row // 2:
                    cell.samples.append(time.perf_counter() - began)
        finally:
            for session in sessions:
                session.close()

    for _ in range(run.form.in_a_row_rounds):
        for subject in run.ours:
            run.turn(
                row, subject.name, lambda cell, subject=subject: drain(subject, cell), subject
            )


def _all_at_once(subject: Subject, count: int, cell: Cell) -> None:
    sessions: list[Session] = []
    failures: list[str] = []
    slowest: list[float] = []
    began = 0.0

    def set_off() -> None:
        nonlocal began
        began = time.perf_counter()

    barrier = threading.Barrier(count, set_off)

    def one(_: int) -> None:
        barrier.wait()
        try:
            session = subject.open()
            sessions.append(session)
            session.first_result()
        except Exception as error:
            failures.append(named(error))
        else:
            slowest.append(time.perf_counter() - began)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(one, range(count)))
        list(threads.map(lambda session: session.close(), sessions))
    facts = cell.facts
    facts["asked"] = facts.get("asked", 0) + count
    facts["succeeded"] = facts.get("succeeded", 0) + len(slowest)
    if slowest:
        cell.samples.append(max(slowest))
    if failures:
        raise RuntimeError(f"{len(failures)} of {count} failed, such as: {failures[0]}")


def measure_at_once(run: Run) -> None:
    """The samples are the slowest of each round. A server may keep more sessions ready after many
    requests: ours starts anew before the largest number, and later rounds have a row of their own."""
    for count in run.form.at_once:
        title = "1 session: its time" if count == 1 else f"{count} sessions at once: the slowest"
        row = run.report.row(f"at_once_{count}", title, "at_once")
        if count < max(run.form.at_once):
            for _ in range(run.form.at_once_rounds):
                for subject in run.starters:
                    if subject in run.ours or count <= run.form.peers_at_once_max:
                        _crowd(run, row, subject, count)
            continue
        for subject in run.ours:
            run.restart(subject)
            _crowd(run, row, subject, count)
        for _ in range(run.form.at_once_rounds):
            for subject in run.starters:
                if subject not in run.ours and count <= run.form.peers_at_once_max:
                    _crowd(run, row, subject, count)
        later = run.report.row(f"at_once_{count}_later", "… of a later crowd", "at_once")
        for _ in range(run.form.at_once_rounds):
            for subject in run.ours:
                _crowd(run, later, subject, count)


def _crowd(run: Run, row: Row, subject: Subject, count: int) -> None:
    run.turn(row, subject.name, lambda cell: _all_at_once(subject, count, cell), subject)


def _wall(run: Run, row: Row, cell: Cell) -> None:
    program = run.binary.parent / "wall_cost"
    if not program.is_file():
        raise FileNotFoundError(f"{program.name} is not built; ./scripts/bench builds it")
    with subprocess.Popen(
        [program, str(run.form.wall_rounds)],
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            said, complaints = process.communicate(timeout=WALL_SECONDS_MAX)
        except KeyboardInterrupt:
            # Killed, it would leave the cgroups of the sandbox that it is measuring.
            process.communicate(timeout=WALL_SECONDS_MAX)
            raise
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if process.returncode != 0:
        raise RuntimeError(f"{program.name} ended with {process.returncode}: {complaints[-200:]}")
    found = dict(re.findall(r"^\| ([^|]+) \| ([\d.]+) \|", said, re.MULTILINE))
    cell.facts["bare_ms"] = float(found["kernel to first result, bare"])
    inside = "kernel to first result, sandboxed, private image"
    cell.facts["sandboxed_ms"] = float(found[inside])


def measure_wall(run: Run) -> None:
    """The same kernel bare and sandboxed in turns, without the server around it."""
    if not run.form.wall_rounds:
        return
    row = run.report.row("wall", "… of it, the sandbox: of a fresh kernel's start", "share")
    run.turn(row, run.cellkeep.name, lambda cell: _wall(run, row, cell))
