# SPDX-License-Identifier: Apache-2.0
"""Clients at work while the server's program is replaced again and again: each of their executions
runs once, and each has its answer."""

import re
import threading

import requests

from harness import Server, Session
from modes import ModeServer
from upgrades import Asked, Place

# What a client sees of a connection that was closed before an answer.
CLOSED = re.compile("RemoteDisconnected|Connection reset|Broken pipe")
SESSIONS = 20
UPGRADES = 10


class Worker(threading.Thread):
    """Counts in one session. Tries again when a connection is closed before any byte of an answer,
    and never otherwise."""

    def __init__(self, server: Server, session: Session, over: threading.Event) -> None:
        super().__init__()
        self.url = server.url + session.path + "/executions"
        self.headers = dict(server.http.headers)
        self.over = over
        self.count = 0
        self.wrong: list[str] = []
        self.retries = 0

    def run(self) -> None:
        try:
            while not self.over.is_set():
                self.step()
        except BaseException as failure:
            self.wrong.append(repr(failure))

    def step(self) -> None:
        code = f"n = globals().get('n', 0) + 1\n(n, {self.count})"
        with requests.Session() as client:
            for keeps in (True, True, False):
                answer = self.ask(client, code, keeps)
                if answer.status_code != 200:
                    self.wrong.append(f"{answer.status_code}: {answer.text}")
                    continue
                self.count += 1
                shown = answer.json()["result"]["text/plain"]
                if shown != f"({self.count}, {self.count - 1})":
                    self.wrong.append(f"{shown} at {self.count}")
                code = f"n = globals().get('n', 0) + 1\n(n, {self.count})"

    def ask(self, client: requests.Session, code: str, keeps: bool) -> requests.Response:
        headers = self.headers if keeps else {**self.headers, "Connection": "close"}
        while True:
            try:
                return client.post(self.url, json={"code": code}, headers=headers, timeout=120)
            except requests.ConnectionError as error:
                if not CLOSED.search(repr(error)):
                    raise
                self.retries += 1


def test_ten_upgrades_under_load_lose_double_and_mix_up_nothing(mode: str, place: Place) -> None:
    arguments = ("--preload", "none", "--max-sessions", str(SESSIONS + 4))
    with ModeServer(mode, *arguments) as server:
        server.wait_until_ready()
        sessions = [server.create(limits={"memory_mb": 128}) for _ in range(SESSIONS)]
        over = threading.Event()
        workers = [Worker(server, session, over) for session in sessions]
        for worker in workers:
            worker.start()
        try:
            for _ in range(UPGRADES):
                Asked(server).wait_until_served()
        finally:
            over.set()
            for worker in workers:
                worker.join()
        assert [worker.wrong for worker in workers if worker.wrong] == []
        assert all(worker.count > UPGRADES for worker in workers)
        for worker, session in zip(workers, sessions, strict=True):
            assert session.value("n") == str(worker.count)
            assert session.fetch()["used"]["executions"] == worker.count + 1
