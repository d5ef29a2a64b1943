# SPDX-License-Identifier: Apache-2.0
"""What must never be committed: large files, installed packages, what a build or a run leaves.

check_tree.py reports what is found here. Asked is git, if the tree is a repository: everything that
is committed or that `git add` would take. Of a plain copy of the tree, everything that is there but
what .gitignore names.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

FILE_BYTES_MAX = 1_000_000
LEFT_BY_RUNS = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ipynb_checkpoints", ".hypothesis"}
INSTALLED = {"node_modules", "site-packages", "venv", ".venv", "pyvenv.cfg"}
BUILT_SUFFIXES = {".o", ".a", ".so", ".pyc", ".pch", ".whl", ".tgz", ".node", ".gcda", ".profraw"}
# A program, an archive of objects: their first bytes.
BUILT_BEGINNINGS = (b"\x7fELF", b"!<arch>\n")


def names_of(root: Path) -> list[str]:
    """What is or would be committed, relative to the root."""
    if not (root / ".git").exists():
        skipped = LEFT_BY_RUNS | {".git"}
        inside = (path.relative_to(root) for path in root.rglob("*") if not path.is_dir())
        return sorted(
            path.as_posix()
            for path in inside
            if path.parts[0] != "build" and skipped.isdisjoint(path.parts)
        )
    # The tree may be another user's than who tests it; nothing of its configuration is run here.
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(
        [*command, "--cached", "--others", "--exclude-standard"], check=True, capture_output=True
    )
    return sorted(set(listed.stdout.decode().split("\0")) - {""})


def why_not(root: Path, name: str) -> str | None:
    """Why this file must not be committed; None if it may."""
    parts = PurePosixPath(name).parts
    if installed := INSTALLED.intersection(parts):
        return f"{min(installed)}: installed packages; name them in a lock file instead"
    if parts[0] == "build" or LEFT_BY_RUNS.intersection(parts):
        return "left by a build or a run; ignore it"
    path = root / name
    if path.is_symlink() or not path.exists():
        return None  # git keeps a link's text; a deleted file is on its way out
    if path.is_dir():
        return "a repository of its own; commit its files or name it as a package"
    if (size := path.stat().st_size) > FILE_BYTES_MAX:
        return f"{size:,} bytes, at most {FILE_BYTES_MAX:,}; make it when it is needed"
    with path.open("rb") as file:
        if path.suffix in BUILT_SUFFIXES or file.read(8).startswith(BUILT_BEGINNINGS):
            return "built from something; commit what it is built from"
    return None


def check_files(root: Path) -> Iterator[tuple[str, str]]:
    """Every file that must not be committed, and why."""
    for name in names_of(root):
        if why := why_not(root, name):
            yield name, why
