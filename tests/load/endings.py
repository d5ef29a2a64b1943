# SPDX-License-Identifier: Apache-2.0
"""A server in trouble: its state directory is full, it is stopped under load, it is killed. What ran
ends or is reported as interrupted; nothing is left; the next server says what was interrupted."""

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil
from harness import TOKEN, Server, cgroups_of, wait_until
from table import Table, listed

from cellkeep import AsyncClient, CellkeepError, Client

#: What an execution may have come to that the server's end stopped.
STOPPED = {"interrupted", "dead"}
LOOP = "import threading\nfor n in range(100000): threading.Event().wait(0.05)"


def disk_full(table: Table) -> None:
    """The state directory on a small file system of its own, filled to the last byte."""
    began = time.monotonic()
    trial = "state directory full"
    if os.geteuid() != 0:
        table.add(trial, "not tried: mounting needs root", True, began)
        return
    with tempfile.TemporaryDirectory(prefix="ck-full-") as folder:
        size = ["-o", "size=4m,mode=700"]
        subprocess.run(["mount", "-t", "tmpfs", *size, "cellfull", folder], check=True)
        try:
            fill_and_work(table, trial, Path(folder), began)
        finally:
            subprocess.run(["umount", folder], check=False)


def fill_and_work(table: Table, trial: str, folder: Path, began: float) -> None:
    server = Server("--log-format", "text")
    server.state_dir = folder
    with server, Client(server.url, TOKEN) as client, client.create() as session:
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as full:
            try:
                while True:
                    full.write(b"x" * 4096)
            except OSError:
                pass  # ENOSPC: as meant.
        answers = [session.run(f"{n} + 1") for n in range(20)]
        # The store is written by a thread of its own, in batches.
        wait_until(lambda: "store" in server.get("/healthz").json(), 30, "/healthz says it is full")
        health = server.get("/healthz").json()
        filler.unlink()
        after = session.run("'after'")
        good = all(one.text == str(n + 1) for n, one in enumerate(answers)) and after.ok
        good = good and health["status"] == "degraded"
        table.add(
            trial,
            f"{sum(one.ok for one in answers)} of 20 executions ok, health then: "
            f"{health['status']} ({health['store']})",
            good,
            began,
        )


@dataclass
class Told:
    """What became of one execution, as its client heard it on its stream."""

    path: str
    #: A status; or, where the connection was cut before one came, the name of the client's error.
    heard: str
    cut_off: bool


async def begin(client: AsyncClient, count: int) -> list[asyncio.Task[Told]]:
    """Starts `count` executions and waits until they run; each task returns how its execution ended."""
    sessions = [await client.create() for _ in range(count)]
    heard = [asyncio.Event() for _ in sessions]

    async def one(number: int) -> Told:
        session = sessions[number]
        events = session.stream("print('on', flush=True)\n" + LOOP)
        path = ""
        try:
            async for event in events:
                if event.type == "started":
                    path = f"/v1/sessions/{session.id}/executions/{event.data['id']}"
                if event.type == "stdout":
                    heard[number].set()
        except (CellkeepError, OSError) as error:
            return Told(path, type(error).__name__, True)
        return Told(path, (await events.result()).status, False)

    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    for event in heard:
        await asyncio.wait_for(event.wait(), 120)
    return tasks


def next_on(server: Server) -> Server:
    """Another server on the state that this one left."""
    second = Server("--log-format", "text")
    second.folder.cleanup()
    second.folder, second.state_dir = server.folder, server.state_dir
    return second


def stored_status(server: Server, path: str) -> str:
    """What the store says became of an execution of a server before this one."""
    answer = server.get(path).json()
    if answer.get("phase") != "finished":
        return f"not finished: {answer}"
    return f"{answer['status']} ({(answer.get('error') or {}).get('kind')})"


def terminate(table: Table, count: int) -> None:
    """SIGTERM while executions run: each client soon gets the end on its stream, or finds it in the
    store of the next server, and never two different ends; the server ends with status 0."""
    began = time.monotonic()
    server = Server("--log-format", "text").start()

    async def main() -> list[Told]:
        async with AsyncClient(server.url, TOKEN, retries=1) as client:
            tasks = await begin(client, count)
            server.process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*tasks)

    children = server.children()
    told = asyncio.run(main())
    status = server.process.wait(60)
    seconds = time.monotonic() - began
    server.assert_nothing_left(children)
    server.log.close()
    with next_on(server) as second:
        stored = [stored_status(second, one.path) for one in told]
    heard = Counter(one.heard for one in told)
    # The loop never ends: the server stopped it, and both the stream and the store say so.
    good = [
        after.partition(" ")[0] in STOPPED and (one.cut_off or after.startswith(one.heard + " "))
        for one, after in zip(told, stored, strict=True)
    ]
    table.add(
        f"SIGTERM under {count} running executions",
        f"exit status {status} after {seconds:.0f} s; the streams ended with: {listed(heard)}; "
        f"after the restart: {listed(Counter(stored))}",
        status == 0 and len(good) == count and all(good) and seconds < 300,
        began,
    )


def kill(table: Table, count: int) -> None:
    """SIGKILL: no process survives it; a new server on the same state says what was interrupted."""
    began = time.monotonic()
    server = Server("--log-format", "text").start()
    with Client(server.url, TOKEN) as client:
        sessions = [client.create() for _ in range(count)]
        running = [session.submit("print('on', flush=True)\n" + LOOP) for session in sessions]
        for one in running:
            next(event for event in one.events() if event.type == "stdout")
        # A killed server may lose the rows of its last tenth of a second. Who asks the store is
        # answered when everything before the question is written.
        assert server.get(f"/v1/sessions/{sessions[0].id}/executions/exe_unknown").status_code == 404
        children = server.children()
        server.process.kill()
        server.process.wait()
    wait_until(
        lambda: not any(alive(child) for child in children), 30, "the killed server's processes ended"
    )
    orphans = sum(alive(child) for child in children)
    server.log.close()
    with next_on(server) as second:
        told = Counter(
            stored_status(second, f"/v1/sessions/{session.id}/executions/{one.id}")
            for session, one in zip(sessions, running, strict=True)
        )
    leftovers = cgroups_of(server.process.pid)
    table.add(
        f"SIGKILL under {count} running executions",
        f"{len(children)} processes, {orphans} orphans, {len(leftovers)} cgroups left; after the restart: "
        f"{listed(told)}",
        orphans == 0 and not leftovers and told == Counter({"interrupted (server_died)": count}),
        began,
    )


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
