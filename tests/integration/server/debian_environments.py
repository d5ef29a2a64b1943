# SPDX-License-Identifier: Apache-2.0
"""`cellkeep env` with packages of an archive of Debian's, as one of the two users of the tests."""

import json
import os
import subprocess
from pathlib import Path

from debian_archive import DebianArchive
from harness import binary
from modes import prefix_of
from wheels import Environments


class ModeEnvironments(Environments):
    """`cellkeep env` of that mode's user."""

    def __init__(self, mode: str, folder: Path, images: Path | None, archive: DebianArchive) -> None:
        super().__init__(folder, "")
        self.prefix = prefix_of(mode, images)
        self.variables["APT_CONFIG"] = str(archive.settings)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*self.prefix, binary(), "env", *arguments],
            cwd="/",
            env={**os.environ, **self.variables, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def shown(self, name: str) -> dict:
        return json.loads(self.run("show", name, "--json").stdout)
