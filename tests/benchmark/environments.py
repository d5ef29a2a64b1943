# SPDX-License-Identifier: Apache-2.0
"""What named environments cost: the time to make one, its size, and the start of a session in it. Prints the
table of docs/environments.md. The requirements come from the public index.

    build/environments/tools/bin/python -B tests/benchmark/environments.py [NAME…]
"""

import datetime
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "integration/server"))
from harness import Server, Session, wait_until  # noqa: E402
from projects import BUILT, PROJECTS, REFUSED, build_arguments  # noqa: E402
from wheels import Environments  # noqa: E402

STARTS = 10


def make(environments: Environments, name: str, requirements: list[str], built: str) -> float:
    before = time.monotonic()
    made = environments.create(name, *requirements, more=build_arguments(built))
    assert made.returncode == 0, made.stderr
    return time.monotonic() - before


def start(server: Server, name: str, code: str) -> float:
    """Milliseconds from the request for a session to the first result, which needs the packages."""
    before = time.monotonic()
    answer = server.post("/v1/sessions", {"environment": name})
    assert answer.status_code == 201, answer.text
    session = Session(server, answer.json())
    first = session.execute("1")
    took = (time.monotonic() - before) * 1000
    assert first["status"] == "ok", first
    assert session.execute(code)["status"] == "ok"
    assert session.delete() == 204
    return took


def is_warm(server: Server, name: str) -> bool:
    answer = server.post("/v1/sessions", {"environment": name})
    session = Session(server, answer.json())
    warm = session.value("'IPython.core.completer' in __import__('sys').modules") == "True"
    session.delete()
    return warm


def measure(environments: Environments, server: Server, name: str) -> str:
    requirements, code, _ = PROJECTS[name]
    built = BUILT.get(name, "")
    first = make(environments, name, requirements, built)
    shown = json.loads(environments.run("show", name, "--json").stdout)
    kernel = f"python3-{name}"
    wait_until(lambda: kernel in server.get("/api/kernelspecs").json()["kernelspecs"], 120, "it is offered")
    cold = start(server, name, code)
    wait_until(lambda: is_warm(server, name), 120, "it is warm")
    warm = statistics.median(start(server, name, code) for _ in range(STARTS))
    asked = ", ".join(f"`{one}`" for one in requirements) + (", built from source" if built else "")
    return (
        f"| {asked} | {len(shown['packages'])} | {first:.1f} s "
        f"| {shown['bytes'] / 2**20:.0f} MiB | {cold:.0f} ms | {warm:.1f} ms |"
    )


def refuse(environments: Environments, name: str) -> str:
    requirements, _ = REFUSED[name]
    before = time.monotonic()
    refused = environments.create(name, *requirements)
    assert refused.returncode == 1, refused.stderr
    took = time.monotonic() - before
    lines = [line.strip(" ×╰─▶│") for line in refused.stderr.splitlines()]
    why = next(line for line in lines if re.search("Because|not found|no usable", line))
    return f"| {', '.join(f'`{one}`' for one in requirements)} | {took:.1f} s | {why} |"


def machine() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} × {model[1] if model else '?'}; load average {load:.1f}; {datetime.date.today()}"


def main() -> None:
    chosen = sys.argv[1:] or [*PROJECTS, *REFUSED]
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        environments = Environments(Path(folder), "")
        running = Server("--log-format", "text")
        running.environment = environments.variables
        with running as server:
            print("| requirements | packages | made in | files | first session | warm, p50 |")
            print("|---|---|---|---|---|---|")
            for name in (one for one in chosen if one in PROJECTS):
                print(measure(environments, server, name), flush=True)
            for name in (one for one in chosen if one in REFUSED):
                print(refuse(environments, name), flush=True)
    print(machine(), flush=True)


if __name__ == "__main__":
    main()
