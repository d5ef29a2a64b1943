# SPDX-License-Identifier: Apache-2.0
"""A session used by an attacker: the hostile program is in its workspace, and Python runs there.

Each attempt can be made outside, too: the positive control, which shows that this host has the door
and that the attempt finds it.
"""

import ctypes
import functools
import os
import signal
import subprocess
from pathlib import Path

from harness import Server, Session, binary

PYTHON = "/usr/bin/python3"


def probe_program() -> str:
    return os.environ.get("CELLKEEP_PROBE", str(Path(binary()).parent / "cellkeep_probe"))


@functools.cache
def call_number(name: str) -> str:
    """A system call's number on this machine, as libseccomp knows it."""
    library = ctypes.CDLL("libseccomp.so.2")
    number = library.seccomp_syscall_resolve_name(name.encode())
    assert number >= 0, f"no system call {name}"
    return str(number)


def spell(arguments: tuple[object, ...]) -> list[str]:
    """'call:mount' becomes the call's number, everything else its text."""
    return [
        call_number(text[5:]) if (text := str(one)).startswith("call:") else text
        for one in arguments
    ]


def outcome_of(returncode: int, output: str) -> str:
    return f"signal {-returncode}" if returncode < 0 else output.strip()


def probe_outside(*arguments: object) -> str:
    ended = subprocess.run(
        [probe_program(), *spell(arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return outcome_of(ended.returncode, ended.stdout)


def python_outside(code: str, *before: str, **more: object) -> str:
    """The output of the program as the test's own user: as root, it is the positive control."""
    ended = subprocess.run(
        [*before, PYTHON, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/tmp",
        **more,
    )
    return outcome_of(ended.returncode, ended.stdout or ended.stderr)


class Attacker:
    def __init__(self, server: Server, **fields: object) -> None:
        self.server = server
        self.session: Session = server.create(**fields)
        put = server.request(
            "PUT", self.session.path + "/files/probe", data=Path(probe_program()).read_bytes()
        )
        assert put.status_code in (200, 201, 204), put.text
        self.python("import os, subprocess\nos.chmod('/workspace/probe', 0o700)")

    def python(self, code: str) -> str:
        """The output of the code. It must end without an error: it catches and prints a refusal."""
        result = self.session.execute(code)
        assert result["status"] == "ok", result
        return result["stdout"].strip()

    def probe(self, *arguments: object) -> str:
        """The output of the hostile program, started by Python."""
        said = self.python(
            "ended = subprocess.run(\n"
            f"    ['/workspace/probe', *{spell(arguments)!r}], capture_output=True, text=True)\n"
            "print(ended.returncode, ended.stdout)"
        )
        returncode, _, output = said.partition(" ")
        return outcome_of(int(returncode), output)

    def is_well(self) -> bool:
        return self.python("print(6 * 7)") == "42"


SIGSYS = f"signal {int(signal.SIGSYS)}"
