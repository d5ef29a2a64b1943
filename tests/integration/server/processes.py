# SPDX-License-Identifier: Apache-2.0
"""Processes of a session, by the wire names of the API."""

import base64
import contextlib
import json
from collections.abc import Iterator

import requests

from harness import Session, read_lines

# kernel-manager/process/limits.hpp
COMMANDS_MAX = 32
ENDED_COMMANDS_MAX = 16
OUTPUT_BYTES_MAX = 512 << 10
INPUT_BYTES_MAX = 1 << 20
PATIENCE_SECONDS = 60


def ask(session: Session, *argv: str, **fields: object) -> requests.Response:
    return session.server.post(session.path + "/processes", {"argv": list(argv), **fields})


def start(session: Session, *argv: str, **fields: object) -> dict:
    answer = ask(session, *argv, **fields)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"{session.path}/processes/{answer.json()['id']}"
    return answer.json()


def python(session: Session, code: str, **fields: object) -> dict:
    return start(session, "python3", "-c", code, **fields)


def path_of(session: Session, process: dict) -> str:
    return f"{session.path}/processes/{process['id']}"


def look(session: Session, process: dict) -> dict:
    answer = session.server.get(path_of(session, process))
    assert answer.status_code == 200, answer.text
    return answer.json()


def listed(session: Session) -> list[dict]:
    return session.server.get(session.path + "/processes").json()["processes"]


def post(session: Session, process: dict, action: str, **fields: object) -> requests.Response:
    return session.server.post(f"{path_of(session, process)}/{action}", fields)


def remove(session: Session, process: dict) -> int:
    return session.server.request("DELETE", path_of(session, process)).status_code


def events(session: Session, process: dict, after: int = 0) -> Iterator[dict]:
    """Without heartbeats. Closing the generator closes the connection."""
    with session.server.request(
        "GET",
        path_of(session, process) + "/events",
        headers={"Accept": "application/x-ndjson", "Last-Event-ID": str(after)},
        stream=True,
    ) as answer:
        assert answer.status_code == 200, answer.text
        for line in read_lines(answer):
            event = json.loads(line) if line else {"type": "heartbeat"}
            if event["type"] != "heartbeat":
                yield event


def bytes_of(event: dict) -> bytes:
    return base64.b64decode(event["base64"]) if "base64" in event else event["text"].encode()


class Finished:
    """A process that has ended: its output, how much of it was missed, and its end."""

    def __init__(self, seen: list[dict]) -> None:
        assert seen[-1]["type"] == "exited", seen[-1]
        self.process = seen[-1]["process"]
        self.end = self.process["end"]
        self.missed = sum(event["bytes"] for event in seen if event["type"] == "gap")
        self.stdout = b"".join(bytes_of(event) for event in seen if event["type"] == "stdout")
        self.stderr = b"".join(bytes_of(event) for event in seen if event["type"] == "stderr")


def finish(session: Session, process: dict, after: int = 0) -> Finished:
    return Finished(list(events(session, process, after)))


def wait_for_text(session: Session, process: dict, text: str, after: int = 0) -> int:
    """The place behind the event in which the text was whole."""
    seen = b""
    with contextlib.closing(events(session, process, after)) as stream:
        for event in stream:
            assert event["type"] != "exited", (seen, event)
            seen += bytes_of(event) if event["type"] in ("stdout", "stderr") else b""
            if text.encode() in seen:
                return event["seq"]
    raise AssertionError(f"no {text}: {seen!r}")
