# SPDX-License-Identifier: Apache-2.0
"""Measures Cellkeep beside its peers in one run; see scripts/bench.

Writes report.md, report.json, report.png and report.svg. Ends with status 0 if every subject gave
every figure that it was asked for; whether the figures are good is not a question of the status.
"""

import argparse
import contextlib
import datetime
import gc
import importlib.metadata
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from checkpoints import measure_checkpoints
from density import measure_density
from exchanges import attached, measure_lines, measure_picture, measure_trips
from languages import NODE_PACKAGES, measure_languages
from plot import draw
from processes import become_subreaper, end_descendants
from report import rewrite_document
from run import LONG, QUICK, SPARES, TINY, Run
from starts import (
    measure_at_once,
    measure_cold,
    measure_in_a_row,
    measure_starts,
    measure_wall,
)
from targets import judge

PACKAGES = [
    "ipykernel",
    "jupyter_client",
    "jupyter_server",
    "jupyter_kernel_gateway",
    "xeus-python",
    "pyzmq",
    "pandas",
    "bash_kernel",
    "duckdb-kernel",
]
BUSY_LOAD = 0.5

NOTES = [
    "Times are p50 (p99). A client encodes a request before the clock starts and decodes what came "
    "after it has stopped; the clock stops when the reply and the idle status (of REST: the "
    "answer) are here. The same clients serve every subject.",
    "Cellkeep's sessions are sandboxed, all the others are not. Cellkeep's ZeroMQ sockets are "
    "`ipc`, the others' `tcp`, each program's default; all run with their defaults.",
    f'"Cellkeep, {SPARES} spares" is a server with `--prespawn-count {SPARES}` and sessions that '
    "the spares fit; each start finds a spare ready, except where more are asked for at once.",
    "jupyter_server and the kernel gateway have ipykernel behind them. Sessions with packages are "
    "kernels that then import them, where nothing has done that before.",
    "ZeroMQ ping-pong: a request's bytes there and back between two processes; `n×` are multiples "
    "of its median. Bare fork: a Python process that has imported the same packages forks a "
    "child, which answers over a pipe.",
    "A client that acknowledges at once sets TCP_QUICKACK: without it, a server that sends small "
    "messages in a row and has not set TCP_NODELAY waits 40 ms for the client's delayed "
    "acknowledgement.",
    "Nothing running: from the program's start (its server's, then a session's), files in the "
    "page cache.",
    "Memory: bytes per session, summed over the processes that are the session's alone; `server` "
    "is what the server's resident set grew by, per session; `shared` is the PSS of helper "
    "processes that belong to no session. 1 MB is 1,000,000 bytes.",
    "A session at rest: processor time and voluntary context switches of its processes and of its "
    "server's share, a second.",
    "Other languages: a kernel that people use for the language, installed as its registry has it "
    "and not sandboxed, beside Cellkeep's session of that language; the same clients for both.",
    "A checkpoint, a rollback (which discards what it leaves) and branches are requests over REST, timed to "
    "the answer; the session is blocked for a part of that. No peer has them. With unchanged files, and "
    "with `auto: costly`: `n×` is the multiple of a session without, measured in turns.",
    "A client slow to read reads nothing for a while after it asked; what is lost meanwhile is "
    "lost.",
]


def machine() -> str:
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = names[0] if names else platform.processor()
    kernel = platform.release().split("-")[0]
    return f"{os.cpu_count()} × {model}, {memory:.0f} GiB, Linux {kernel}"


def node_version(package: str) -> str:
    file = NODE_PACKAGES / package / "package.json"
    if not file.exists():
        return "not installed"
    return json.loads(file.read_text(encoding="utf-8"))["version"]


def load() -> str:
    return f"{os.getloadavg()[0]:.2f}"


