# SPDX-License-Identifier: Apache-2.0
"""Clients whose machine is gone: no FIN, no RST, no answer to anything. They live in a network
namespace of their own, whose only link is then taken down, so that no packet of theirs arrives.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import psutil
from faults import LATER_SECONDS, head_of, served_meanwhile
from harness import TOKEN, Server, wait_until
from table import Table, milliseconds

from cellkeep import AsyncClient, AsyncSession

#: kHttpStreamStallMax (protocol/limits.hpp): how long a client may acknowledge nothing.
STALL_SECONDS = 30
#: The program inside: it sends each request on its own connection, and never reads the answers.
INSIDE = """
import json, socket, sys, threading
host, port, requests = json.load(sys.stdin)
held = [socket.create_connection((host, port), timeout=30) for _ in requests]
for connection, request in zip(held, requests):
    connection.sendall(bytes.fromhex(request))
print("sent", flush=True)
threading.Event().wait()
"""
LOOP = "import threading\nwhile True: threading.Event().wait(0.05)"


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def machine_apart(address: str, peer: str) -> Iterator[list[str]]:
    """A network namespace that only a veth pair joins to ours; yields the command that runs a program in
    it. The pair goes with the namespace, and the namespace with its last process."""
    name = f"ckl{os.getpid()}"
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo apart; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin and holder.stdout
    try:
        assert holder.stdout.readline() == b"apart\n"
        inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "up0", "netns", str(holder.pid))
        run("ip", "address", "add", f"{address}/30", "dev", name)
        run("ip", "link", "set", name, "up")
        run(*inside, "ip", "address", "add", f"{peer}/30", "dev", "up0")
        run(*inside, "ip", "link", "set", "up0", "up")
        yield inside
    finally:
        subprocess.run(["ip", "link", "delete", name], check=False)  # the namespace may be late
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()


def connections_to(server: Server, peer: str) -> int:
    """The number of TCP connections to this peer that the kernel still keeps for the server."""
    return sum(
        bool(one.raddr) and one.raddr.ip == peer
        for one in psutil.Process(server.process.pid).net_connections(kind="tcp")
    )


def requests_of(client: AsyncClient, host: str, sessions: list[AsyncSession]) -> list[str]:
    """Half of the requests stream, half wait for the whole answer; all set on_disconnect to interrupt."""
    body = json.dumps({"code": LOOP, "on_disconnect": "interrupt"}).encode()
    more = ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    forms = ("text/event-stream", "application/json")
    ours = urlsplit(client.target.url).netloc.encode()
    made = []
    for number, session in enumerate(sessions):
        path = f"/v1/sessions/{session.id}/executions"
        head = head_of(client, "POST", path, f"Accept: {forms[number % 2]}", *more)
        made.append((head.replace(ours, host.encode()) + body).hex())
    return made


async def phases(sessions: list[AsyncSession]) -> list[tuple[str, str | None]]:
    lists = [[one async for one in session.executions()] for session in sessions]
    return [(one.phase, one.status) for listed in lists for one in listed]


async def until_all(sessions: list[AsyncSession], wanted: tuple[str, str | None], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (seen := await phases(sessions)) != [wanted] * len(sessions):
        assert time.monotonic() < deadline, seen
        await asyncio.sleep(0.5)


async def vanish_together(
    table: Table, server: Server, count: int, inside: list[str], address: str, peer: str
) -> None:
    began = time.monotonic()
    # The address the record names is ours; the other one is in what the server says at its start.
    found = re.search(rf"http://{re.escape(address)}:(\d+)", server.output())
    assert found, server.output()
    async with AsyncClient(server.url, TOKEN, timeout=120) as client:
        sessions = [await client.create(limits={"wall_ms": 300_000}) for _ in range(count)]
        honest = await client.create()
        requests = requests_of(client, f"{address}:{found[1]}", sessions)
        given = json.dumps([address, int(found[1]), requests])
        process = subprocess.Popen(
            [*inside, sys.executable, "-B", "-c", INSIDE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin and process.stdout
        process.stdin.write(given)
        process.stdin.close()
        assert await asyncio.to_thread(process.stdout.readline) == "sent\n"
        await until_all(sessions, ("running", None), 60)
        before = connections_to(server, peer)
        run(*inside, "ip", "link", "set", "up0", "down")
        process.kill()  # its FINs go nowhere
        process.wait()
        process.stdout.close()
        gone = time.monotonic()
        bound = STALL_SECONDS + LATER_SECONDS
        seconds = await served_meanwhile(
            honest, until_all(sessions, ("finished", "interrupted"), bound)
        )
        took = time.monotonic() - gone
        wait_until(lambda: connections_to(server, peer) == 0, 10, "the lost connections are closed")
    table.add(
        f"{count} clients whose machine is gone without a word",
        f"{before} connections; noticed, and their executions interrupted, after {took:.0f} s; "
        f"{len(seconds)} executions beside them, {milliseconds(seconds)}",
        before == count and took < bound and len(seconds) > 0,
        began,
    )


def lose_peers(table: Table, count: int) -> None:
    began = time.monotonic()
    if os.geteuid() != 0 or shutil.which("ip") is None:
        trial = "clients whose machine is gone without a word"
        table.add(trial, "not tried: it needs root and iproute2", True, began)
        return
    network = f"169.254.{1 + os.getpid() % 250}"
    address, peer = f"{network}.1", f"{network}.2"
    with machine_apart(address, peer) as inside:
        arguments = ("--listen", f"{address}:0", "--allow-host", address)
        with Server("--log-format", "text", *arguments) as server:
            asyncio.run(vanish_together(table, server, count, inside, address, peer))
