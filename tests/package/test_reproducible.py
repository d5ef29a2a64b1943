# SPDX-License-Identifier: Apache-2.0
"""Two runs of the packager over one tree make the same bytes, whatever the user's settings are."""

import os
import subprocess
from pathlib import Path

from conftest import Packed, start


def checked_sums(output: Path) -> dict[str, str]:
    """Names and checksums of all packages."""
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=output, check=True)
    lines = (output / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def test_two_runs_make_the_same_bytes(packing: Packed, tmp_path: Path) -> None:
    # Side by side, in folders of different names.
    again = start(
        tmp_path / "another/packages", 0o077, TZ="Asia/Kolkata", LANG="C", PYTHONHASHSEED="2"
    )
    sums = checked_sums(packing.wait())
    assert len(sums) == (11 if os.geteuid() == 0 else 6)
    assert checked_sums(again.wait()) == sums
