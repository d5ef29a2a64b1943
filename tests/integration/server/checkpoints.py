# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a session, by their wire names."""

import requests

from harness import Session

PATIENCE_SECONDS = 60
CHECKPOINTS_MAX = 8  # kCheckpointsMax (protocol/limits.hpp)
LABEL_BYTES_MAX = 128  # kCheckpointLabelBytesMax

# The sleeping copies, as code inside finds them: its own siblings with the same program.
FIND_COPIES = """
import os
def copies():
    found = []
    for name in os.listdir('/proc'):
        if not name.isdigit() or int(name) in (1, os.getpid()):
            continue
        try:
            stat = open(f'/proc/{name}/stat').read().rsplit(')', 1)[1].split()
        except OSError:
            continue
        if stat[1] == '1':
            found.append(int(name))
    return sorted(found)
"""


def checkpoint(session: Session, **fields: object) -> dict:
    response = session.server.post(session.path + "/checkpoints", fields)
    assert response.status_code == 201, response.text
    made = response.json()
    assert response.headers["Location"] == f"{session.path}/checkpoints/{made['id']}"
    return made


def roll_back(session: Session, made: dict, **fields: object) -> dict:
    response = ask_back(session, made["id"], **fields)
    assert response.status_code == 200, response.text
    return response.json()


def ask_back(session: Session, ident: object, **fields: object) -> requests.Response:
    return session.server.post(session.path + "/rollback", {"checkpoint": ident, **fields})


def listed(session: Session) -> list[dict]:
    answer = session.server.get(session.path + "/checkpoints").json()
    assert answer["limits"] == {"checkpoints": CHECKPOINTS_MAX}
    return answer["checkpoints"]


def run(session: Session, code: str) -> dict:
    result = session.execute(code)
    assert result["status"] == "ok", result
    return result
