# SPDX-License-Identifier: Apache-2.0
"""The TypeScript client as a program's author gets it: compiled, packed and installed in a project."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "clients/typescript"
MODULES = ROOT / "build/environments/typescript/node_modules"


def run(*command: object, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package's source, with the locked compiler beside it."""
    folder = tmp_path_factory.mktemp("source") / "typescript"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (folder / "node_modules").symlink_to(MODULES)
    return folder


@pytest.fixture(scope="module")
def packed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has installed the packed package."""
    run("node", MODULES / "typescript/bin/tsc", "--project", "tsconfig.json", cwd=tree)
    run("npm", "pack", "--ignore-scripts", "--offline", cwd=tree)
    (archive,) = tree.glob("cellkeep-*.tgz")
    project = tmp_path_factory.mktemp("project")
    package = project / "node_modules/cellkeep"
    package.mkdir(parents=True)
    run("tar", "-xzf", archive, "--strip-components=1", "-C", package, cwd=project)
    (project / "package.json").write_text('{"type": "module"}\n', encoding="utf-8")
    return project
