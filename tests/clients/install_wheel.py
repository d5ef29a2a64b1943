# SPDX-License-Identifier: Apache-2.0
"""Builds the Python client's wheel from the tree and installs it into a fresh virtual environment,
both without any network: what the tests then import is what a user would have installed.

usage: install_wheel.py SOURCE ENVIRONMENT
"""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL)


def main() -> None:
    source, environment = (Path(argument).resolve() for argument in sys.argv[1:3])
    shutil.rmtree(environment, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="ck-wheel-") as scratch:
        tree = Path(scratch) / "source"
        shutil.copytree(source, tree, ignore=shutil.ignore_patterns("__pycache__", "tests"))
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
        quiet = ("--quiet", "--no-deps", "--no-index", "--no-cache-dir")
        run(*pip, "wheel", *quiet, "--no-build-isolation", "--wheel-dir", scratch, tree)
        run(sys.executable, "-m", "venv", "--without-pip", environment)
        # The client's dependency and the test runner are those of the locked environment.
        packages = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        (packages / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        (wheel,) = Path(scratch).glob("cellkeep-*.whl")
        run(*pip, "--python", environment / "bin/python", "install", *quiet, wheel)


if __name__ == "__main__":
    main()
