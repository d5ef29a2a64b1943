# SPDX-License-Identifier: Apache-2.0
"""What the server remembers beyond a session's life and its own: after a deletion, after SIGKILL."""

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LEAN, Server, cgroups_of, wait_until


# Every test has servers of its own; none of them is about what its sessions see of the system.
HOST_FILES = (*LEAN, "--image", "host", "--allow-degraded", "private_image")


def stored(server: Server) -> list[tuple[str, str]]:
    """Id and status of each execution, as another process sees the file."""
    path = server.state_dir / "history.db"
    if not path.exists():
        return []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT id, status FROM executions ORDER BY number").fetchall()
    except sqlite3.OperationalError:
        return []  # it is being made
    finally:
        connection.close()


def restart(server: Server) -> None:
    """Another server in the same state directory."""
    server.log.close()
    server.start()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB of its own."""
    mount = ("mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "small", str(tmp_path))
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    yield tmp_path
    subprocess.run(("umount", "--lazy", str(tmp_path)), check=True)


def fill(disk: Path) -> Path:
    """The file that takes what is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass  # it is full
    assert os.statvfs(disk).f_bavail == 0
    return filler


def test_a_full_disk_costs_rows_and_no_answers(small_disk: Path) -> None:
    server = Server(*HOST_FILES)
    server.state_dir = small_disk / "state"
    with server:
        session = server.create()

        def health() -> str:
            return server.get("/healthz").json()["status"]

        def status_after_a_run() -> str:
            # Each run writes a row, and the row shows whether the disk is full.
            assert session.execute("1", reasoning="r" * 10_000)["status"] == "ok"
            return health()

        assert session.value("1") == "1"
        assert health() == "ok"
        filler = fill(small_disk)
        wait_until(lambda: status_after_a_run() == "degraded", 60, "degraded on a full disk")
        assert server.get(f"{session.path}/executions").status_code == 200
        filler.unlink()
        wait_until(lambda: status_after_a_run() == "ok", 60, "ok when there is room again")
        kept = session.execute("'kept'")
        wait_until(lambda: (kept["id"], "ok") in stored(server), 60, "the store is written again")
        assert "records are lost" in server.output()
        assert "it can be written again" in server.output()


def test_executions_of_a_deleted_session_stay_readable() -> None:
    with Server(*HOST_FILES) as server:
        session = server.create(metadata={"task": "T-1"})
        done = session.execute(
            "1/0", reasoning="divide, with token ghp_" + "a1B2" * 9, metadata={"step": 3}
        )
        path = f"{session.path}/executions/{done['id']}"
        assert session.delete() == 204
        gone = server.get(session.path)
        assert gone.status_code == 410, gone.text
        assert gone.json()["type"] == "/problems/session-ended"
        assert gone.json()["reason"] == "requested"
        kept = server.get(path).json()
        assert kept["stored"] is True and kept["status"] == "error"
        assert kept["error"]["name"] == "ZeroDivisionError"
        assert kept["metadata"] == {"step": 3}
        assert "ghp_" not in kept["reasoning"] and kept["reasoning"].startswith("divide")
        listed = server.get(session.path + "/executions").json()
        assert [one["id"] for one in listed["executions"]] == [done["id"]]
        assert server.get("/v1/sessions/ses_0/executions").status_code == 404
        assert (server.state_dir / "history.db").stat().st_mode & 0o777 == 0o600


def test_after_sigkill_the_next_server_says_what_was_interrupted() -> None:
    server = Server(*HOST_FILES)
    server.start()
    try:
        session = server.create()
        done = session.execute("1")
        running = server.request(
            "POST",
            session.path + "/executions",
            json={"code": "import time; time.sleep(600)", "reasoning": "wait"},
            headers={"Prefer": "respond-async"},
        ).json()["id"]
        rows = [(done["id"], "ok"), (running, "")]
        wait_until(lambda: stored(server) == rows, 60, f"the store has {rows}")
        old = server.process
        children = server.children()
        old.send_signal(signal.SIGKILL)
        old.wait(60)
        wait_until(lambda: not any(one.is_running() for one in children), 60, "no orphan")
        restart(server)
        assert cgroups_of(old.pid) == []
        kept = server.get(f"{session.path}/executions/{running}").json()
        assert kept["status"] == "interrupted"
        assert kept["error"]["kind"] == "server_died"
        assert kept["reasoning"] == "wait"
        assert server.get(f"{session.path}/executions/{done['id']}").json()["status"] == "ok"
        gone = server.get(session.path)
        assert gone.status_code == 410 and gone.json()["reason"] == "server_died"
        server.stop()
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        server.http.close()
        server.log.close()
        server.folder.cleanup()


def test_a_damaged_store_is_put_aside_and_no_store_is_no_file() -> None:
    server = Server(*HOST_FILES)
    server.state_dir.mkdir(mode=0o700)
    path = server.state_dir / "history.db"
    path.write_bytes(b"this is no database" * 1000)
    with server:
        assert server.create().value("1") == "1"
        assert Path(f"{path}.damaged").exists()
        assert "put aside" in server.output()
    with Server("--no-store", *HOST_FILES) as without:
        session = without.create()
        session.execute("1")
        assert session.delete() == 204
        assert without.get(session.path).status_code == 404
        assert not (without.state_dir / "history.db").exists()
