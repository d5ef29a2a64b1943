# SPDX-License-Identifier: Apache-2.0
"""The benchmark in its smallest form: is its report whole and honest, and is nothing left of it?

Nothing here says how fast anything has to be.
"""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import density
import pytest
from density import Growth, TooManyError
from exchanges import _delivered
from floors import PingPong
from processes import ensure_running
from report import BEGIN, END, Cell, Report, rewrite_document
from run import TINY, Run
from starts import PACKAGES_RESULT
from subjects import KernelSession, Session, Subject
from targets import TARGETS, judge

HERE = Path(__file__).parent
BINARY = os.environ.get("CELLKEEP_BINARY", str(HERE.parents[1] / "build/release/bin/cellkeep"))
PATIENCE_SECONDS = 450
WAYS = ("zeromq", "websocket", "rest")
MARK = "CELLKEEP_BENCH_TEST"


@dataclass
class Finished:
    status: int
    output: str
    results: Path
    left: list[str]

    @property
    def report(self) -> dict:
        return json.loads((self.results / "report.json").read_text(encoding="utf-8"))

    def cells(self) -> Iterator[tuple[str, str, dict]]:
        for row in self.report["rows"]:
            for subject, cell in row["cells"].items():
                yield row["key"], subject, cell

    def cell(self, key: str, subject: str) -> dict:
        return next(cell for k, s, cell in self.cells() if (k, s) == (key, subject))


def processes_of(mark: str) -> list[str]:
    """The processes that inherited our environment, with any parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or entry.name == str(os.getpid()):
            continue
        try:
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text(encoding="utf-8").replace("\0", " "))
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue  # it has ended, or is another user's
    return found


def run(folder: Path, binary: str, interrupt_at: str = "") -> Finished:
    """`interrupt_at`: Ctrl-C when this has been printed."""
    temporary, mark = folder / "tmp", uuid.uuid4().hex
    temporary.mkdir(parents=True)
    command = [sys.executable, "-B", HERE / "bench.py", "--tiny", "--cellkeep", binary]
    bench = subprocess.Popen(
        [*command, "--results", folder / "results"],
        env={**os.environ, "TMPDIR": str(temporary), MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = ""
    for line in bench.stdout:
        said += line
        if interrupt_at and interrupt_at in line:
            bench.send_signal(signal.SIGINT)
    status = bench.wait(PATIENCE_SECONDS)
    left = processes_of(mark) + [path.name for path in temporary.iterdir()]
    return Finished(status, said, folder / "results", left)


BROKEN = """#!/bin/sh
[ "$1" = version ] && echo broken && exit
echo no luck
exit 3
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finished]:
    """One to its end, one with a server that does not start, one interrupted; beside each other,
    because how fast they are is no question here."""
    folder = tmp_path_factory.mktemp("b")
    broken = folder / "cellkeep"
    broken.write_text(BROKEN, encoding="utf-8")
    broken.chmod(0o700)
    with ThreadPoolExecutor() as threads:
        started = {
            "whole": threads.submit(run, folder / "whole", BINARY),
            "broken": threads.submit(run, folder / "broken", str(broken)),
            "interrupted": threads.submit(run, folder / "stopped", BINARY, "round trips"),
        }
        return {name: future.result() for name, future in started.items()}


@pytest.fixture
def whole(runs: dict[str, Finished]) -> Finished:
    return runs["whole"]


def test_a_run_in_which_nothing_fails_ends_with_0_and_leaves_nothing(whole: Finished) -> None:
    assert whole.report["errors"] == [], whole.output
    assert whole.status == 0, whole.output
    assert whole.left == []


def test_every_cell_has_numbers(whole: Finished) -> None:
    cells = list(whole.cells())
    assert len(cells) > 30
    for key, subject, cell in cells:
        assert cell["samples"] or cell["facts"], (key, subject)
        assert all(sample > 0 for sample in cell["samples"]), (key, subject)


def test_every_row_has_the_subjects_that_it_is_about(whole: Finished) -> None:
    found = {(key, subject) for key, subject, _ in whole.cells()}
    both = ["start_cold", "start_warm", "start_imports", "at_once_2", "trip_zeromq"]
    ours = ["start_drained", "at_once_2_later", "checkpoint_files", "branch_ready", "branches_2", "trip_costly"]
    ours += [f"{what}_{of}" for what in ("checkpoint", "rollback") for of in ("heap", "fresh")]
    both += ["lines_zeromq", "slow_zeromq", "picture_zeromq", "memory_1", "memory_2", "live_2"]
    both += ["growth", "idle"]
    expected = {(key, subject) for key in both for subject in ("Cellkeep", "ipykernel")}
    exchanges = ("trip", "lines", "picture")
    expected |= {(f"{row}_{way}", "Cellkeep") for row in exchanges for way in WAYS}
    expected |= {(f"trip_{way}", PingPong.name) for way in WAYS}
    expected |= {(key, "Cellkeep") for key in ours}
    expected |= {(key, "bare fork") for key in ("start_warm", "start_imports", "memory_2")}
    expected |= {(f"checkpoint_{of}", "bare fork") for of in ("heap", "fresh")}
    assert expected <= found


