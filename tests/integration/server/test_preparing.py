# SPDX-License-Identifier: Apache-2.0
"""A server whose environment image is still to be made: it listens, and says so."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator

import psutil
import pytest
import requests

from harness import READY_SECONDS_MAX, Server, binary, wait_until
from held_store import HeldStore, held_store

# An image has to be verified, which is a gigabyte, and copied where the two stores are on different file systems.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def store() -> Iterator[HeldStore]:
    with held_store() as held:
        yield held


class Preparing(Server):
    """Use as a context: it listens, and has not said READY."""

    def __init__(self, store: HeldStore, *arguments: str) -> None:
        super().__init__("--no-zygotes", "--prespawn-count", "0", *arguments)
        self.environment |= store.environment

    def start(self) -> "Preparing":
        self.launch()
        record = self.state_dir / "server.json"
        wait_until(record.exists, READY_SECONDS_MAX, "the server listens")
        self.attach()
        return self

    def state(self) -> str:
        return self.get("/healthz").json()["state"]


def control(info: dict) -> dict:
    return next(c for c in info["isolation"]["controls"] if c["name"] == "private_image")


def wait_for_builder(store: HeldStore, besides: int = 0) -> psutil.Process:
    def others() -> list[psutil.Process]:
        return [process for process in store.builders() if process.pid != besides]

    wait_until(lambda: bool(others()), READY_SECONDS_MAX, "an image is being made")
    return others()[0]


def test_it_listens_at_once_and_sessions_wait_for_the_image(store: HeldStore) -> None:
    with Preparing(store) as server:
        assert server.state() == "preparing"
        answers: list[requests.Response] = []
        asking = threading.Thread(
            target=lambda: answers.append(server.post_apart("/v1/sessions", {}))
        )
        asking.start()
        builder = wait_for_builder(store)
        assert os.getsid(builder.pid) == builder.pid  # a Ctrl-C for the server is not for it
        assert '"event":"preparing"' in server.output().replace(" ", "")
        assert server.get("/v1/sessions").status_code == 200
        digest = store.add_image()
        store.let_go()
        server.await_ready()
        asking.join()
        assert answers[0].status_code in (201, 503)
        session = server.create()
        assert session.info["environment"]["digest"] == digest
        assert control(session.info)["state"] == "applied"
        assert session.value("6 * 7") == "42"
        wait_until(lambda: server.state() == "ready", READY_SECONDS_MAX, "it is ready")


def test_a_session_that_waits_too_long_is_refused_and_a_stop_leaves_the_build(
    store: HeldStore,
) -> None:
    with Preparing(store) as server:
        refused = server.post("/v1/sessions")
        assert refused.status_code == 503
        assert refused.json()["type"] == "/problems/preparing"
        assert int(refused.headers["Retry-After"]) > 0
        builder = wait_for_builder(store)
        server.process.terminate()
        assert server.process.wait(20) == 0
        assert os.read(server.ready_fd, 10) == b""
        os.close(server.ready_fd)
        assert builder.is_running() and builder.status() != psutil.STATUS_ZOMBIE
        server.launch()  # the next one waits for the same build
        store.add_image()
        store.let_go()
        server.await_ready()
        server.attach()
        assert server.create().value("6 * 7") == "42"


def test_the_program_for_agents_answers_before_the_image_is_there(store: HeldStore) -> None:
    """Agents' programs give a server that they start 10 to 30 seconds for its first answer."""
    program = subprocess.Popen(
        [binary(), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **store.environment},
    )

    def ask(method: str, params: dict) -> None:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        program.stdin.write(json.dumps(message).encode() + b"\n")
        program.stdin.flush()

    def hear() -> dict:
        return json.loads(program.stdout.readline())["result"]

    run = {"name": "run_code", "arguments": {"code": "6 * 7"}}
    try:
        ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
        assert hear()["serverInfo"]["name"] == "cellkeep"
        builder = wait_for_builder(store)
        assert os.getsid(builder.pid) == builder.pid
        ask("tools/list", {})
        assert {tool["name"] for tool in hear()["tools"]} >= {"run_code", "branch"}
        ask("tools/call", run)
        refused = hear()["structuredContent"]
        assert refused["error"]["kind"] == "preparing", refused
        ask("tools/call", run)
        store.add_image()
        store.let_go()
        hear()  # it waits for the image, and may be refused again
        ask("tools/call", run)
        assert hear()["structuredContent"]["result"] == "42"
    finally:
        program.stdin.close()
        assert program.wait(30) == 0


def test_a_build_that_is_killed_is_begun_again(store: HeldStore) -> None:
    with Preparing(store) as server:
        first = wait_for_builder(store)
        first.kill()
        second = wait_for_builder(store, besides=first.pid)
        assert second.pid != first.pid
        store.add_image()
        store.let_go()
        server.await_ready()
        assert server.create().value("6 * 7") == "42"


def test_a_stale_image_serves_until_the_new_one_is_there(store: HeldStore) -> None:
    digest = store.add_image(stale=True)
    with Preparing(store, "--while-preparing", "stale") as server:
        server.await_ready()
        old = server.create()
        assert old.info["environment"]["digest"] == digest
        assert server.state() != "preparing"
        wait_for_builder(store)
        store.add_image()
        store.let_go()
        wait_until(
            lambda: '"prepared"' in server.output(), READY_SECONDS_MAX, "the new image is there"
        )
        assert old.value("6 * 7") == "42"
        assert server.create().value("6 * 7") == "42"


def test_the_hosts_files_serve_if_that_was_accepted(store: HeldStore) -> None:
    accepted = ("--while-preparing", "host", "--allow-degraded", "private_image")
    with Preparing(store, *accepted) as server:
        server.await_ready()
        old = server.create()
        assert control(old.info)["state"] == "absent"
        wait_for_builder(store)
        store.add_image()
        store.let_go()
        wait_until(
            lambda: '"prepared"' in server.output(), READY_SECONDS_MAX, "the image is there"
        )
        assert control(server.create().info)["state"] == "applied"
        assert old.value("6 * 7") == "42"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--while-preparing", "host"), "--allow-degraded=private_image"),
        (("--while-preparing", "never"), "is not wait, stale or host"),
        (("--while-preparing", ""), "is not wait, stale or host"),
    ],
)
def test_a_wrong_choice_is_refused(
    store: HeldStore, tmp_path: object, arguments: tuple[str, ...], words: str
) -> None:
    done = subprocess.run(
        [binary(), "serve", "--listen", "127.0.0.1:0", "--state-dir", f"{tmp_path}/s", *arguments],
        env={**os.environ, **store.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert words in done.stderr


def test_a_build_that_cannot_be_made_ends_the_server_with_the_reason(store: HeldStore) -> None:
    (store.path / "build-lock").unlink()
    (store.path / "build-lock").symlink_to("/dev/null")
    server = Preparing(store)
    server.launch()
    try:
        assert server.process.wait(READY_SECONDS_MAX) == 1
        assert os.read(server.ready_fd, 10) == b""
        assert "control private_image is absent" in server.output()
        assert "--allow-degraded=private_image" in server.output()
    finally:
        os.close(server.ready_fd)
        server.http.close()
        server.log.close()
        server.folder.cleanup()


def test_without_an_image_the_host_serves_if_that_was_accepted(store: HeldStore) -> None:
    (store.path / "build-lock").unlink()
    (store.path / "build-lock").symlink_to("/dev/null")
    with Preparing(store, "--allow-degraded", "private_image") as server:
        server.await_ready()
        session = server.create()
        assert control(session.info)["state"] == "absent"
        assert session.value("6 * 7") == "42"
