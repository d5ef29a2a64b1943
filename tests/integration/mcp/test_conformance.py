# SPDX-License-Identifier: Apache-2.0
"""The protocol's official conformance suite: every scenario that it requires of servers, in both revisions.

Nothing is excepted. The scenarios call tools, prompts and resources of the suite's own, which a server has only
with --mcp-fixtures.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import yaml

from conftest import NODE, PACKAGES
from harness import LEAN, TOKEN, Server

SUITE = PACKAGES / "@modelcontextprotocol/conformance"
REVISIONS = ("2026-07-28", "2025-11-25")
# Also met, although the suite does not require them.
OPTIONAL = {
    "2026-07-28": {"http-header-validation", "json-schema-2020-12"},
    "2025-11-25": {"json-schema-2020-12", "server-session-lifecycle"},
}
# What a server need not have: it says so itself.
SKIPPED = {
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
}


class Run:
    """One run of the whole suite."""

    def __init__(self, status: int, log: str, folder: Path) -> None:
        self.status = status
        self.log = log
        self.checks: dict[str, list[dict]] = {}
        for path in folder.glob("*/checks.json"):
            name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", path.parent.name)
            self.checks[name] = json.loads(path.read_text(encoding="utf-8"))


def required(revision: str) -> list[str]:
    return yaml.safe_load((SUITE / f"requirements/{revision}.yaml").read_text("utf-8"))["server"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text", "--mcp-fixtures") as running:
        yield running


@pytest.fixture(scope="module", params=REVISIONS)
def run(request: pytest.FixtureRequest, server: Server, tmp_path_factory) -> tuple[str, Run]:
    folder = tmp_path_factory.mktemp("checks")
    command = [NODE, SUITE / "dist/index.js", "server"]
    # Some of its requests keep only the path of the address.
    command += ["--url", f"{server.url}/token/{TOKEN}/mcp"]
    command += ["--requirements", request.param, "-o", folder]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return request.param, Run(ended.returncode, ended.stdout + ended.stderr, folder)


def bad(checks: list[dict]) -> list[dict]:
    return [check for check in checks if check["status"] in ("FAILURE", "WARNING")]


def test_every_required_scenario_passes(run: tuple[str, Run]) -> None:
    revision, result = run
    names = set(required(revision))
    assert len(names) == {"2026-07-28": 37, "2025-11-25": 30}[revision]
    assert names <= set(result.checks), result.log[-4000:]
    failures = {name: bad(result.checks[name]) for name in names if bad(result.checks[name])}
    assert failures == {}
    assert result.status == 0, result.log[-4000:]


def test_every_required_scenario_checks_something(run: tuple[str, Run]) -> None:
    revision, result = run
    for name in required(revision):
        statuses = {check["id"]: check["status"] for check in result.checks[name]}
        assert "SUCCESS" in statuses.values(), name
        assert {key for key, status in statuses.items() if status == "SKIPPED"} <= SKIPPED


def test_scenarios_beyond_the_required(run: tuple[str, Run]) -> None:
    revision, result = run
    for name in OPTIONAL[revision]:
        assert bad(result.checks[name]) == [], name


def test_without_the_switch_there_is_nothing_of_it() -> None:
    with Server(*LEAN, "--log-format", "text") as plain:
        for method, names in (
            ("tools/list", "test_"),
            ("prompts/list", "test_"),
            ("resources/list", "test:"),
            ("resources/templates/list", "test:"),
        ):
            assert names not in ask(plain, method, {}).text
        for name in ("test_simple_text", "test_elicitation", "test_sampling"):
            refused = ask(plain, "tools/call", {"name": name})
            assert refused.status_code == 400 and refused.json()["error"]["code"] == -32602
        read = ask(plain, "resources/read", {"uri": "test://static-text"})
        assert read.status_code == 400
        listed = ask(plain, "tools/list", {}).json()["result"]["tools"]
        assert len(listed) == 12


def ask(server: Server, method: str, params: dict) -> requests.Response:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
    }
    name = params.get("name") or params.get("uri")
    if name:
        headers["Mcp-Name"] = name
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return requests.post(f"{server.url}/mcp", json=body, headers=headers, timeout=30)
