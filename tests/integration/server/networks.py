# SPDX-License-Identifier: Apache-2.0
"""Sessions with a network whose server is upgraded, and what they reach."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from harness import LEAN, Server, Session
from modes import ModeServer, give_to
from outside import Outside
from package_index import PackageIndex
from upgrades import BARE, news

VALUE = "r3al-v4lue-of-the-operator"
# A client that says of each URL what it got: the status, and the code of a refusal.
ASK = """
import requests
def ask(url, **more):
    try:
        got = requests.get(url, timeout=60, **more)
        return got.status_code, got.headers.get("X-Cellkeep-Deny", ""), got.text
    except requests.exceptions.ProxyError as refused:
        return 0, "refused", str(refused)
"""


def secrets_of(mode: str, outside: Outside, folder: Path, value: str = VALUE) -> Path:
    """A file with one secret, for api.test."""
    path = folder / "secrets.json"
    secret = {"name": "tracker", "host": f"api.test:{outside.https}", "prefix": "Bearer "}
    path.write_text(json.dumps({"secrets": [{**secret, "value": value}]}), encoding="utf-8")
    path.chmod(0o600)
    give_to(mode, path)
    return path


@contextlib.contextmanager
def serve(mode: str, outside: Outside, index: PackageIndex, folder: Path) -> Iterator[Server]:
    secrets = secrets_of(mode, outside, folder)
    arguments = [*outside.arguments(), *index.arguments(), "--secrets", str(secrets)]
    with ModeServer(mode, *LEAN, *BARE, *arguments) as running:
        yield running


def network(outside: Outside, index: PackageIndex) -> dict:
    """What sessions of these tests ask for: not other.test."""
    allow = [f"index.test:{port}" for port in (outside.http, outside.https, index.port)]
    return {
        "mode": "allowlist",
        "allow": [*allow, f"api.test:{outside.https}"],
        "secrets": ["tracker"],
    }


def traffic(session: Session) -> dict:
    return session.fetch()["network"]["traffic"]


def egress_lines(server: Server, session: Session) -> list[dict]:
    return [line for line in news(server, "egress") if line["session"] == session.info["id"]]
