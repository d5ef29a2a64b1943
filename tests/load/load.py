# SPDX-License-Identifier: Apache-2.0
"""The load and fault run; see scripts/load. Prints a table and ends with 0 if everything held."""

import argparse
import asyncio
import contextlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "integration/server"))

from endings import disk_full, kill, terminate
from fairness import share_fairly
from faults import idle, never_read, slow_loris, vanish
from harness import TOKEN, Server, cgroups_of, wait_until
from health import HealthWatch
from lost_peers import lose_peers
from replacements import replace_under_load
from table import Table, head
from workload import run_load

from cellkeep import AsyncClient


async def misbehave(table: Table, server: Server, options: argparse.Namespace) -> None:
    async with AsyncClient(server.url, TOKEN, timeout=120) as client:
        await vanish(table, client, options.vanishing)
        await never_read(table, client, options.silent)
        await idle(table, server, client, options.connections)
        if not options.short:
            await slow_loris(table, client, 50, 50)


async def short_load(table: Table, server: Server, options: argparse.Namespace) -> None:
    """The trials of slow clients and of lost peers mostly wait: the load runs beside them."""
    async with AsyncClient(server.url, TOKEN, timeout=120) as client:
        await asyncio.gather(
            slow_loris(table, client, 5, 5),
            run_load(
                table, server.url, TOKEN, options.sessions, options.clients, options.seconds
            ),
            asyncio.to_thread(lose_peers, table, 4),
        )


def check_nothing_left(table: Table, server: Server) -> None:
    """Checks the running server: its sessions have ended, and nothing of them is left. Only the
    server's zygote stays: one sandbox with two processes."""
    began = time.monotonic()

    def left() -> tuple[int, int, int]:
        sandboxes = {
            entry.name
            for folder in cgroups_of(server.process.pid)
            for entry in Path(folder).glob("session-*")
        }
        sessions = server.get("/v1/sessions").json()["sessions"]
        return len(sessions), len(sandboxes), len(server.children())

    def held(sessions: int, sandboxes: int, processes: int) -> bool:
        return sessions == 0 and sandboxes <= 1 and processes <= 2

    # The last ones may still be on their way out.
    with contextlib.suppress(AssertionError):
        wait_until(lambda: held(*left()), 30, "the last sessions to go")
    now = left()
    table.add(
        "what is left of the sessions",
        "{} sessions, {} sandboxes, {} processes (a zygote has one and two)".format(*now),
        held(*now),
        began,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/load")
    parser.add_argument("--short", action="store_true", help="the form that the tests run")
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--connections", type=int)
    options = parser.parse_args()
    short = {"sessions": 8, "clients": 8, "seconds": 10.0, "connections": 1000}
    long = {"sessions": 200, "clients": 50, "seconds": 300.0, "connections": 10_000}
    for name, value in (short if options.short else long).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.vanishing = 5 if options.short else 50
    options.silent = 10 if options.short else 100
    few = 2 if options.short else 20

    print(head(), flush=True)
    table = Table()
    most = str(options.sessions + 16)
    with Server(
        "--log-format", "text", "--max-sessions", most, "--prespawn-count", "0"
    ) as server:
        with HealthWatch(server.url) as health:
            if options.short:
                asyncio.run(short_load(table, server, options))
            else:
                asyncio.run(
                    run_load(
                        table, server.url, TOKEN, options.sessions, options.clients, options.seconds
                    )
                )
                lose_peers(table, 20)
            asyncio.run(misbehave(table, server, options))
        health.report(table)
        check_nothing_left(table, server)
    share_fairly(table, 0.1 if options.short else 1.0, timed=not options.short)
    replace_under_load(table, options.sessions, options.clients, 2 if options.short else 10)
    disk_full(table)
    terminate(table, few)
    kill(table, few)
    print("everything held" if table.good else "NOT everything held")
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