def test_what_was_printed_and_shown_was_delivered(whole: Finished) -> None:
    for row in ("lines", "slow"):
        for subject, ways in (("Cellkeep", WAYS), ("ipykernel", WAYS[:1])):
            for way in ways if row == "lines" else ways[:2]:
                facts = whole.cell(f"{row}_{way}", subject)["facts"]
                assert facts["delivered"] == facts["printed"] == 20_000, (row, way, subject)
    for way in WAYS:
        facts = whole.cell(f"picture_{way}", "Cellkeep")["facts"]
        assert facts["delivered"] == facts["shown"] == 1_000_000, way


def test_the_sessions_asked_for_came_and_answered(whole: Finished) -> None:
    facts = whole.cell("branches_alive_3", "Cellkeep")["facts"]
    assert facts["answered"] == facts["asked"] == 3
    for subject in ("Cellkeep", "ipykernel"):
        facts = whole.cell("at_once_2", subject)["facts"]
        assert facts["succeeded"] == facts["asked"] == 2
        facts = whole.cell("live_2", subject)["facts"]
        assert facts["answered"] == facts["asked"] == 2
        memory = whole.cell("memory_2", subject)["facts"]
        assert memory["sessions"] == 2
        # An interpreter with pandas is not smaller than this, even if it shares its pages.
        assert memory["pss"] > 1_000_000 and memory["private_dirty"] > 500_000


