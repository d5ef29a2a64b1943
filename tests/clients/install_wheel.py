# SPDX-License-Identifier: Apache-2.0
"""Builds the wheels of our Python packages from the tree and installs them into a fresh virtual environment,
both without any network: what the tests then import is what a user would have installed.

usage: install_wheel.py SOURCE... ENVIRONMENT
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
    *sources, environment = (Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(environment, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="ck-wheel-") as scratch:
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
        quiet = ("--quiet", "--no-deps", "--no-index", "--no-cache-dir")
        for number, source in enumerate(sources):
            tree = Path(scratch) / f"source-{number}"
            shutil.copytree(source, tree, ignore=shutil.ignore_patterns("__pycache__", "tests"))
            run(*pip, "wheel", *quiet, "--no-build-isolation", "--wheel-dir", scratch, tree)
        run(sys.executable, "-m", "venv", "--without-pip", environment)
        # What our packages need and the test runner are those of the locked environment.
        packages = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        (packages / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        wheels = Path(scratch).glob("cellkeep*.whl")
        run(*pip, "--python", environment / "bin/python", "install", *quiet, *wheels)


if __name__ == "__main__":
    main()
