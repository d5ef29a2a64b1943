# SPDX-License-Identifier: Apache-2.0
"""PATCH of a session that lives: limits in force at once, metadata, what may not change."""

import pytest

from harness import Server, Session
from modes import has

pytestmark = pytest.mark.both_modes


def patch(server: Server, session: Session, body: dict) -> object:
    return server.request(
        "PATCH",
        session.path,
        json=body,
        headers={"Content-Type": "application/merge-patch+json"},
    )


def assert_refused(session: Session, answer: object, limit: str, value: int) -> None:
    """An rlimit of processes that live cannot be lowered from outside."""
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == f"/limits/{limit}"
    assert session.fetch()["limits"][limit] == value


def test_a_lower_limit_is_in_force_at_once(server: Server, session: Session) -> None:
    changed = patch(server, session, {"limits": {"wall_ms": 500}})
    assert changed.status_code == 200, changed.text
    assert changed.json()["limits"]["wall_ms"] == 500
    assert session.execute("while True: pass")["status"] == "timeout"
    assert patch(server, session, {"limits": {"wall_ms": 501}}).status_code == 422


def test_memory_goes_down_live_or_not_at_all(server: Server, session: Session) -> None:
    session.execute("block = bytearray(b'x') * (200 << 20)")
    refused = patch(server, session, {"limits": {"memory_mb": 128, "wall_ms": 1000}})
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == "/limits/memory_mb"
    assert session.fetch()["limits"]["memory_mb"] == 512
    assert session.fetch()["limits"]["wall_ms"] == 30000  # all or nothing
    session.execute("del block")
    changed = patch(server, session, {"limits": {"memory_mb": 200}})
    if not has(session, "memory_limit"):
        assert_refused(session, changed, "memory_mb", 512)
        return
    assert changed.status_code == 200, changed.text
    assert session.execute("block = bytearray(b'x') * (300 << 20)")["status"] in ("oom", "error")


def test_processes_and_cpu_go_down_live(server: Server, session: Session) -> None:
    before = session.fetch()["limits"]["processes"]
    changed = patch(server, session, {"limits": {"processes": 16, "cpu_cores": 0.5}})
    if not has(session, "process_limit"):
        assert_refused(session, changed, "processes", before)
        return
    assert changed.status_code == 200, changed.text
    done = session.execute(
        "import subprocess\nrunning = []\n"
        "try:\n"
        "    for _ in range(40): running.append(subprocess.Popen(['sleep', '100']))\n"
        "except OSError:\n    pass\n"
        "count = len(running)\n"
        "for one in running: one.kill(); one.wait()\n"
        "count"
    )
    assert done["status"] == "ok", done
    assert int(done["result"]["text/plain"]) < 17


def test_metadata_is_merged(server: Server) -> None:
    session = server.create(metadata={"a": 1, "b": {"c": 2}})
    changed = patch(server, session, {"metadata": {"a": None, "b": {"d": 3}}})
    assert changed.json()["metadata"] == {"b": {"c": 2, "d": 3}}
    listed = server.get("/v1/sessions?metadata.a=1").json()["sessions"]
    assert session.info["id"] not in [one["id"] for one in listed]
    assert session.delete() == 204


def test_a_session_without_network_gets_none(server: Server, session: Session) -> None:
    refused = patch(server, session, {"network": {"mode": "allowlist", "allow": ["example.org"]}})
    assert refused.status_code in (409, 422), refused.text
