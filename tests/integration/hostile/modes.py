# SPDX-License-Identifier: Apache-2.0
"""The two ways of running the server that this host can show: as root and as an ordinary user."""

import json
import os
import subprocess

import pytest

from harness import Server, binary

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
# An ordinary user without a home: no place for a private image, so that mode shows the host's files.
AS_NOBODY += ["env", "-u", "CELLKEEP_IMAGE_DIR", "-u", "XDG_CACHE_HOME", "HOME=/nonexistent"]
MODES = ["root", "ordinary_user"] if os.geteuid() == 0 else ["ordinary_user"]


def prefix_of(mode: str) -> list[str]:
    """What to put before a command to run it as that mode's user."""
    return AS_NOBODY if mode == "ordinary_user" and os.geteuid() == 0 else []


def doctor(mode: str) -> dict:
    """`cellkeep doctor --json` as that mode's user."""
    prefix = prefix_of(mode)
    if prefix and subprocess.run([*prefix, "test", "-x", binary()], cwd="/").returncode != 0:
        pytest.skip(f"an ordinary user cannot reach {binary()}")
    answer = subprocess.run(
        [*prefix, binary(), "doctor", "--json"], cwd="/", capture_output=True, timeout=60
    )
    assert answer.returncode in (0, 1), answer.stderr.decode()
    return json.loads(answer.stdout)


class ModeServer(Server):
    """A server of that mode's user, with exactly those controls waived that doctor misses."""

    def __init__(self, mode: str, *arguments: str) -> None:
        missing = [row["name"] for row in doctor(mode)["controls"] if row["state"] != "applied"]
        waived = [f"--allow-degraded={name}" for name in missing]
        super().__init__("--log-format", "text", *waived, *arguments)
        self.prefix = prefix_of(mode)
        if self.prefix:
            os.chown(self.folder.name, NOBODY, NOBODY)


def make_server(mode: str, *arguments: str) -> Server:
    return ModeServer(mode, *arguments)
