# SPDX-License-Identifier: Apache-2.0
"""The server's program is replaced again and again under load: no answer is wrong, lost or doubled,
and no session is."""

import asyncio
import time

from harness import TOKEN, Server, wait_until
from table import Table, milliseconds
from upgrades import Asked
from workload import Tally, client_of, create_sessions, settle

from cellkeep import AsyncClient

#: Longer than the replacements take; they end the load.
SECONDS_MAX = 3600.0


def replace_often(server: Server, times: int, tally: Tally, apart: int) -> list[float]:
    """How long each took, from the signal until the other program serves; so many answers apart."""
    seconds = []

    def work_on() -> None:
        enough = sum(tally.kinds.values()) + apart
        wait_until(lambda: sum(tally.kinds.values()) >= enough, 120, "clients get their answers")

    work_on()
    for _ in range(times):
        began = time.monotonic()
        Asked(server).wait_until_served()
        seconds.append(time.monotonic() - began)
        work_on()
    return seconds


async def load_and_replace(
    table: Table, server: Server, sessions_count: int, clients: int, times: int
) -> None:
    trial = f"{times} upgrades under {clients} clients on {sessions_count} sessions"
    async with AsyncClient(server.url, TOKEN, timeout=120) as client:
        sessions = await create_sessions(client, sessions_count)
        began = time.monotonic()
        tally = Tally()
        until = began + SECONDS_MAX
        load = [
            asyncio.create_task(client_of(client, sessions, until, n + 1, tally))
            for n in range(clients)
        ]
        seconds = await asyncio.to_thread(replace_often, server, times, tally, 4 * clients)
        for task in load:
            task.cancel()
        await asyncio.gather(*load, return_exceptions=True)
        lost, doubled = await settle(sessions, tally)
        left = {info.id async for info in client.sessions()}
        gone = sum(session.id not in left for session in sessions)
        count = sum(tally.kinds.values())
        good = count > 0 and not (tally.wrong or tally.errors or lost or doubled or gone)
        table.add(
            trial,
            f"{count} answers; {len(tally.wrong)} wrong, {lost + sum(tally.errors.values())} lost, "
            f"{doubled} doubled; {gone} sessions gone; upgrades: {milliseconds(seconds)}; "
            f"answers: {milliseconds(tally.seconds)}",
            good,
            began,
        )
        for what in [*tally.wrong[:5], *(f"{n} x {e}" for e, n in tally.errors.most_common(5))]:
            print("   ", what, flush=True)
        await asyncio.gather(*(session.close() for session in sessions))


def replace_under_load(table: Table, sessions: int, clients: int, times: int) -> None:
    with Server("--max-sessions", str(sessions + 16), "--prespawn-count", "0") as server:
        asyncio.run(load_and_replace(table, server, sessions, clients, times))
