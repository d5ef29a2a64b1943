# SPDX-License-Identifier: Apache-2.0
"""What one session or one client costs the others: for each kind of attack, how long /healthz and a
neighbour's 1+1 take meanwhile, and what memory the server keeps.

Also a program of its own: python fairness.py [--short] [--only NAME] [--binary PATH] prints only this table.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "integration/server"))

from client_attacks import ClientAttack, client_attacks
from harness import TOKEN, Server
from table import Table, head, percentile

PAUSE_SECONDS = 0.005
QUIET_SECONDS = 2.0
HEALTH_SECONDS_MAX = 0.1
NEIGHBOUR_SECONDS_MAX = 0.05
NEIGHBOUR_FACTOR_MAX = 3.0
KEPT_BYTES_MAX = 100 << 20


@dataclass
class Attack:
    name: str
    code: str
    sessions: int = 1  # that run it at the same time


def attacks(size: float) -> list[Attack]:
    """The attacks; size scales them, 1 is the full size."""
    return [
        Attack(
            "one display of many small dicts",
            "from IPython.display import display\n"
            "row = {'text': 'x' * 38}\n"
            f"display({{'application/json': [row] * {int(900_000 * size)}}}, raw=True)",
        ),
        Attack("one long error message", f"raise ValueError('x' * {int(40_000_000 * size)})"),
        Attack("one long printed string", f"print('x' * {int(110_000_000 * size)})"),
        Attack(
            "a display updated in a loop",
            "from IPython.display import display\n"
            "for i in range(1900): display(i, display_id=f'd{i}')\n"
            "handle = display('begin', display_id=True)\n"
            f"for i in range({int(20_000 * size)}): handle.update(i)",
        ),
        Attack(
            "a print loop",
            "import sys\n"
            f"for i in range({int(100_000 * size)}):\n"
            "    print('a line of output', i)\n"
            "    sys.stdout.flush()",
        ),
        Attack(
            "many small displays",
            "from IPython.display import display\n"
            f"for i in range({int(100_000 * size)}): display(i)",
        ),
        # The kernel's link is descriptor 3; a frame follows its length (protocol/PROTOCOL.md).
        Attack(
            "four frames that never end",
            "import os, time\n"
            f"announced = {int(127_000_000 * size)}\n"
            "left = memoryview(announced.to_bytes(4, 'little') + bytes(announced - 1))\n"
            "while left: left = left[os.write(3, left[:1 << 16]) :]\n"
            "time.sleep(100)",
            sessions=4,
        ),
        Attack(
            "four displays of many small dicts",
            "from IPython.display import display\n"
            "row = {'text': 'x' * 38}\n"
            f"display({{'application/json': [row] * {int(900_000 * size)}}}, raw=True)",
            sessions=4,
        ),
    ]


# A process of its own asks: it reads the answer and drops it, and takes no time of this one.
ASK = """
import http.client, sys
host, path, token, body = sys.argv[1:]
connection = http.client.HTTPConnection(host, timeout=600)
connection.request("POST", path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
answer = connection.getresponse()
size = 0
while piece := answer.read(1 << 16):
    size += len(piece)
print(answer.status, size)
"""


class Asker:
    """Asks the same thing again and again, on a connection of its own, while it is used."""

    def __init__(self, host: str, method: str, path: str, body: str = "") -> None:
        self.host, self.method, self.path, self.body = host, method, path, body
        self.seconds: list[float] = []
        self.wrong: list[str] = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        connection = http.client.HTTPConnection(self.host, timeout=120)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        while not self.stopped.is_set():
            began = time.monotonic()
            connection.request(self.method, self.path, self.body or None, headers)
            answer = connection.getresponse()
            text = answer.read()
            self.seconds.append(time.monotonic() - began)
            if answer.status != 200:
                self.wrong.append(f"{answer.status} {text[:100]!r}")
            self.stopped.wait(PAUSE_SECONDS)
        connection.close()

    def __enter__(self) -> "Asker":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Trial:
    work: Callable[[], str]  # returns what was answered
    end: Callable[[], None]
    holds: Callable[[str], bool]  # whether that answer is right


class Fairness:
    """A server, a neighbour session in it, and the measurements of both."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.host = urlsplit(server.url).netloc
        self.neighbour = self.create()

    def create(self) -> str:
        limits = {"memory_mb": 2048, "wall_ms": 120_000, "cpu_ms": 120_000, "consecutive_failures": 0}
        answer = self.server.post("/v1/sessions", {"limits": limits})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def measure(self, work: Callable[[], str]) -> tuple[Asker, Asker, str]:
        health = Asker(self.host, "GET", "/healthz")
        one = Asker(
            self.host, "POST", f"/v1/sessions/{self.neighbour}/executions", json.dumps({"code": "1+1"})
        )
        with health, one:
            said = work()
        return health, one, said

    def quiet(self) -> float:
        """The neighbour's p50 when nothing else goes on."""
        pause = threading.Event()
        _, one, _ = self.measure(lambda: str(pause.wait(QUIET_SECONDS)))
        return percentile(one.seconds, 0.5)

    def run(self, table: Table, attack: Attack, quiet: float, timed: bool) -> None:
        sessions = [self.create() for _ in range(attack.sessions)]

        def ask(session: str) -> subprocess.Popen[str]:
            path = f"/v1/sessions/{session}/executions"
            asked = [self.host, path, TOKEN, json.dumps({"code": attack.code})]
            return subprocess.Popen(
                [sys.executable, "-c", ASK, *asked],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        def work() -> str:
            said = [one.communicate() for one in [ask(session) for session in sessions]]
            return ", ".join(out.strip() or error.strip()[-200:] for out, error in said)

        def end() -> None:
            for session in sessions:
                self.server.request("DELETE", f"/v1/sessions/{session}")

        def holds(said: str) -> bool:
            return all(one.startswith("200 ") for one in said.split(", "))

        self.judge(table, attack.name, Trial(work, end, holds), quiet if timed else None)

    def run_client(self, table: Table, attack: ClientAttack, quiet: float, timed: bool) -> None:
        trial = Trial(lambda: attack.run(self.server), lambda: None, attack.holds)
        self.judge(table, attack.name, trial, quiet if timed else None)

    def judge(self, table: Table, name: str, trial: Trial, quiet: float | None) -> None:
        """quiet: the neighbour's p50 without the attack; None: times and memory are not judged."""
        began = time.monotonic()
        before = resident_bytes(self.server.process.pid)
        health, one, said = self.measure(trial.work)
        live = resident_bytes(self.server.process.pid)
        trial.end()
        kept = resident_bytes(self.server.process.pid)
        worst = max(health.seconds)
        p50, p99 = percentile(one.seconds, 0.5), percentile(one.seconds, 0.99)
        beside = f" (quiet {1000 * quiet:.1f})" if quiet is not None else ""
        table.add(
            f"fairness: {name}",
            f"/healthz max {1000 * worst:.0f} ms; neighbour's 1+1 p50 {1000 * p50:.1f} ms"
            f"{beside}, p99 {1000 * p99:.0f} ms, max {1000 * max(one.seconds):.0f} ms; "
            f"memory +{(live - before) >> 20} MB, +{(kept - before) >> 20} MB after its end; "
            f"answered {said}",
            not health.wrong
            and not one.wrong
            and trial.holds(said)
            and (
                quiet is None
                or (
                    worst <= HEALTH_SECONDS_MAX
                    and p50 <= NEIGHBOUR_FACTOR_MAX * quiet
                    and p99 <= NEIGHBOUR_SECONDS_MAX
                    and kept - before <= KEPT_BYTES_MAX
                )
            ),
            began,
        )


def share_fairly(table: Table, size: float, timed: bool, only: str = "") -> None:
    """timed: times and memory must stay in their bounds, too. A machine that is busy with other work,
    as in the tests, cannot show that. only: a part of the names of the attacks that are tried."""
    with Server("--log-format", "text", "--prespawn-count", "0") as server:
        trial = Fairness(server)
        quiet = trial.quiet()
        for attack in attacks(size):
            if only in attack.name:
                trial.run(table, attack, quiet, timed)
        for client_attack in client_attacks(size):
            if only in client_attack.name:
                trial.run_client(table, client_attack, quiet, timed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="fairness.py")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--binary")
    parser.add_argument("--only", default="", help="a part of the attacks' names")
    options = parser.parse_args()
    if options.binary:
        os.environ["CELLKEEP_BINARY"] = options.binary
    print(head(), flush=True)
    table = Table()
    share_fairly(table, 0.1 if options.short else 1.0, timed=not options.short, only=options.only)
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
