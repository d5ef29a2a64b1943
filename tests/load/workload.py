# SPDX-License-Identifier: Apache-2.0
"""Many sessions, many clients, every answer checked.

Each execution carries a token of its own. Its answer must hold that token and nothing of another's; at
the end each session's own list must hold every token that was answered, once. Blocking, streamed and
submitted executions are mixed, and every tenth client drops its connection and asks again with the same
idempotency key.
"""

import ast
import asyncio
import random
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field

import httpx
from table import Table, milliseconds

from cellkeep import AsyncClient, AsyncSession

CREATED_AT_ONCE = 8


@dataclass
class Tally:
    answered: dict[str, list[int]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


async def create_sessions(client: AsyncClient, count: int) -> list[AsyncSession]:
    gate = asyncio.Semaphore(CREATED_AT_ONCE)

    async def one(number: int) -> AsyncSession:
        async with gate:
            session = await client.create(
                limits={"memory_mb": 256, "disk_mb": 16, "consecutive_failures": 0},
                metadata={"load": str(number)},
            )
            await session.run("seen = []", check=True)
            return session

    return list(await asyncio.gather(*(one(number) for number in range(count))))


async def abandoned(client: AsyncClient, session: AsyncSession, code: str, key: str) -> None:
    """Sends a request, and closes the connection before the answer."""
    async with httpx.AsyncClient(
        base_url=client.target.url, headers={"Authorization": f"Bearer {client.target.token}"}
    ) as stranger:
        try:
            await stranger.post(
                f"/v1/sessions/{session.id}/executions",
                json={"code": code, "idempotency_key": key},
                timeout=httpx.Timeout(30.0, read=0.005),
            )
        except httpx.TimeoutException:
            return  # As meant: the connection is closed on the server's unfinished answer.


async def ask(client: AsyncClient, session: AsyncSession, token: int, tally: Tally) -> None:
    code = f"seen.append({token}); print('token', {token}); {token} * 2"
    key = uuid.uuid4().hex
    kind = random.choice(["whole", "whole", "streamed", "submitted"])
    left = random.random() < 0.1
    if left:
        await abandoned(client, session, code, key)
    began = time.monotonic()
    if kind == "whole":
        result = await session.run(code, idempotency_key=key)
    elif kind == "streamed":
        result = await session.stream(code, idempotency_key=key).result()
    else:
        result = await (await session.submit(code, idempotency_key=key)).result()
    tally.seconds.append(time.monotonic() - began)
    tally.kinds[kind + (" after leaving" if left else "")] += 1
    if result.stdout != f"token {token}\n" or result.text != f"token {token}\n{token * 2}":
        tally.wrong.append(f"{session.id} {token}: {result.status} {result.text!r}")
    tally.answered.setdefault(session.id, []).append(token)


async def client_of(
    client: AsyncClient, sessions: list[AsyncSession], until: float, number: int, tally: Tally
) -> None:
    count = 0
    while time.monotonic() < until:
        count += 1
        try:
            await ask(client, random.choice(sessions), number * 1_000_000 + count, tally)
        except Exception as error:  # Counted: every one is a lost answer.
            tally.errors[f"{type(error).__name__}: {error}"[:120]] += 1


async def settle(sessions: list[AsyncSession], tally: Tally) -> tuple[int, int]:
    """The number of answers that no session knows of, and of executions that ran twice."""
    lost = doubled = 0
    for session in sessions:
        result = await session.run("print(seen)", check=True)
        seen = Counter(ast.literal_eval(result.stdout))
        doubled += sum(times - 1 for times in seen.values())
        lost += sum(1 for token in tally.answered.get(session.id, []) if token not in seen)
    return lost, doubled


async def run_load(
    table: Table, url: str, token: str, sessions_count: int, clients: int, seconds: float
) -> None:
    async with AsyncClient(url, token, timeout=120) as client:
        began = time.monotonic()
        sessions = await create_sessions(client, sessions_count)
        table.add("sessions created", f"{len(sessions)}", len(sessions) == sessions_count, began)
        began = time.monotonic()
        tally = Tally()
        await asyncio.gather(
            *(client_of(client, sessions, began + seconds, n + 1, tally) for n in range(clients))
        )
        took = time.monotonic() - began
        lost, doubled = await settle(sessions, tally)
        count = sum(tally.kinds.values())
        good = count > 0 and not (tally.wrong or tally.errors or lost or doubled)
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(tally.kinds.items()))
        table.add(
            f"{clients} clients on {sessions_count} sessions",
            f"{count} answers ({count / took:.0f}/s; {kinds}); {len(tally.wrong)} wrong, "
            f"{lost + sum(tally.errors.values())} lost, {doubled} doubled; {milliseconds(tally.seconds)}",
            good,
            began,
        )
        for what in [*tally.wrong[:5], *(f"{n} x {e}" for e, n in tally.errors.most_common(5))]:
            print("   ", what, flush=True)
        began = time.monotonic()
        await asyncio.gather(*(session.close() for session in sessions))
        ours = {session.id for session in sessions}
        rest = [info async for info in client.sessions() if info.id in ours]
        table.add("sessions ended", f"{len(rest)} left", not rest, began)
