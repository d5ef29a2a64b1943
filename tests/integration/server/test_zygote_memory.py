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
