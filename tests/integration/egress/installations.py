# SPDX-License-Identifier: Apache-2.0
"""Packages of a session, by their wire names."""


import requests

from harness import Server, Session
from package_index import PackageIndex


def create(server: Server, index: PackageIndex, **fields: object) -> Session:
    return server.create(network={"mode": "allowlist", "allow": [index.host]}, **fields)


def ask(session: Session, *packages: object, **fields: object) -> requests.Response:
    return session.server.post(session.path + "/packages", {"python": list(packages), **fields})


def install(session: Session, *packages: str, **fields: object) -> dict:
    answer = ask(session, *packages, **fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(session: Session, *packages: str, **fields: object) -> dict:
    """The problem of an installation that has failed."""
    answer = ask(session, *packages, **fields)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["type"] == "/problems/packages-not-installed", problem
    return problem


def names(packages: list[dict]) -> dict[str, str]:
    return {one["name"]: one["version"] for one in packages}


def has(session: Session, package: str) -> bool:
    """Whether code finds it that has not imported it yet."""
    return session.value(f"__import__('importlib').util.find_spec({package!r}) is not None") == "True"


def runs_nothing(session: Session) -> bool:
    return session.server.get(session.path + "/processes").json()["processes"] == []


def events(server: Server, session: Session) -> list[dict]:
    ident = session.info["id"]
    return [event for event in server.events("packages") if event["session"] == ident]
