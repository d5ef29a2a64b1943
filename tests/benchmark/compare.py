# SPDX-License-Identifier: Apache-2.0
"""Measures Cellkeep beside ipykernel and writes report.md and report.json.

Everything is interleaved: each round measures every subject once before any is measured again, so
that a busy moment of the machine falls on all of them alike.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from subjects import Cellkeep, Ipykernel, PingPong

LINES = 100_000
PRINT_LINES = f"for i in range({LINES}): print(i)"


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def percentile(seconds: list[float], share: float) -> float:
    """Nearest rank: the value that `share` of all measurements do not exceed."""
    ordered = sorted(seconds)
    return ordered[max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1)]


def measure_start(cellkeep: Cellkeep, rounds: int) -> dict[str, list[float]]:
    """From nothing to the first result of `1+1`."""
    found: dict[str, list[float]] = {"Cellkeep, sandboxed": [], "ipykernel": []}
    for _ in range(rounds):
        began = time.perf_counter()
        session = cellkeep.create()
        cellkeep.execute(session, "1+1")
        found["Cellkeep, sandboxed"].append(time.perf_counter() - began)
        cellkeep.delete(session)

        began = time.perf_counter()
        kernel = Ipykernel()
        try:
            kernel.first_result()
            found["ipykernel"].append(time.perf_counter() - began)
        finally:
            kernel.close()
    return found


def measure_round_trips(
    cellkeep: Cellkeep, session: str, kernel: Ipykernel, blocks: int, block: int
) -> dict[str, list[float]]:
    """`1+1` in a session that is there already: request sent until reply and idle are both here."""
    ours, theirs, bare = cellkeep.attach(session), kernel.attach(), PingPong()
    subjects: dict[str, Callable[[], object]] = {
        "Cellkeep, ZeroMQ": lambda: ours.execute("1+1"),
        "Cellkeep, REST": lambda: cellkeep.execute(session, "1+1"),
        "ipykernel, ZeroMQ": lambda: theirs.execute("1+1"),
        "bare ZeroMQ ping-pong": bare.once,
    }
    found: dict[str, list[float]] = {name: [] for name in subjects}
    try:
        ours.wait_until_subscribed()
        theirs.wait_until_subscribed()
        for action in subjects.values():  # The first call of each is not a round trip but a start.
            action()
        for _ in range(blocks):
            for name, action in subjects.items():
                found[name] += [timed(action) for _ in range(block)]
    finally:
        for peer in (ours, theirs, bare):
            peer.close()
    return found


def measure_lines(
    cellkeep: Cellkeep, session: str, kernel: Ipykernel, rounds: int
) -> dict[str, list[tuple[float, int]]]:
    """Seconds until LINES printed lines and idle are here, and how many of the lines came."""
    peers = {"Cellkeep, ZeroMQ": cellkeep.attach(session), "ipykernel, ZeroMQ": kernel.attach()}
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in peers}
    try:
        for peer in peers.values():
            peer.wait_until_subscribed()
        for _ in range(rounds):
            for name, peer in peers.items():
                answer = peer.execute(PRINT_LINES)
                found[name].append((answer["seconds"], answer["stdout"].count("\n")))
    finally:
        for peer in peers.values():
            peer.close()
    return found


def machine() -> dict[str, str]:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "machine": f"{os.cpu_count()} cores, {model}, Linux {platform.release()}",
        "ipykernel": importlib.metadata.version("ipykernel"),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds * 1000:,.0f} ms"


def spread_table(title: str, found: dict[str, list[float]]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        "| | p50 | p99 | worst | measurements |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, seconds in found.items():
        cells = [percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds)]
        lines.append(f"| {name} | {' | '.join(map(milliseconds, cells))} | {len(seconds):,} |")
    return [*lines, ""]


def lines_table(found: dict[str, list[tuple[float, int]]]) -> list[str]:
    lines = [
        f"## {LINES:,} printed lines",
        "",
        "| | lines a second, median | delivered |",
        "|---|---:|---:|",
    ]
    for name, runs in found.items():
        seconds, delivered = sorted(runs)[len(runs) // 2][0], min(count for _, count in runs)
        lines.append(f"| {name} | {LINES / seconds:,.0f} | {100 * delivered / LINES:.4g} % |")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cellkeep", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    starts, blocks, prints = (3, 4, 1) if options.quick else (20, 40, 5)

    state = options.results / "state"
    shutil.rmtree(state, ignore_errors=True)
    cellkeep = Cellkeep(options.cellkeep, state)
    try:
        about = {"cellkeep": cellkeep.version(), **machine()}
        print(f"    session start, {starts} rounds", flush=True)
        start = measure_start(cellkeep, starts)
        session, kernel = cellkeep.create(), Ipykernel()
        try:
            print(f"    round trips, {blocks} rounds", flush=True)
            trips = measure_round_trips(cellkeep, session, kernel, blocks, block=50)
            print(f"    {LINES:,} printed lines, {prints} rounds", flush=True)
            lines = measure_lines(cellkeep, session, kernel, prints)
        finally:
            kernel.close()
    finally:
        cellkeep.close()

    report = [
        "# Cellkeep beside ipykernel",
        "",
        f"{about['machine']}; {about['date']}. {about['cellkeep']}; "
        f"ipykernel {about['ipykernel']}, Python {about['python']}. "
        f"One interleaved run of `./scripts/bench"
        f"{' --quick' if options.quick else ''}`.",
        "",
    ]
    report += spread_table("Session start to first result of `1+1`", start)
    report += spread_table("Execute `1+1`: request to reply and idle", trips)
    report += lines_table(lines)
    text = "\n".join(report)
    (options.results / "report.md").write_text(text, encoding="utf-8")
    raw = {"about": about, "start_s": start, "round_trip_s": trips, "lines": lines}
    (options.results / "report.json").write_text(json.dumps(raw, indent=1), encoding="utf-8")
    print(f"\n{text}\nWritten: {os.path.relpath(options.results / 'report.md')}", flush=True)


if __name__ == "__main__":
    main()
