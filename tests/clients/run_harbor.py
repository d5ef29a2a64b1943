# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the adapter for Harbor, with the packages installed as a user would, under the CPython of the
locked harbor environment. Exit code 77: there is none (scripts/lib/clients.sh), and the last line says why.

usage: run_harbor.py SOURCE ENVIRONMENT
"""

import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def main() -> int:
    source, environment = (Path(argument).resolve() for argument in sys.argv[1:])
    locked = source / "build/environments/harbor"
    if not (locked / ".made-from").exists():
        print("Harbor needs CPython 3.12 or newer: none on PATH runs, and CELLKEEP_TEST_PYTHON names none")
        return SKIPPED
    integrations = source / "clients/integrations"
    install = [locked / "bin/python", "-B", source / "tests/clients/install_wheel.py"]
    subprocess.run([*install, source / "clients/python", integrations, environment], check=True)
    tests = integrations / "tests"
    pytest = [environment / "bin/python", "-B", "-m", "pytest", "-c", tests / "pytest.ini"]
    return subprocess.run([*pytest, *sorted(tests.glob("test_harbor*.py"))], cwd=tests, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
