# SPDX-License-Identifier: Apache-2.0
"""Rows of the other languages: each beside the kernel that people use for it, in turns.

Both are asked the same over the same way: from the wish for a session to its first result, and one
round trip after the other in a session that is there. What is said is looked at as text, because
kernels differ in whether a value is a result, output or a table.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clients import HttpConnection, ZmqClient
from report import Cell, Row, named
from run import Run
from subjects import TOKEN, ZMQ, CellkeepSession, KernelSession, Session

PEERS = "its usual kernel"
# Where `scripts/bench` has put the packages of the peers that are programs of Node.
NODE_PACKAGES = Path(os.environ.get("CELLKEEP_BENCH_NODE", sys.prefix + "-node")) / "node_modules"


@dataclass(frozen=True)
class Peer:
    """A kernelspec of the bench's own: what `argv` finds is locked with it."""

    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Trial:
    """One language: what it is asked, a word of the answer, and who is asked beside us."""

    language: str
    title: str
    code: str
    word: str
    peer: Peer | None


PYTHON = (sys.executable, "-m")
TSLAB = ("node", str(NODE_PACKAGES / "tslab/bin/tslab"), "kernel")
TRIALS = (
    Trial(
        "javascript",
        "JavaScript",
        "6 * 7",
        "42",
        Peer("tslab --js", (*TSLAB, "--js", "--config-path={connection_file}")),
    ),
    Trial(
        "typescript",
        "TypeScript",
        "(6 as number) * 7",
        "42",
        Peer("tslab", (*TSLAB, "--config-path={connection_file}")),
    ),
    Trial(
        "bash",
        "Bash",
        "echo $((6 * 7))",
        "42",
        Peer("bash_kernel", (*PYTHON, "bash_kernel", "-f", "{connection_file}"), (("PS1", "$"),)),
    ),
    Trial(
        "sql",
        "SQL",
        "SELECT 6 * 7",
        "42",
        Peer("duckdb_kernel", (*PYTHON, "duckdb_kernel", "-f", "{connection_file}")),
    ),
    # Its usual kernel, xeus-cpp, is in no registry that the others come from.
    Trial("cpp", "C++", "6 * 7", "42", None),
)


def offered(url: str) -> set[str]:
    """The languages of a server, as it tells Jupyter's programs."""
    http = HttpConnection(url, TOKEN)
    try:
        specs = http.call("GET", "/api/kernelspecs")["kernelspecs"]
    finally:
        http.close()
    return {each["spec"]["language"] for each in specs.values()}


def install(trial: Trial) -> str:
    """Writes the peer's kernelspec where jupyter_client looks, and gives its name."""
    assert trial.peer is not None
    if shutil.which(trial.peer.argv[0]) is None:
        raise FileNotFoundError(f"{trial.peer.name}: {trial.peer.argv[0]} is not installed")
    name = f"bench-{trial.language}"
    folder = Path(os.environ["JUPYTER_DATA_DIR"]) / "kernels" / name
    folder.mkdir(parents=True, exist_ok=True)
    spec = {
        "argv": list(trial.peer.argv),
        "display_name": trial.peer.name,
        "language": trial.language,
        "env": dict(trial.peer.env),
    }
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return name


class Begun:
    """A session that has given its first answer, and how long that took from the wish for it."""

    def __init__(self, make: Callable[[], Session], trial: Trial) -> None:
        self._trial = trial
        began = time.perf_counter()
        self._session = make()
        try:
            client = self._session.ways[self._session.main]()
            try:
                ask = client.first_answer if isinstance(client, ZmqClient) else client.execute
                ask(trial.code).saying(trial.word)
                self.seconds = time.perf_counter() - began
            finally:
                client.close()
        except BaseException:
            self._session.close()
            raise

    def trips(self, count: int) -> list[float]:
        client = self._session.ways[ZMQ]()
        try:
            assert isinstance(client, ZmqClient)
            client.first_answer(self._trial.code).saying(self._trial.word)
            asked = (client.execute(self._trial.code) for _ in range(count))
            return [answer.saying(self._trial.word).seconds for answer in asked]
        finally:
            client.close()

    def close(self) -> None:
        self._session.close()


def measure_languages(run: Run) -> None:
    """`run` is serving. A language that the server does not offer has no row."""
    if run.cellkeep.name in run.broken:
        return
    there = offered(run.cellkeep.url)
    for trial in TRIALS:
        if trial.language in there and trial.language in run.form.languages:
            _measure(run, trial)


def _measure(run: Run, trial: Trial) -> None:
    beside = f" (beside {trial.peer.name})" if trial.peer else ""
    start = run.report.row(
        f"start_{trial.language}", f"{trial.title}: session start → first result{beside}", "times"
    )
    trip = run.report.row(
        f"trip_{trial.language}", f"{trial.title}: round trip over {ZMQ}{beside}", "times"
    )

    def ours() -> Session:
        return CellkeepSession(run.cellkeep, trial.language)

    makers: dict[str, Callable[[], Session]] = {run.cellkeep.name: ours}
    if trial.peer is not None:
        makers[PEERS] = lambda: KernelSession(install(trial), run.folder)
    for number in range(run.form.language_starts):
        last = number == run.form.language_starts - 1
        for name, make in makers.items():
            _one(run, name, make, trial, start, trip if last else None)


def _one(
    run: Run,
    name: str,
    make: Callable[[], Session],
    trial: Trial,
    start: Row,
    trip: Row | None,
) -> None:
    begun: list[Begun] = []

    def begin(cell: Cell) -> None:
        begun.append(Begun(make, trial))
        cell.samples.append(begun[0].seconds)

    def ask(cell: Cell) -> None:
        if not begun:
            raise RuntimeError(start.cell(name).error)
        cell.samples += begun[0].trips(run.form.language_trips)

    try:
        run.turn(start, name, begin, run.cellkeep)
        if trip is not None:
            run.turn(trip, name, ask)
    finally:
        for each in begun:
            try:
                each.close()
            except Exception as error:  # a session that does not end is a failure of its start
                start.cell(name).error = named(error)
