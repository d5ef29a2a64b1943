# SPDX-License-Identifier: Apache-2.0
"""What sessions made the server use goes back to the system when they have ended.

All figures are of one server, and compared with each other: no single size is right or wrong.
"""

from pathlib import Path

import pytest
from harness import Server, Session, wait_until

# Of what heavy sessions added, so much may be left some seconds after their end. With an allocator
# that keeps what was freed it is 0.8.
LEFT_MAX = 0.25
HEAVY_SESSIONS = 4
# Text in pieces, and small values of which each is a piece of memory of its own.
HEAVY_CODE = """
from IPython.display import display
for _ in range(40):
    print(("y" * 9_999 + "\\n") * 25, flush=True)
for _ in range(3):
    display({"application/json": [{"k": i, "v": "some text"} for i in range(60_000)]}, raw=True)
"""


def anonymous_bytes(server: Server) -> int:
    """Memory that is in use and is no file's (proc(5), smaps_rollup)."""
    rollup = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text(encoding="ascii")
    line = next(line for line in rollup.splitlines() if line.startswith("Anonymous:"))
    return int(line.split()[1]) * 1024


def has_sanitizer(server: Server) -> bool:
    return "libasan" in Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")


def end(session: Session) -> None:
    assert session.delete() == 204


def test_memory_comes_back_when_heavy_sessions_end() -> None:
    arguments = ("--image", "host", "--allow-degraded", "private_image", "--prespawn-count", "0")
    with Server(*arguments) as server:
        if has_sanitizer(server):
            pytest.skip("a sanitizer's allocator keeps what was freed")
        server.wait_until_ready()
        first = server.create()
        assert first.value("1+1") == "2"
        end(first)
        before = anonymous_bytes(server)
        heavy = [server.create() for _ in range(HEAVY_SESSIONS)]
        for session in heavy:
            result = session.execute(HEAVY_CODE)
            assert result["status"] == "ok", result["error"]
        added = anonymous_bytes(server) - before
        # Otherwise there would be nothing to give back.
        assert added > 16 << 20
        for session in heavy:
            end(session)
        wait_until(
            lambda: anonymous_bytes(server) - before <= LEFT_MAX * added,
            60,
            f"at most {LEFT_MAX:.0%} is left of the {added >> 20} MB that the sessions added",
        )