def test_the_documents_hold_every_row_and_the_load(whole: Finished) -> None:
    text = (whole.results / "report.md").read_text(encoding="utf-8")
    report = whole.report
    for row in report["rows"]:
        assert text.count(row["title"]) >= 2, row["title"]  # the summary and the details
        assert bool(row["target"]) == bool(row["verdict"])
    for name in ("load_at_start", "load_at_end", "cellkeep", "peers", "machine"):
        assert str(report["about"][name]) in text
    assert (whole.results / "report.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (whole.results / "report.svg").read_text(encoding="utf-8")


def test_a_subject_that_fails_is_named_in_its_cells_and_the_others_are_measured(
    runs: dict[str, Finished],
) -> None:
    finished = runs["broken"]
    assert finished.status == 1, finished.output
    assert finished.left == []
    rows = [cell for _, subject, cell in finished.cells() if subject == "Cellkeep"]
    assert len(rows) > 15
    for cell in rows:
        assert "no luck" in cell["error"] and not cell["samples"]
    assert all(not cell["error"] for _, subject, cell in finished.cells() if subject != "Cellkeep")
    assert finished.cell("trip_zeromq", "ipykernel")["samples"]
    assert "no luck" in (finished.results / "report.md").read_text(encoding="utf-8")
    assert {row["verdict"] for row in finished.report["rows"] if row["target"]} == {"missed"}


def test_an_interrupted_run_leaves_nothing_and_writes_nothing(runs: dict[str, Finished]) -> None:
    finished = runs["interrupted"]
    assert finished.status == 130, finished.output
    assert finished.left == []
    assert not finished.results.exists()


def test_lines_lost_doubled_or_broken_are_not_delivered() -> None:
    assert _delivered("0\n1\n2\n", 3) == 3
    assert _delivered("0\n2\n", 3) == 2
    assert _delivered("0\n1\n1\n2\n", 3) == 3
    assert _delivered("0\n1\n[cut]\n2", 3) == 2
    assert _delivered("", 3) == 0


class FakeSession(Session):
    def first_result(self, code: str = "1+1", result: str | None = "2") -> None:
        assert result == PACKAGES_RESULT

    def close(self) -> None:
        raise RuntimeError("stays")


class FakeSubject(Subject):
    name = "fake"

    def open(self) -> FakeSession:
        return FakeSession()


@pytest.mark.parametrize(
    ("bound", "value"), [("MEMORY_LEFT_BYTES_MIN", 1 << 60), ("GROWTH_SECONDS_MAX", -1.0)]
)
def test_sessions_grow_to_the_bounds_and_not_past_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    subject = FakeSubject(tmp_path)
    growth = Growth(Run(TINY, Path(BINARY), tmp_path), subject)
    growth.grow(3)
    assert len(growth.sessions) == len(growth.starts) == 3
    monkeypatch.setattr(density, bound, value)
    growth = Growth(Run(TINY, Path(BINARY), tmp_path), subject)
    with pytest.raises(TooManyError, match="0 of 3 sessions"):
        growth.grow(3)


@pytest.fixture
def kernelspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Makes a kernel of a shell's script and gives its name."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))

    def make(script: str) -> str:
        folder = tmp_path / "data/kernels/made"
        folder.mkdir(parents=True)
        spec = {"argv": ["sh", "-c", script], "display_name": "Made", "language": "made"}
        (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        return "made"

    return make


def test_a_peer_that_has_ended_is_a_failure_and_not_waited_for(
    tmp_path: Path, kernelspec: Callable[[str], str]
) -> None:
    session = KernelSession(kernelspec("exit 7"), tmp_path)
    try:
        with pytest.raises(RuntimeError, match="the kernel has ended: exit status 7"):
            session.first_result()
        with pytest.raises(RuntimeError, match="the kernel has ended: exit status 7"):
            session.value("1")
    finally:
        session.close()


def test_a_process_that_has_ended_costs_nothing_and_that_is_no_figure() -> None:
    ensure_running([os.getpid()])
    with subprocess.Popen(["sleep", "infinity"]) as ended:
        ensure_running([ended.pid])
        ended.kill()
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(RuntimeError, match="zombie"):
            ensure_running([os.getpid(), ended.pid])
    with pytest.raises(RuntimeError, match="gone"):
        ensure_running([ended.pid])


class EndedSession(FakeSession):
    """Its process is there when it is measured first and has ended when that is done."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(["sleep", "infinity"])

    def pids(self) -> set[int]:
        self.process.kill()
        return {self.process.pid}

    def close(self) -> None:
        self.process.wait()


def test_the_idle_cost_of_a_session_that_ended_meanwhile_is_a_failure(tmp_path: Path) -> None:
    growth = Growth(Run(TINY, Path(BINARY), tmp_path), FakeSubject(tmp_path))
    growth.sessions.append(EndedSession())
    try:
        with pytest.raises(RuntimeError, match="has ended"):
            growth.idle(Cell(), 0.1)
        with pytest.raises((RuntimeError, FileNotFoundError, ProcessLookupError)):
            growth.memory(Cell())
    finally:
        growth.close()


def test_sessions_that_do_not_end_are_named(tmp_path: Path) -> None:
    growth = Growth(Run(TINY, Path(BINARY), tmp_path), FakeSubject(tmp_path))
    growth.grow(2)
    assert growth.close() == ["stays", "stays"]


def test_a_failure_is_the_cells_and_ends_its_turns(tmp_path: Path) -> None:
    run_of = Run(TINY, Path(BINARY), tmp_path)
    row = run_of.report.row("start_warm", "start", "times")
    turns = []

    def fail(_: Cell) -> None:
        turns.append(1)
        raise ValueError("no such | thing")

    run_of.turn(row, "fake", fail)
    run_of.turn(row, "fake", fail)
    run_of.turn(row, "other", lambda cell: cell.samples.append(1.0))
    assert len(turns) == 1 and row.cells["other"].samples == [1.0]
    assert run_of.report.errors == ["fake: ValueError: no such | thing (start)"]


def test_quantiles_are_nearest_ranks() -> None:
    cell = Cell(samples=[float(number) for number in range(100, 0, -1)])
    assert (cell.quantile(0.99), cell.quantile(0.5), cell.quantile(0.01)) == (99, 50, 1)
    assert Cell(samples=[7.0]).quantile(0.99) == 7


def test_targets_judge_what_was_measured_and_nothing_else() -> None:
    report = Report()
    for key, *_ in TARGETS:
        report.row(key, key, "times")
    trip = report.find("trip_zeromq")
    trip.cell("Cellkeep").samples, trip.cell(PingPong.name).samples = [0.3], [0.1]
    start = report.find("start_imports")
    start.cell("Cellkeep").samples = [0.008] * 98 + [0.041] * 2
    crowd = report.find("at_once_50")
    crowd.cells["Cellkeep"] = Cell([0.2], {"asked": 50, "succeeded": 49}, "one failed")
    judge(report)
    verdicts = {row.key: row.verdict for row in report.rows}
    assert verdicts.pop("trip_zeromq") == "met"
    assert verdicts.pop("start_imports") == "missed"
    assert verdicts.pop("at_once_50") == "missed"
    assert set(verdicts.values()) == {"not measured"}
    trip.cell("Cellkeep").samples = [0.301]
    judge(report)
    assert trip.verdict == "missed"


def test_the_document_is_rewritten_between_its_marks_only(tmp_path: Path) -> None:
    report = Report()
    names = ("machine", "load_at_start", "load_at_end", "date", "cellkeep", "peers", "command")
    report.about = dict.fromkeys(names, "x")
    row = report.row("start_warm", "start", "times")
    row.cell("Cellkeep").samples = [0.25]
    row.cell("other").error = "gone"
    document = tmp_path / "performance.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    rewrite_document(document, report)
    text = document.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n") and text.endswith(f"\n{END}\nafter\n")
    assert "| start | 250 ms | failed |" in text and "old" not in text
    document.write_text("no marks\n", encoding="utf-8")
    with pytest.raises(ValueError, match="0 blocks"):
        rewrite_document(document, report)
