# SPDX-License-Identifier: Apache-2.0
"""Archives of a tree that hold nothing of the machine that made them, and the checksums of files."""

import os
import subprocess
from pathlib import Path

from files import PackagingError, sha256_of

# zstd's bytes depend on the level and on whether there are workers, not on how many.
ZSTD = ("zstd", "-q", "-3", "-T2")
GZIP = ("gzip", "-n", "-3")


def pack(tree: Path, name: str, epoch: int, archive: Path, compressor: tuple[str, ...]) -> None:
    """The tree as a folder of this name: sorted, of root's, at the release's time."""
    tar = [
        "tar",
        "--create",
        "--format=posix",
        "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
        "--sort=name",
        f"--mtime=@{epoch}",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        f"--transform=flags=r;s,^\\.,{name},",
        "--directory",
        tree.as_posix(),
        ".",
    ]
    variables = {**os.environ, "LC_ALL": "C"}
    with archive.open("wb") as file:
        with subprocess.Popen(tar, stdout=subprocess.PIPE, env=variables) as packer:
            done = subprocess.run(compressor, stdin=packer.stdout, stdout=file)
        if packer.returncode != 0 or done.returncode != 0:
            raise PackagingError(f"{archive} was not made")


def write_sums(folder: Path) -> None:
    """What `sha256sum --check SHA256SUMS` reads."""
    names = sorted(path.name for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
