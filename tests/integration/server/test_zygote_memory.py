# SPDX-License-Identifier: Apache-2.0
"""The memory of a zygote, as its forks find it."""

import mmap
import os
from pathlib import Path

import pytest

from harness import LEAN
from modes import ModeServer
from zygotes import zygotes_of

HUGE = 2 << 20
MADV_COLLAPSE = 25  # madvise(2), Linux 6.1


def host_has_huge_pages() -> bool:
    """This host makes huge pages of memory when it is asked to."""
    memory = mmap.mmap(-1, 2 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b"x" * len(memory))
    try:
        memory.madvise(MADV_COLLAPSE)
    except OSError:
        return False
    finally:
        memory.close()
    return True


def huge_kilobytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages:"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at what a session's user is")
def test_a_zygote_has_huge_pages_where_the_host_has_them(mode: str) -> None:
    with ModeServer(mode, *LEAN) as server:
        server.wait_until_ready()
        zygotes = zygotes_of(server)
        assert zygotes
        for zygote in zygotes:
            assert (huge_kilobytes(zygote.pid) > 0) == host_has_huge_pages()


def mappings_of(pid: int) -> list[tuple[int, int, str]]:
    """Where each begins and ends, and its rights."""
    lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    return [
        (*(int(part, 16) for part in line.split()[0].split("-")), line.split()[1]) for line in lines
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at what a session's user is")
def test_the_objects_of_python_lie_side_by_side(mode: str) -> None:
    with ModeServer(mode, *LEAN) as server:
        server.wait_until_ready()
        (zygote,) = zygotes_of(server)
        mappings = mappings_of(zygote.pid)
    # A range of addresses, of which the first part is in use.
    sizes = [
        used[1] - used[0]
        for used, free in zip(mappings, mappings[1:])
        if (used[2], free[2]) == ("rw-p", "---p")
        and used[0] % HUGE == 0
        and used[1] == free[0]
        and free[1] - used[0] == 256 << 20
    ]
    assert len(sizes) == 1 and sizes[0] >= 2 * HUGE, mappings


def test_code_may_bound_its_own_addresses(mode: str) -> None:
    """As evaluators of generated code do: what they allow was meant for the memory that code uses."""
    code = """
import multiprocessing, resource, threading

def use(pipe):
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    objects = [str(number) for number in range(3_000_000)]
    thread = threading.Thread(target=objects.reverse)
    thread.start(); thread.join()
    pipe.send((len(objects), len(bytearray(256 << 20))))

ours, theirs = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=use, args=(theirs,))
process.start()
theirs.close()
got = ours.recv()
process.join()
got, process.exitcode
"""
    with ModeServer(mode, *LEAN) as server:
        session = server.create(limits={"memory_mb": 2048})
        result = session.execute(code)
        assert result["result"]["text/plain"] == f"(({3_000_000}, {256 << 20}), 0)", result
        assert session.delete() == 204
