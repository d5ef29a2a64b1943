# SPDX-License-Identifier: Apache-2.0
"""Clients that misbehave: vanish, fall silent, dribble, or just stay. While they do, others are served.
"""

import asyncio
import resource
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from harness import Server
from table import Table, milliseconds

from cellkeep import AsyncClient, AsyncSession, Client

#: kHttpHeadTimeout and kHttpBodyTimeout (protocol/limits.hpp), and how much later it may be on a busy
#: machine.
HEAD_SECONDS = 15
BODY_SECONDS = 30
LATER_SECONDS = 30


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def head_of(client: AsyncClient | Client, method: str, path: str, *more: str) -> bytes:
    host = urlsplit(client.target.url).netloc
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"Authorization: Bearer {client.target.token}", *more, "", ""]
    return "\r\n".join(lines).encode()


def reset(connection: socket.socket) -> None:
    """Closes without a FIN: the peer gets a RST (socket(7), SO_LINGER)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


async def served_meanwhile(
    session: AsyncSession, until: Callable[[], bool] | Awaitable[object]
) -> list[float]:
    """Runs executions of a well-behaved client until the end of `until`; returns their times."""
    task = asyncio.ensure_future(until) if not callable(until) else None
    seconds: list[float] = []
    while not (task.done() if task else until()):  # type: ignore[operator]
        began = time.monotonic()
        result = await session.run("1 + 1")
        assert result.text == "2", result.report()
        seconds.append(time.monotonic() - began)
        await asyncio.sleep(0.2)
    if task:
        await task
    return seconds


async def vanish(table: Table, client: AsyncClient, count: int) -> None:
    """Clients that vanish in the middle of a stream; their executions end, and can be read."""
    began = time.monotonic()
    async with await client.create() as session:
        body = b'{"code": "import threading\\nfor n in range(20):\\n print(n, flush=True)\\n'
        body += b' threading.Event().wait(0.01)"}'
        head = head_of(
            client,
            "POST",
            f"/v1/sessions/{session.id}/executions",
            "Accept: text/event-stream",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        for _ in range(count):
            connection = connect(client.target.url)
            connection.sendall(head + body)
            await asyncio.to_thread(connection.recv, 1)
            reset(connection)
        await session.run("'last in the queue'", check=True)
        ended = [one async for one in session.executions()]
        good = [one.status for one in ended].count("ok")
    table.add(
        f"{count} clients vanish in the middle of a stream",
        f"{good} of {count + 1} executions ended ok",
        good == count + 1,
        began,
    )


async def never_read(table: Table, client: AsyncClient, count: int) -> None:
    """Clients that ask for much and never read, beside a well-behaved one."""
    began = time.monotonic()
    async with await client.create() as loud, await client.create() as session:
        await loud.upload(b"x" * (16 << 20), "big.bin")
        head = head_of(client, "GET", f"/v1/sessions/{loud.id}/files/big.bin")
        silent = [connect(client.target.url) for _ in range(count)]
        for connection in silent:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(head)
        deadline = time.monotonic() + 5
        seconds = await served_meanwhile(session, lambda: time.monotonic() > deadline)
        for connection in silent:
            reset(connection)
    table.add(
        f"{count} clients that ask for much and never read",
        f"{len(seconds)} executions beside them, {milliseconds(seconds)}",
        len(seconds) > 0,
        began,
    )


async def closed_after(connection: socket.socket, dribble: bytes, seconds: float) -> float:
    """Sends a byte now and then until the server closes; returns how long that took."""
    began = time.monotonic()
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    while time.monotonic() < began + seconds:
        try:
            if dribble:
                await loop.sock_sendall(connection, dribble)
            received = await asyncio.wait_for(loop.sock_recv(connection, 4096), 1)
        except TimeoutError:
            continue
        except OSError:
            break
        if not received:
            break
    took = time.monotonic() - began
    connection.close()
    return took


async def slow_loris(table: Table, client: AsyncClient, heads: int, bodies: int) -> None:
    began = time.monotonic()
    async with await client.create() as session:
        opened = []
        for _ in range(heads):
            connection = connect(client.target.url)
            connection.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
            opened.append(closed_after(connection, b"x", HEAD_SECONDS + LATER_SECONDS))
        path = f"/v1/sessions/{session.id}/files/never.bin"
        for _ in range(bodies):
            connection = connect(client.target.url)
            connection.sendall(head_of(client, "PUT", path, "Content-Length: 1000000") + b"begun")
            opened.append(closed_after(connection, b"", BODY_SECONDS + LATER_SECONDS))
        closing = asyncio.gather(*opened)
        seconds = await served_meanwhile(session, closing)
        took = closing.result()
        left = [entry.path for entry in await session.files()]
    head_took, body_took = took[:heads], took[heads:]
    table.add(
        f"{heads} slow-loris heads, {bodies} bodies that stop",
        f"heads cut after {max(head_took):.0f} s, bodies after {max(body_took):.0f} s; "
        f"{len(seconds)} executions beside them, {milliseconds(seconds)}; {len(left)} files left",
        max(head_took) < HEAD_SECONDS + LATER_SECONDS
        and max(body_took) < BODY_SECONDS + LATER_SECONDS
        and not left,
        began,
    )


async def idle(table: Table, server: Server, client: AsyncClient, count: int) -> None:
    """Connections that do nothing. Their number is bounded by the file descriptors of both sides."""
    began = time.monotonic()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 500)), hard))
    import psutil

    memory = psutil.Process(server.process.pid).memory_info
    before = memory().rss
    async with await client.create() as session:
        connections = [connect(client.target.url) for _ in range(count)]
        deadline = time.monotonic() + 5
        seconds = await served_meanwhile(session, lambda: time.monotonic() > deadline)
        grown = memory().rss - before
        # Each still gets an answer: the first, some in between, the last.
        alive = 0
        for connection in connections[:: max(1, count // 20)]:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            alive += (await asyncio.to_thread(connection.recv, 12)) == b"HTTP/1.1 200"
        asked = len(connections[:: max(1, count // 20)])
        for connection in connections:
            connection.close()
    table.add(
        f"{count} idle connections",
        f"{grown / count / 1024:.1f} KiB each; {alive} of {asked} tried still answer; "
        f"{len(seconds)} executions beside them, {milliseconds(seconds)}",
        alive == asked and len(seconds) > 0,
        began,
    )