@contextlib.contextmanager
def private_places() -> Iterator[Path]:
    """A folder for all files that the run writes, ours and the peers'. It is removed at the end.

    The peers' own folders are in it, too, so that no user's settings or history take part.
    """
    folder = Path(tempfile.mkdtemp(prefix="ck-bench-"))
    try:
        for name in ("CONFIG", "DATA", "RUNTIME"):
            os.environ[f"JUPYTER_{name}_DIR"] = str(folder / name.lower())
            (folder / name.lower()).mkdir(mode=0o700)
        os.environ["IPYTHONDIR"] = str(folder / "ipython")
        # A session has matplotlib's list of fonts; so has this run, because it does not time the search.
        fonts = Path(sys.prefix) / "share/cellkeep/matplotlib"
        os.environ["MPLCONFIGDIR"] = str(folder / "matplotlib")
        if fonts.is_dir():
            shutil.copytree(fonts, folder / "matplotlib")
        yield folder
    finally:
        shutil.rmtree(folder)


def measure(run: Run) -> None:
    def say(what: str) -> None:
        print(f"    {what}", flush=True)

    say("starts from nothing")
    measure_cold(run)
    with run.serving():
        say("session starts")
        measure_starts(run)
        measure_in_a_row(run)
        measure_wall(run)
        say("many at once")
        measure_at_once(run)
        with attached(run) as clients:
            say("round trips")
            measure_trips(run, clients)
            say("printed lines")
            measure_lines(run, clients)
            say("pictures")
            measure_picture(run, clients)
        say("checkpoints and branches")
        measure_checkpoints(run)
        say("other languages")
        measure_languages(run)
    say("many that stay")
    measure_density(run)


def write(run: Run, results: Path) -> None:
    report = run.report
    results.mkdir(parents=True, exist_ok=True)
    (results / "report.md").write_text(report.markdown(), encoding="utf-8")
    (results / "report.json").write_text(json.dumps(report.json(), indent=1), encoding="utf-8")
    draw(report, results)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("--cellkeep", type=Path, required=True, help="the program")
    parser.add_argument("--results", type=Path, required=True, help="the folder of the reports")
    parser.add_argument("--document", type=Path, help="put the table between this file's marks")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", dest="form", action="store_const", const=QUICK, default=LONG)
    form.add_argument("--tiny", dest="form", action="store_const", const=TINY)
    return parser.parse_args()


def end(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    options = parsed()
    signal.signal(signal.SIGTERM, end)
    become_subreaper()
    gc.disable()  # between turns it is collected
    left: list[str] = []
    try:
        with private_places() as folder:
            run = Run(options.form, options.cellkeep, folder)
            about = run.report.about
            about["machine"], about["load_at_start"] = machine(), load()
            about["date"] = datetime.date.today().isoformat()
            about["cellkeep"] = run.cellkeep.version()
            versions = {name: importlib.metadata.version(name) for name in PACKAGES}
            versions["tslab"] = node_version("tslab")
            versions["Python"] = platform.python_version()
            about["peers"] = ", ".join(f"{name} {found}" for name, found in versions.items())
            flag = "" if options.form is LONG else f" --{options.form.name}"
            about["command"] = f"./scripts/bench{flag}"
            run.report.notes = list(NOTES)
            if float(about["load_at_start"]) > BUSY_LOAD:
                run.report.notes.append("The machine was not idle when the run began.")
            try:
                run.cellkeep.make_image()
                measure(run)
            finally:
                # A second Ctrl-C must not keep us from cleaning up after the first.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                left = end_descendants()
            about["load_at_end"] = load()
    except KeyboardInterrupt:
        print("interrupted; nothing is written", file=sys.stderr)
        return 130
    judge(run.report)
    write(run, options.results)
    if options.document:
        rewrite_document(options.document, run.report)
    print("\n" + "\n".join(run.report.summary()), flush=True)
    for error in [*run.report.errors, *(f"left running: {name}" for name in left)]:
        print(f"failed: {error}", file=sys.stderr)
    print(f"\nWritten: {os.path.relpath(options.results / 'report.md')}", flush=True)
    return 1 if run.report.errors or left else 0


if __name__ == "__main__":
    sys.exit(main())
