# SPDX-License-Identifier: Apache-2.0
"""Servers starting, meeting one another, stopping and dying."""

import json
import os
import signal
import socket
import stat
import subprocess

import psutil
import requests

from harness import LEAN, TOKEN, Client, Server, binary, wait_until


def serve(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """A server that is expected to refuse."""
    return subprocess.run(
        [binary(), "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_record_of_a_server_is_private_and_true() -> None:
    with Server(*LEAN) as server:
        path = server.state_dir / "server.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(server.state_dir.stat().st_mode) == 0o700
        assert server.record["pid"] == server.process.pid
        assert server.record["token"] == TOKEN
        # Output often goes to a log: it names the place of a token that was given, not the token.
        assert "as given by CELLKEEP_TOKEN" in server.output()
        assert TOKEN not in server.output()
        assert server.record["url"].startswith("http://127.0.0.1:")
        assert requests.get(server.url + "/healthz", timeout=30).ok
        document = server.get("/openapi.json").json()
        assert document["openapi"].startswith("3.1")
        assert "/v1/sessions" in document["paths"]


def test_stopping_with_sessions_clients_and_running_code_leaves_nothing() -> None:
    with Server(*LEAN) as server:
        sessions = [server.create() for _ in range(3)]
        client = Client(sessions[0])
        client.kernel.execute("print('begun', flush=True)\nwhile True: pass")
        client.wait_for_output("stream")
        sessions[1].execute("import subprocess\nsubprocess.Popen(['/bin/sleep', '600'])")
        # Leaving the context sends SIGINT and asserts that nothing is left.
        client.close()


def test_sigterm_stops_it_too() -> None:
    server = Server(*LEAN).start()
    server.create()
    children = server.children()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0
    server.assert_nothing_left(children)
    server.log.close()
    server.folder.cleanup()


def test_sigkill_leaves_no_process() -> None:
    server = Server(*LEAN).start()
    session = server.create()
    server.create()
    session.execute("import subprocess, sys\nsubprocess.Popen(['/bin/sleep', '600'])")
    children = server.children()
    assert children
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    # The next one on the same directory starts, and takes away what the dead one left.
    connections = server.state_dir / "connections"
    assert list(connections.iterdir())
    with Server(*LEAN, "--log-format", "text") as second:
        assert second.create().value("1") == "1"
    again = Server(*LEAN)
    again.state_dir = server.state_dir
    with again:
        assert list(connections.iterdir()) == []
        wait_until(lambda: not any(f.exists() for f in server.socket_folders), 5, "sockets swept")
        assert again.create().value("2") == "2"
    server.log.close()
    server.folder.cleanup()


def test_a_second_server_on_the_same_state_directory_is_refused() -> None:
    with Server(*LEAN) as server:
        session = server.create()
        refused = serve("--listen", "127.0.0.1:0", "--state-dir", str(server.state_dir))
        assert refused.returncode == 1
        assert "in use by the server with pid" in refused.stderr
        assert str(server.process.pid) in refused.stderr
        assert "--state-dir" in refused.stderr
        assert session.value("'undisturbed'") == "'undisturbed'"
        assert json.loads((server.state_dir / "server.json").read_text())["pid"] == (
            server.process.pid
        )


def test_two_servers_side_by_side_do_not_know_each_other() -> None:
    with Server(*LEAN) as first, Server(*LEAN) as second:
        one, two = first.create(), second.create()
        assert first.url != second.url
        assert second.get(one.path).status_code == 404
        one.execute("x = 1")
        assert two.execute("x")["error"]["name"] == "NameError"
        second.stop()
        second.start()
        assert one.value("x") == "1"


def test_a_port_that_is_taken_is_said_so() -> None:
    with Server(*LEAN) as state, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = serve(
            "--listen", f"127.0.0.1:{port}", "--state-dir", str(state.state_dir.parent / "other")
        )
        assert refused.returncode == 1
        assert str(port) in refused.stderr
        assert "--listen" in refused.stderr


def test_listening_to_the_world_needs_a_token(tmp_path: object) -> None:
    refused = serve("--listen", "0.0.0.0:0", "--state-dir", f"{tmp_path}/s", CELLKEEP_TOKEN="")
    assert refused.returncode != 0
    assert "token" in refused.stderr


def test_wrong_options_are_refused_by_name(tmp_path: object) -> None:
    state = ("--state-dir", f"{tmp_path}/s")
    for arguments, named in (
        (("--listen", "nonsense"), "nonsense"),
        (("--allow-degraded", "no_such_control"), "no_such_control"),
        (("--zmq-transport", "pigeon"), "pigeon"),
        (("--max-sessions", "-1"), "max-sessions"),
        (("--max-sessions", "0"), "max-sessions"),
        (("--max-sessions", "6001"), "max-sessions"),
        (("--no-such-flag",), "--no-such-flag"),
    ):
        refused = serve(*state, *arguments)
        assert refused.returncode != 0
        assert named in refused.stderr + refused.stdout


def test_every_flag_is_a_key_of_the_configuration(tmp_path: object) -> None:
    config = f"{tmp_path}/cellkeep.toml"
    with open(config, "w", encoding="utf-8") as file:
        file.write('max_sessions = 1\nlog_format = "text"\nlog_level = "warning"\n')
    with Server(*LEAN, "--config", config) as server:
        session = server.create()
        assert server.post("/v1/sessions").status_code == 429
        assert session.delete() == 204
    with open(config, "w", encoding="utf-8") as file:
        file.write("max_sesions = 1\n")
    refused = serve("--config", config, "--state-dir", f"{tmp_path}/s")
    assert refused.returncode == 1
    assert "max_sesions" in refused.stderr and ":1:" in refused.stderr
