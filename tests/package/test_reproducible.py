# SPDX-License-Identifier: Apache-2.0
"""Two runs of the packager over one tree make the same bytes, whatever the user's settings are."""

import os
import subprocess
import sys
from pathlib import Path

from tree import EPOCH, PACKAGER, binaries


def start(output: Path, umask: int, **variables: str) -> subprocess.Popen:
    command = [sys.executable, "-B", PACKAGER / "make.py", "--binaries", binaries()]
    return subprocess.Popen(
        [*command, "--output", output],
        umask=umask,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), **variables},
        stdin=subprocess.DEVNULL,
    )


def checked_sums(output: Path) -> dict[str, str]:
    """Names and checksums of all packages."""
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=output, check=True)
    lines = (output / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def test_two_runs_make_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first/packages", tmp_path / "another/packages"
    runs = [
        start(first, 0o022, TZ="UTC", LANG="C.UTF-8", PYTHONHASHSEED="1"),
        start(second, 0o077, TZ="Asia/Kolkata", LANG="C", PYTHONHASHSEED="2"),
    ]
    assert [run.wait() for run in runs] == [0, 0]
    sums = checked_sums(first)
    assert len(sums) == 6
    assert checked_sums(second) == sums
