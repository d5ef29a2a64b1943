# SPDX-License-Identifier: Apache-2.0
"""Servers whose program is replaced while they run.

They are started from a path of the test's own, so that the test decides what is there when the signal comes:
the program itself, or a script.
"""

import contextlib
import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from harness import TOKEN, Server, Session, binary, wait_until
from modes import open_folder

SECONDS_MAX = 60
# An execution to which its caller lends one does not pass while it runs.
TOOL = {"name": "ask", "description": "asks", "input_schema": {"type": "object"}}
# Code that runs until it is let go.
WAIT = """
import os, time
open('begun', 'w').close()
while not os.path.exists('go'):
    time.sleep(0.01)
os.remove('go'); os.remove('begun')
"""
# A server at rest: nothing is made in advance.
BARE = ("--prespawn-count", "0", "--no-zygotes")


class Place:
    """The path that servers are started from."""

    def __init__(self, folder: Path) -> None:
        self.real = str(Path(binary()).resolve())
        self.folder = folder
        self.path = folder / "cellkeep"
        self.put_program()

    def put_program(self) -> None:
        self.clear()
        self.path.symlink_to(self.real)

    def put_script(self, *lines: str, mode: int = 0o755, first: str = "#!/bin/sh") -> None:
        self.clear()
        self.path.write_text("\n".join([first, *lines, ""]), encoding="utf-8")
        self.path.chmod(mode)

    @contextlib.contextmanager
    def older(self, newest: int) -> Iterator[None]:
        """In it the program at the path says that it reads older formats alone, up to that one."""
        formats = json.dumps(list(range(1, newest + 1)))
        answer = f'{{"take_over":{{"formats":{formats},"version":"0.1"}}}}'
        self.put_script(
            f"case \"$*\" in *--take-over-check) echo '{answer}' ;;",
            f'*) exec -a {self.path} {self.real} "$@" ;; esac',
            first="#!/bin/bash",
        )
        try:
            yield
        finally:
            self.put_program()

    def fail_after_the_check(self) -> None:
        """The program passes the check and is gone."""
        self.put_script(f'{self.real} "$@"', f"rm -f {self.path}")

    def clear(self) -> None:
        if self.path.is_dir() and not self.path.is_symlink():
            self.path.rmdir()
        self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def open_place(mode: str) -> Iterator[Place]:
    """In it the program under test is what is at the path."""
    with open_folder(mode) as folder, pytest.MonkeyPatch.context() as patch:
        made = Place(folder)
        patch.setenv("CELLKEEP_BINARY", str(made.path))
        yield made


def news(server: Server, event: str = "upgrade") -> list[dict]:
    """What the log says of upgrades."""
    return server.events(event)


class Asked:
    """The signal was sent: what came of it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.before = len(news(server))
        server.process.send_signal(signal.SIGUSR2)

    def wait(self, outcome: str) -> dict:
        def said() -> list[dict]:
            since = news(self.server)[self.before :]
            return [one for one in since if one["outcome"] == outcome]

        wait_until(lambda: bool(said()), SECONDS_MAX, f"the log says {outcome}")
        return said()[0]

    def wait_until_served(self) -> None:
        """Until the other program serves."""
        started = self.server.record["started_at"]
        self.wait("taken_over")

        def is_served() -> bool:
            self.server.attach()
            return self.server.record["started_at"] != started

        wait_until(is_served, SECONDS_MAX, "the other program serves")


def upgrade(server: Server) -> None:
    """At the first try."""
    asked = Asked(server)
    asked.wait_until_served()
    assert [each["outcome"] for each in news(server)[asked.before :]] == ["leaving", "taken_over"]


def fail_to_replace(server: Server, place: Place) -> None:
    """The other program passes the check and is gone at the exec. Until the same program serves again."""
    started = server.record["started_at"]
    place.fail_after_the_check()
    try:
        Asked(server).wait("failed")
    finally:
        place.put_program()

    def goes_on() -> bool:
        server.attach()
        return server.record["started_at"] != started

    wait_until(goes_on, SECONDS_MAX, "the server goes on")


def is_there(session: Session, name: str) -> bool:
    return session.server.get(f"{session.path}/files/{name}").status_code == 200


def wait_until_begun(session: Session) -> None:
    wait_until(lambda: is_there(session, "begun"), SECONDS_MAX, "the code has begun")


def let_go(session: Session) -> None:
    assert session.server.request("PUT", session.path + "/files/go", data=b"").ok


def begin_request(server: Server) -> socket.socket:
    """One whose body does not come: a pause lasts as long as it waits. end_request() sends it."""
    address = urlsplit(server.url)
    client = socket.create_connection((address.hostname, address.port), 60)
    head = f"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    client.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n".encode())
    return client


def end_request(client: socket.socket) -> None:
    # No JSON, so that no session is made.
    client.sendall(b"{ ")
    assert client.recv(65_536).startswith(b"HTTP/1.1 400 ")


def language_states(session: Session) -> dict[str, tuple[str, int]]:
    """The state and the restarts of each language that the session uses."""
    used = [one for one in session.fetch()["languages"] if one["state"] != "unused"]
    return {one["name"]: (one["state"], one["restarts"]) for one in used}


def words_of(server: Server) -> list[str]:
    return psutil.Process(server.process.pid).cmdline()


def links_of(pid: int) -> list[str]:
    """What a process has open, as far as it does not change meanwhile."""
    links = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(fd))
        except FileNotFoundError:
            continue
    return links


WATCH = "anon_inode:inotify"


def kinds_of(pid: int) -> list[str]:
    """What a process has open, by kind. Without what is written only when the server begins to serve, and without
    the watches of files: whether a session has one depends on how many this user's other processes have
    (fs.inotify.max_user_instances, often 128)."""
    lasting = [link for link in links_of(pid) if not link.endswith("/server.json") and link != WATCH]
    return sorted(re.sub(r"[0-9]+", "N", link) for link in lasting)


def watches_of(pid: int) -> int:
    return links_of(pid).count(WATCH)
