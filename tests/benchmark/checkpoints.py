# SPDX-License-Identifier: Apache-2.0
"""Rows of checkpoints, rollbacks and branches. No peer has them. Checkpoints take turns with the fork of a
Python process that has the same in memory, because machines differ by several times in what a fork takes. What
is compared with another session of Cellkeep's is compared in turns within one cell.

A sample is the whole round trip of the request, on a connection kept alive. Before each a cell runs, or
the answer would be the checkpoint before.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator

from clients import HttpConnection, RestClient
from floors import BareFork
from processes import settle
from report import Cell, Row, megabytes
from run import Run
from starts import USE_PACKAGES
from subjects import TOKEN, Cellkeep

MEMORY_MB = 4096
FILES = 100
BRANCHES_AT_ONCE_MAX = 100  # of one request
# How many samples of one checkpoint there are for each of as many branches as one request may ask for.
CHECKPOINTS_PER_CROWD = 10
CHANGE = "changes = globals().get('changes', 0) + 1; changes"
# Longer than what makes a session with `costly` keep a checkpoint.
COSTLY = "import time; end = time.monotonic() + 1.1\nwhile time.monotonic() < end: pass"


class Kept:
    """A session that is kept, gone back with and branched. A connection to it."""

    def __init__(self, subject: Cellkeep, **checkpoints: object) -> None:
        self._url = subject.url
        self._http = HttpConnection(subject.url, TOKEN)
        body = {"checkpoints": checkpoints, "limits": {"memory_mb": MEMORY_MB}}
        self.id = self._http.call("POST", "/v1/sessions", body)["id"]

    def timed(self, action: str, body: object) -> tuple[float, dict]:
        """Seconds, and what was answered."""
        request = self._http.encoded("POST", f"/v1/sessions/{self.id}/{action}", body)
        self._http.ready()
        began = time.perf_counter()
        status, text = self._http.exchange(request)
        seconds = time.perf_counter() - began
        if not 200 <= status < 300:
            raise RuntimeError(f"{action}: {status} {text[:200].decode(errors='replace')}")
        return seconds, json.loads(text)

    def run(self, code: str) -> None:
        client = self.client()
        try:
            client.execute(code).checked(None)
        finally:
            client.close()

    def client(self, ident: str = "") -> RestClient:
        return RestClient(self._url, TOKEN, ident or self.id)

    def checkpoint(self) -> tuple[float, str]:
        self.run(CHANGE)
        seconds, made = self.timed("checkpoints", {})
        if made["unchanged"]:
            raise RuntimeError("no checkpoint was made")
        return seconds, made["id"]

    def branches(self, start: str, count: int) -> tuple[float, list[str]]:
        seconds, answer = self.timed("branches", {"from": start, "count": count})
        failed = [item["error"] for item in answer["branches"] if "error" in item]
        if failed:
            raise RuntimeError(f"{len(failed)} of {count} branches failed, such as: {failed[0]}")
        return seconds, [item["session"]["id"] for item in answer["branches"]]

    def end(self, ident: str = "") -> None:
        self._http.call("DELETE", f"/v1/sessions/{ident or self.id}")

    def close(self) -> None:
        try:
            self.end()
        finally:
            self._http.close()


@contextlib.contextmanager
def kept(subject: Cellkeep, prepare: str, **checkpoints: object) -> Iterator[Kept]:
    session = Kept(subject, **checkpoints)
    try:
        session.run(prepare)
        yield session
    finally:
        session.close()


def _together(run: Run, rows: list[Row], action: Callable[..., None]) -> None:
    """One turn that fills a cell of each row. A failure is in all that are empty."""
    name = run.cellkeep.name
    cells = [row.cell(name) for row in rows]
    run.turn(rows[0], name, lambda _: action(*cells), run.cellkeep)
    for cell in cells[1:]:
        if not (cell.samples or cell.facts):
            cell.error = cells[0].error


def _keep_and_go_back(run: Run, key: str, prepare: str, size: int, of: str) -> None:
    rows = [
        run.report.row(f"checkpoint_{key}", f"checkpoint of {of}", "times"),
        run.report.row(f"rollback_{key}", "… rollback to it", "times"),
    ]

    forked = rows[0].cell(BareFork.name)

    def measure(checkpoint: Cell, rollback: Cell) -> None:
        # First, because what is measured until a failure is judged, too.
        checkpoint.facts["bytes"] = rollback.facts["bytes"] = size
        with contextlib.closing(BareFork(prepare)) as fork, kept(run.cellkeep, prepare) as session:
            for _ in range(run.form.checkpoints):
                forked.samples.append(fork.once())
                seconds, made = session.checkpoint()
                checkpoint.samples.append(seconds)
                session.run(CHANGE)
                seconds, _ = session.timed("rollback", {"checkpoint": made, "discard": True})
                rollback.samples.append(seconds)

    _together(run, rows, measure)


def _beside_files(run: Run) -> None:
    """Checkpoints of two sessions in turns. One has files that do not change."""
    size = run.form.file_bytes
    row = run.report.row("checkpoint_files", f"… beside {megabytes(size)} of unchanged files", "trip")
    fill = (
        "import random\n"
        f"for n in range({FILES}):\n"
        f"    with open(f'f{{n}}', 'wb') as file: _ = file.write(random.randbytes({size // FILES}))"
    )

    def measure(cell: Cell) -> None:
        bare = Cell()
        with kept(run.cellkeep, USE_PACKAGES) as other, kept(run.cellkeep, USE_PACKAGES) as session:
            session.run(fill)
            session.checkpoint()  # reads them
            for _ in range(run.form.checkpoints):
                bare.samples.append(other.checkpoint()[0])
                cell.samples.append(session.checkpoint()[0])
        cell.facts |= {"bytes": size, "without_ms": bare.p50 * 1000, "factor": cell.p50 / bare.p50}

    _together(run, [row], measure)


def _branches(run: Run) -> None:
    most = max(run.form.branches)
    ready = run.report.row("branch_ready", "a branch of it, ready to run", "times")
    rows = {
        count: run.report.row(f"branches_{count}", f"{count} branches of one checkpoint", "times")
        for count in run.form.branches
    }
    alive = run.report.row(f"branches_alive_{run.form.branches_alive}", "branches alive at once that answer", "live")

    def measure(one: Cell, *many: Cell) -> None:
        with kept(run.cellkeep, USE_PACKAGES, branches=True) as session:
            _, start = session.checkpoint()
            for _ in range(run.form.checkpoints):
                seconds, (made,) = session.branches(start, 1)
                one.samples.append(seconds)
                session.end(made)
            for count, cell in zip(rows, many[:-1], strict=True):
                for _ in range(max(1, run.form.checkpoints // CHECKPOINTS_PER_CROWD)):
                    seconds, made = session.branches(start, count)
                    cell.samples.append(seconds)
                    for each in made:
                        session.end(each)
                    settle(run.cellkeep.pids)  # each has a place until it is gone
            _live(run, session, start, many[-1])

    assert most <= BRANCHES_AT_ONCE_MAX
    _together(run, [ready, *rows.values(), alive], measure)


def _live(run: Run, session: Kept, start: str, cell: Cell) -> None:
    """Whether each goes on from the checkpoint's state, with all of the others there."""
    cell.facts |= {"asked": run.form.branches_alive, "answered": 0}
    made: list[str] = []
    while len(made) < run.form.branches_alive:
        count = min(BRANCHES_AT_ONCE_MAX, run.form.branches_alive - len(made))
        made += session.branches(start, count)[1]
    for number, each in enumerate(made):
        client = session.client(each)
        try:
            answer = client.execute(f"changes, {number}").checked(f"(1, {number})")
        finally:
            client.close()
        cell.facts["answered"] += 1 if answer.status == "ok" else 0
    for each in made:
        session.end(each)


def _costly(run: Run) -> None:
    """Round trips of two sessions in turns. One has made a checkpoint by itself."""
    row = run.report.row("trip_costly", "`1+1` over REST, with `auto: costly`", "trip")

    def measure(cell: Cell) -> None:
        bare = Cell()
        with kept(run.cellkeep, COSTLY) as other, kept(run.cellkeep, COSTLY, auto="costly") as session:
            pairs = [(bare, other.client()), (cell, session.client())]
            try:
                for _ in range(run.form.blocks):
                    for each, client in pairs:
                        each.samples += [client.execute("1+1").checked("2").seconds for _ in range(run.form.block)]
            finally:
                for _, client in pairs:
                    client.close()
        cell.facts |= {"without_ms": bare.p50 * 1000, "factor": cell.p50 / bare.p50}

    _together(run, [row], measure)


def measure_checkpoints(run: Run) -> None:
    heap = run.form.heap_bytes
    fill = f"import numpy; heap = numpy.ones({heap // 8})"
    _keep_and_go_back(run, "heap", fill, heap, f"{megabytes(heap)} of heap")
    _keep_and_go_back(run, "fresh", USE_PACKAGES, 0, "a session with pandas")
    _beside_files(run)
    _branches(run)
    _costly(run)
