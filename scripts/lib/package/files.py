# SPDX-License-Identifier: Apache-2.0
"""Copies whose bytes, modes and times depend on nothing but their source and the release's time."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAM_MODE = 0o755
FILE_MODE = 0o644


class PackagingError(Exception):
    """What keeps a package from being made, as a sentence for the person who makes it."""


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def walk(tree: Path) -> Iterator[Path]:
    """Everything below the tree, sorted: folders, files and links, no link followed."""
    for folder, folders, names in os.walk(tree):
        folders.sort()
        for name in sorted(folders + names):
            yield Path(folder, name)


def is_program(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)


def copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(PROGRAM_MODE if is_program(source) else FILE_MODE)


def link_file(source: Path, target: Path) -> None:
    """The same file under another name: for what is settled and stays as it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    os.link(source, target)


def copy_tree(
    source: Path,
    target: Path,
    is_left_out: Callable[[Path], bool],
    copy: Callable[[Path, Path], None] = copy_file,
) -> None:
    """is_left_out() is asked about paths relative to the source; a folder takes its contents along."""
    if not source.is_dir():
        raise PackagingError(f"the folder {source} is missing")
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        relative = path.relative_to(source)
        if is_left_out(relative):
            continue
        if path.is_symlink():
            (target / relative).symlink_to(path.readlink())
        elif path.is_dir():
            is_out = lambda below, at=relative: is_left_out(at / below)  # noqa: E731
            copy_tree(path, target / relative, is_out, copy)
        else:
            copy(path, target / relative)


def settle(tree: Path, epoch: int) -> None:
    """Gives everything in the tree, and itself, the release's time and one of two modes."""
    for path in [*walk(tree), tree]:
        if path.is_symlink():
            os.utime(path, (epoch, epoch), follow_symlinks=False)
            continue
        path.chmod(PROGRAM_MODE if path.is_dir() or is_program(path) else FILE_MODE)
        os.utime(path, (epoch, epoch))
