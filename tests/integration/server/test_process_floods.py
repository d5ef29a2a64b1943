# SPDX-License-Identifier: Apache-2.0
"""Processes that flood, hoard and hide: another session goes on, and nothing of them is left."""

import psutil
import pytest

from harness import Server, Session, wait_until
from processes import (
    INPUT_BYTES_MAX,
    OUTPUT_BYTES_MAX,
    PATIENCE_SECONDS,
    ask,
    events,
    finish,
    look,
    post,
    python,
    remove,
    start,
    wait_for_text,
)

pytestmark = pytest.mark.both_modes

FLOOD = "import os\nblock = b'x' * (1 << 16)\nwhile True: os.write(1, block)"


def resident_bytes(server: Server) -> int:
    return psutil.Process(server.process.pid).memory_info().rss


def test_floods_cost_the_neighbour_nothing_and_the_server_little(server: Server, session: Session) -> None:
    neighbour = server.create()
    before = resident_bytes(server)
    floods = [python(session, FLOOD) for _ in range(4)]
    for flood in floods:
        wait_until(
            lambda flood=flood: look(session, flood)["output"]["bytes"] > 4 * OUTPUT_BYTES_MAX,
            PATIENCE_SECONDS,
            "the flood is on",
        )
    for turn in range(20):
        assert neighbour.value(f"{turn} * 2") == str(turn * 2)
    assert resident_bytes(server) - before < 64 << 20
    seen = look(session, floods[0])["output"]
    assert 0 < seen["bytes"] - seen["kept_from"] <= OUTPUT_BYTES_MAX
    # A reader that begins at the start gets a gap for the bytes that are no longer kept.
    first = next(iter(events(session, floods[0])))
    assert first["type"] == "gap" and first["bytes"] == first["to"] - first["from"] > 0
    assert session.value("6 * 7") == "42"
    for flood in floods:
        assert remove(session, flood) == 204
    assert neighbour.delete() == 204


def test_all_of_a_flood_that_ends_is_counted(session: Session) -> None:
    size = 8 * OUTPUT_BYTES_MAX
    done = finish(session, python(session, f"import os\nfor _ in range({size >> 12}): os.write(1, b'y' * 4096)"))
    assert len(done.stdout) + done.missed == size == done.process["output"]["bytes"]


def test_a_process_that_never_reads_costs_its_bound(session: Session) -> None:
    process = start(session, "sleep", "infinity", stdin="open")
    half = "x" * (INPUT_BYTES_MAX // 2)
    codes = [post(session, process, "stdin", text=half).status_code for _ in range(4)]
    assert codes[0] == 204 and codes[-1] == 429
    assert post(session, process, "signal", name="TERM").status_code == 204
    assert finish(session, process).end["signal"] == "SIGTERM"


def test_a_thousand_processes_end_at_the_sessions_limit(server: Server, session: Session) -> None:
    neighbour = server.create()
    bomb = python(
        session,
        "import os, time\nmade = 0\n"
        "for _ in range(1000):\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(1e6)\n"
        "        made += 1\n"
        "    except OSError: break\n"
        "print('made', made, flush=True); time.sleep(1e6)",
    )
    wait_for_text(session, bomb, "made")
    assert neighbour.value("1 + 1") == "2"
    assert remove(session, bomb) == 204
    wait_until(lambda: ask(session, "true").status_code == 201, PATIENCE_SECONDS, "room again")
    assert neighbour.delete() == 204


def test_what_hides_from_its_group_ends_with_the_session(server: Server) -> None:
    session = server.create()
    process = python(
        session,
        "import os, signal, time\n"
        "for s in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        while True:\n"
        "            os.write(1, b'still here\\n'); time.sleep(0.01)\n"
        "    os._exit(0)\n"
        "print('gone', flush=True)",
    )
    done = finish(session, process)
    assert done.end["exit_code"] == 0
    # It holds the output that nobody reads any more, and costs a process of the session's.
    assert session.value("1 + 1") == "2"
    own = {"CELLKEEP_SESSION_ID": session.info["id"]}.items()

    def lives() -> bool:
        for each in psutil.Process(server.process.pid).children(recursive=True):
            try:
                if own <= each.environ().items():
                    return True
            except psutil.Error:
                continue
        return False

    assert lives()
    assert session.delete() == 204
    wait_until(lambda: not lives(), PATIENCE_SECONDS, "nothing of it is left")
