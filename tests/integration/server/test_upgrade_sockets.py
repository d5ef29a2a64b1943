# SPDX-License-Identifier: Apache-2.0
"""What passes when a server's program is replaced, and sockets and notices of a service manager."""

import http.client
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from harness import LEAN, Server, binary
from modes import ModeServer
from upgrades import BARE, SECONDS_MAX, Asked, Place, words_of

pytestmark = pytest.mark.both_modes

# Runs a command as a service manager with a socket would.
ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=sys.argv[2] or str(os.getpid()), LISTEN_FDS="1")
os.execvp(sys.argv[3], sys.argv[3:])
"""


def test_a_random_token_stays(mode: str, place: Place) -> None:
    server = ModeServer(mode, *LEAN, *BARE)
    server.prefix = [*server.prefix, "env", "-u", "CELLKEEP_TOKEN"]
    with server:
        token = server.record["token"]
        server.http.headers["Authorization"] = f"Bearer {token}"
        Asked(server).wait_until_served()
        assert server.record["token"] == token
        assert server.get("/v1/sessions").status_code == 200
        assert token not in "".join(words_of(server))


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=SECONDS_MAX)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS_MAX)
        self.sock.connect(str(self.path))


def test_a_unix_socket_stays_and_goes_with_the_last_program(mode: str, place: Place) -> None:
    path = place.folder / "socket"
    server = ModeServer(mode, *LEAN, *BARE)
    server.listen = f"unix:{path}"
    with server:
        before = path.stat()
        Asked(server).wait_until_served()
        after = path.stat()
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
        connection = UnixConnection(path)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
    assert not path.exists()


def test_an_address_that_is_taken_is_found_before_the_server_is_given_up(
    mode: str, place: Place
) -> None:
    """The other program is to listen on one address more."""
    with ModeServer(mode, *LEAN, *BARE) as server:
        session = server.create()
        session.execute("x = 41")
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = "127.0.0.1:{}".format(other.getsockname()[1])
            place.put_script(
                "serve=$1", "shift", f'exec {place.real} "$serve" --listen {address} "$@"'
            )
            assert address in Asked(server).wait("refused")["message"]
            assert session.value("x") == "41"
        Asked(server).wait_until_served()
        assert requests.get(f"http://{address}/healthz", timeout=SECONDS_MAX).ok
        assert session.value("x + 1") == "42"
        assert session.delete() == 204
    place.put_program()


@pytest.mark.parametrize("descriptor", ["0", "-1", "99", "memfd"])
def test_what_is_no_hand_over_is_not_taken(mode: str, place: Place, descriptor: str) -> None:
    passed = []
    if descriptor == "memfd":  # anybody can write it
        passed = [os.memfd_create("x")]
        os.write(passed[0], b"{}")
        descriptor = str(passed[0])
    server = ModeServer(mode)
    command = [binary(), "serve", "--state-dir", str(server.state_dir), f"--take-over={descriptor}"]
    done = subprocess.run(
        [*server.prefix, *command],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        pass_fds=passed,
    )
    for fd in passed:
        os.close(fd)
    server.folder.cleanup()
    assert done.returncode == 1
    assert "is no hand-over" in done.stderr


def listening_socket() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def activated(mode: str, listening: socket.socket, pid: str = "") -> ModeServer:
    """A server that gets the socket as a service manager passes it; pid: to another process."""
    server = ModeServer(mode, *LEAN, *BARE)
    server.prefix = [sys.executable, "-c", ACTIVATE, str(listening.fileno()), pid, *server.prefix]
    server.listen = f"127.0.0.1:{listening.getsockname()[1]}"
    return server


class Activated:
    """Use as a context, as a server."""

    def __init__(self, server: Server, listening: socket.socket) -> None:
        self.server = server
        self.listening = listening

    def __enter__(self) -> Server:
        self.server.launch(self.listening.fileno())
        self.server.await_ready()
        self.server.attach()
        return self.server

    def __exit__(self, *failure: object) -> None:
        self.server.__exit__(*failure)


def test_a_restart_behind_a_managers_socket_refuses_no_connection(mode: str, place: Place) -> None:
    with listening_socket() as listening:
        early = socket.create_connection(listening.getsockname())
        with Activated(activated(mode, listening), listening) as server:
            early.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert early.recv(20).startswith(b"HTTP/1.1 200 ")
            Asked(server).wait_until_served()
            assert server.get("/healthz").status_code == 200
        early.close()
        between = socket.create_connection(listening.getsockname())
        between.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with Activated(activated(mode, listening), listening):
            assert between.recv(20).startswith(b"HTTP/1.1 200 ")
        between.close()


def test_a_managers_socket_of_another_process_is_left_alone(mode: str, place: Place) -> None:
    with listening_socket() as listening:
        server = activated(mode, listening, pid="1")
        server.launch(listening.fileno())
        assert server.process.wait(SECONDS_MAX) == 1
        os.close(server.ready_fd)
        assert "listen(127.0.0.1:" in server.output()  # it is taken: by the manager
        server.http.close()
        server.log.close()
        server.folder.cleanup()


def test_the_manager_is_told(mode: str, place: Place) -> None:
    path = place.folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        path.chmod(0o666)
        manager.settimeout(SECONDS_MAX)
        server = ModeServer(mode, *LEAN, *BARE)
        server.environment["NOTIFY_SOCKET"] = str(path)
        with server:
            assert manager.recv(4096).startswith(b"READY=1\n")
            Asked(server).wait_until_served()
            assert re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=[0-9]+\n", manager.recv(4096))
            assert manager.recv(4096).startswith(b"READY=1\n")
        assert manager.recv(4096) == b"STOPPING=1\n"
    path.unlink()
