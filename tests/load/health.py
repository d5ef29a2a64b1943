# SPDX-License-Identifier: Apache-2.0
"""Asks the server for its health again and again while a trial runs."""

import threading
import time

import requests
from table import Table, milliseconds

PAUSE_SECONDS = 0.2
ANSWER_SECONDS_MAX = 30


class HealthWatch:
    """Use as a context: asks /healthz on a connection of its own, again and again."""

    def __init__(self, url: str) -> None:
        self.url = url + "/healthz"
        self.seconds: list[float] = []
        self.wrong: list[str] = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        with requests.Session() as http:
            while not self.stopped.wait(PAUSE_SECONDS):
                began = time.monotonic()
                try:
                    answer = http.get(self.url, timeout=ANSWER_SECONDS_MAX)
                    said = f"{answer.status_code} {answer.json().get('status')}"
                except (requests.RequestException, ValueError) as error:
                    said = type(error).__name__
                self.seconds.append(time.monotonic() - began)
                if said != "200 ok":
                    self.wrong.append(said)

    def __enter__(self) -> "HealthWatch":
        self.began = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def report(self, table: Table) -> None:
        table.add(
            "/healthz all the while",
            f"{len(self.seconds)} times asked, {len(self.wrong)} times not well"
            f"{': ' if self.wrong else ''}{', '.join(self.wrong[:3])}; {milliseconds(self.seconds)}",
            bool(self.seconds) and not self.wrong,
            self.began,
        )
