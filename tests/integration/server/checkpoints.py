# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a session, by their wire names."""

from urllib.parse import urlencode

import requests

from harness import Session

PATIENCE_SECONDS = 60
CHECKPOINTS_MAX = 8  # kCheckpointsMax (protocol/limits.hpp)
LABEL_BYTES_MAX = 128  # kCheckpointLabelBytesMax
FILE_BYTES_MAX = 512 << 20  # kKeptFileBytesMax (kernel-manager/checkpoint/files/manifest.hpp)
STORED_BYTES_MAX = 1 << 30  # kStoredBytesMax (kernel-manager/checkpoint/files/blob_store.hpp)

# The sleeping copies, as code inside finds them: its own siblings with the same program.
FIND_COPIES = """
import os
def copies():
    sessions = {}
    for name in os.listdir('/proc'):
        if not name.isdigit() or int(name) in (1, os.getpid()):
            continue
        try:
            stat = open(f'/proc/{name}/stat').read().rsplit(')', 1)[1].split()
        except OSError:
            continue
        if stat[1] == '1':
            sessions[int(name)] = int(stat[3])
    # A copy leads a process session of its own. A fork that it has made beforehand is in that.
    return sorted(one for one, led in sessions.items() if led == one or led not in sessions)
"""


def checkpoint(session: Session, **fields: object) -> dict:
    response = session.server.post(session.path + "/checkpoints", fields)
    assert response.status_code in (200, 201), response.text
    made = response.json()
    assert made["unchanged"] == (response.status_code == 200)
    assert response.headers["Location"] == f"{session.path}/checkpoints/{made['id']}"
    return made


def roll_back(session: Session, made: dict, **fields: object) -> dict:
    response = ask_back(session, made["id"], **fields)
    assert response.status_code == 200, response.text
    return response.json()


def ask_back(session: Session, ident: object, **fields: object) -> requests.Response:
    return session.server.post(session.path + "/rollback", {"checkpoint": ident, **fields})


def listed(session: Session) -> list[dict]:
    return listing(session)["checkpoints"]


def listing(session: Session) -> dict:
    answer = session.server.get(session.path + "/checkpoints").json()
    assert answer["limits"] == {
        "checkpoints": CHECKPOINTS_MAX,
        "file_bytes": FILE_BYTES_MAX,
        "stored_file_bytes": STORED_BYTES_MAX,
    }
    return answer


def differences(session: Session, against: dict | str, later: dict | str | None = None) -> dict[str, str]:
    query = {"against": against if isinstance(against, str) else against["id"]}
    if later is not None:
        query["checkpoint"] = later if isinstance(later, str) else later["id"]
    answer = session.server.get(f"{session.path}/diff?{urlencode(query)}")
    assert answer.status_code == 200, answer.text
    return {one["path"]: one["change"] for one in answer.json()["files"]}


def run(session: Session, code: str) -> dict:
    result = session.execute(code)
    assert result["status"] == "ok", result
    return result
