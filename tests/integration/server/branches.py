# SPDX-License-Identifier: Apache-2.0
"""Branches of a session, by their wire names."""

import requests

from harness import Server, Session

BRANCHES_AT_ONCE_MAX = 100  # kBranchesAtOnceMax (kernel-manager/api/bodies/branch_body.hpp)
DEPTH_MAX = 8  # kBranchDepthMax (kernel-manager/session/checkpoints/family.hpp)


def create(server: Server, **fields: object) -> Session:
    """A session that can be branched."""
    return server.create(checkpoints={"branches": True}, **fields)


def ask_branches(session: Session, **fields: object) -> requests.Response:
    return session.server.post(session.path + "/branches", fields)


def items(session: Session, **fields: object) -> list[dict]:
    """Each is {"session": ...} or {"error": ...}."""
    response = ask_branches(session, **fields)
    assert response.status_code == 201, response.text
    return response.json()["branches"]


def branch(session: Session, **fields: object) -> Session:
    (item,) = items(session, **fields)
    assert "session" in item, item
    return session.server.adopt(item["session"])


def ask_merge(session: Session, made: Session | str, **fields: object) -> requests.Response:
    ident = made if isinstance(made, str) else made.info["id"]
    return session.server.post(session.path + "/merge", {"from": ident, **fields})


def merge(session: Session, made: Session, **fields: object) -> dict:
    response = ask_merge(session, made, **fields)
    assert response.status_code == 200, response.text
    return response.json()
