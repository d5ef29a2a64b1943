# SPDX-License-Identifier: Apache-2.0
"""A server in trouble: its state directory is full, it is told to stop under load, it is killed. What
ran is finished or told; nothing is left; the next server says what was interrupted."""

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil
from harness import TOKEN, Server, wait_until
from table import Table

from cellkeep import AsyncClient, CellkeepError, Client

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
        health = server.get("/healthz").json()
        filler.unlink()
        after = session.run("'after'")
        good = all(one.text == str(n + 1) for n, one in enumerate(answers)) and after.ok
        told = health["status"] + (f" ({health['store']})" if "store" in health else "")
        table.add(
            trial,
            f"{sum(one.ok for one in answers)} of 20 executions ok, health then: {told}",
            good,
            began,
        )


async def begin(client: AsyncClient, count: int) -> list[asyncio.Task[str]]:
    """So many executions, running; what each comes to."""
    sessions = [await client.create() for _ in range(count)]
    heard = [asyncio.Event() for _ in sessions]

    async def one(number: int) -> str:
        events = sessions[number].stream("print('on', flush=True)\n" + LOOP)
        try:
            async for event in events:
                if event.type == "stdout":
                    heard[number].set()
        except (CellkeepError, OSError) as error:
            return type(error).__name__
        return (await events.result()).status

    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    for event in heard:
        await asyncio.wait_for(event.wait(), 120)
    return tasks


def terminate(table: Table, count: int) -> None:
    """SIGTERM while executions run: each client is told, soon, and the server ends with status 0."""
    began = time.monotonic()
    server = Server("--log-format", "text").start()

    async def main() -> Counter[str]:
        async with AsyncClient(server.url, TOKEN, retries=1) as client:
            tasks = await begin(client, count)
            server.process.send_signal(signal.SIGTERM)
            return Counter(await asyncio.gather(*tasks))

    children = server.children()
    told = asyncio.run(main())
    status = server.process.wait(60)
    seconds = time.monotonic() - began
    server.assert_nothing_left(children)
    server.log.close()
    server.folder.cleanup()
    table.add(
        f"SIGTERM under {count} running executions",
        f"exit status {status}; clients were told: "
        + ", ".join(f"{number} x {what}" for what, number in told.items()),
        status == 0 and sum(told.values()) == count and "ok" not in told and seconds < 300,
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
        children = server.children()
        server.process.kill()
        server.process.wait()
    wait_until(
        lambda: not any(alive(child) for child in children), 30, "the killed server's processes ended"
    )
    orphans = sum(alive(child) for child in children)
    server.log.close()
    told: Counter[str] = Counter()
    second = Server("--log-format", "text")
    second.folder.cleanup()
    second.folder, second.state_dir = server.folder, server.state_dir
    with second, Client(second.url, TOKEN) as client:
        for session, one in zip(sessions, running, strict=True):
            answer = second.get(f"/v1/sessions/{session.id}/executions/{one.id}")
            error = answer.json().get("error") or {}
            told[f"{answer.json().get('status')} ({error.get('kind')})"] += 1
    leftovers = [path for path in Path("/sys/fs/cgroup").rglob(f"cellkeep-{server.process.pid}-*")]
    table.add(
        f"SIGKILL under {count} running executions",
        f"{len(children)} processes, {orphans} orphans, {len(leftovers)} cgroups left; after the restart: "
        + ", ".join(f"{number} x {what}" for what, number in told.items()),
        orphans == 0 and told == Counter({"interrupted (server_died)": count}),
        began,
    )


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
