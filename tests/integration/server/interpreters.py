# SPDX-License-Identifier: Apache-2.0
"""The CPythons of this machine that environments can bring: those that CELLKEEP_TEST_PYTHONS names (paths
with colons between), and python3.9 to python3.14 on PATH but for Debian's 3.11."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "CELLKEEP_TEST_PYTHONS"
DEFAULT = "/usr/bin/python3.11"  # kPythonProgram (kernel-manager/environments/python_program.hpp)
MINORS = range(9, 15)
QUESTION = (
    "import os, sys; print(*sys.version_info[:3], os.path.realpath(sys.executable), sys.base_prefix, "
    "sys.implementation.name)"
)


@dataclass(frozen=True)
class Interpreter:
    minor: int
    version: str  # "3.12.1"
    program: str
    prefix: str


def ask(program: str) -> Interpreter | None:
    """None: it is none of these, as the shims of version managers for what is not switched on."""
    try:
        said = subprocess.run([program, "-I", "-c", QUESTION], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    words = said.stdout.split()
    if said.returncode != 0 or len(words) != 6 or words[0] != "3" or words[5] != "cpython":
        return None
    if int(words[1]) not in MINORS or words[3] == DEFAULT:
        return None
    return Interpreter(int(words[1]), ".".join(words[:3]), words[3], words[4])


def found() -> list[Interpreter]:
    """One of each minor version, those that were named first."""
    named = [name for name in os.environ.get(VARIABLE, "").split(":") if name]
    on_path = [shutil.which(f"python3.{minor}") for minor in MINORS]
    by_minor: dict[int, Interpreter] = {}
    for program in [*named, *(one for one in on_path if one)]:
        interpreter = ask(str(Path(program)))
        if interpreter is not None:
            by_minor.setdefault(interpreter.minor, interpreter)
    return [by_minor[minor] for minor in sorted(by_minor)]
