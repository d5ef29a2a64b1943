# SPDX-License-Identifier: Apache-2.0
"""Processes: starting servers so that none outlives us, waiting for quiet, and what they cost."""

import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

STOP_SECONDS_MAX = 60.0
READY_SECONDS_MAX = 60.0
# Quiet: in a window, what is watched used less processor time than this.
QUIET_WINDOW_SECONDS = 0.05
QUIET_CPU_SECONDS_MAX = 0.005
QUIET_SECONDS_MAX = 10.0
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """What our children leave behind becomes our child, so that it can be found and ended."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def end_descendants() -> list[str]:
    """Ends the processes that are left and returns their names; empty if all ended before."""
    left = psutil.Process().children(recursive=True)
    # A zombie has ended, but its parent did not reap it: only that is left to do.
    names = []
    for process in left:
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                names.append(f"{process.pid} {process.name()}")
            process.kill()
        except psutil.NoSuchProcess:
            continue  # it ended meanwhile
    psutil.wait_procs(left, timeout=STOP_SECONDS_MAX)
    return names


def start_server(command: list[str], log: Path, **more: object) -> subprocess.Popen:
    """Starts it in a process session of its own: Ctrl-C reaches only us, and we stop the server."""
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **more,
        )


def stop_server(server: subprocess.Popen) -> None:
    server.terminate()
    try:
        server.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
        raise RuntimeError(f"SIGTERM did not stop {server.args[0]}") from None


def wait_until(condition: Callable[[], bool], server: subprocess.Popen, log: Path) -> None:
    """Waits until `condition` holds, for a server that does not say when it is ready."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    pause = threading.Event()
    while not condition():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{server.args[0]} did not start: {tail(log)}")
        pause.wait(0.005)


def tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-500:].strip()


def descendants(pid: int) -> set[int]:
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time of all threads, in seconds, as precise as the kernel counts it."""
    total = 0
    for pid in pids:
        for task in _tasks(pid):
            total += _read_number(task / "schedstat")
    return total / 1e9


def wake_ups(pids: Iterable[int]) -> int:
    """How often their threads have waited and been woken up."""
    total = 0
    for pid in pids:
        for task in _tasks(pid):
            for line in _read(task / "status").splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    total += int(line.split()[1])
    return total


def ensure_running(pids: Iterable[int]) -> None:
    """Raises if one has ended: it would cost nothing and make the figures too good."""
    for pid in pids:
        try:
            status = psutil.Process(pid).status()
        except psutil.NoSuchProcess:
            status = "gone"
        if status in ("gone", psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            raise RuntimeError(f"process {pid} of a session has ended ({status})")


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []  # it has ended


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has ended


def _read_number(path: Path) -> int:
    return int((_read(path) or "0").split()[0])


def settle(pids: Callable[[], Iterable[int]]) -> None:
    """Waits until these processes are at rest, so that the late work of one subject does not delay the
    next."""
    pause, deadline = threading.Event(), time.monotonic() + QUIET_SECONDS_MAX
    before = cpu_seconds(pids())
    while time.monotonic() < deadline:
        pause.wait(QUIET_WINDOW_SECONDS)
        now = cpu_seconds(pids())
        if abs(now - before) < QUIET_CPU_SECONDS_MAX:
            return
        before = now


@dataclass
class Memory:
    """Bytes, summed over processes."""

    pss: int = 0
    private_dirty: int = 0
    rss: int = 0


def memory_of(pids: Iterable[int]) -> Memory:
    found = Memory()
    for pid in pids:
        for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
            name, _, rest = line.partition(":")
            if name == "Pss":
                found.pss += int(rest.split()[0]) * 1024
            elif name == "Private_Dirty":
                found.private_dirty += int(rest.split()[0]) * 1024
            elif name == "Rss":
                found.rss += int(rest.split()[0]) * 1024
    return found


def by_pid_namespace(pids: Iterable[int]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for pid in pids:
        try:
            found.setdefault(os.readlink(f"/proc/{pid}/ns/pid"), set()).add(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return found
