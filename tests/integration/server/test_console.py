# SPDX-License-Identifier: Apache-2.0
"""`jupyter console --existing FILE`, really run in a terminal."""

import os
import sys
import tempfile
from collections.abc import Iterator

import pexpect
import pytest

from harness import Session


@pytest.fixture
def console(session: Session) -> Iterator[pexpect.spawn]:
    session.execute("x = 40")
    with tempfile.TemporaryDirectory() as home:
        child = pexpect.spawn(
            sys.executable,
            [
                "-m",
                "jupyter_console",
                "--simple-prompt",
                "--existing",
                session.info["connection_file"],
            ],
            env={**os.environ, "HOME": home, "TERM": "dumb", "JUPYTER_PLATFORM_DIRS": "1"},
            encoding="utf-8",
            timeout=60,
        )
        try:
            yield child
        finally:
            child.close(force=True)


def test_the_console_attaches_and_sees_the_variables(
    console: pexpect.spawn, session: Session
) -> None:
    console.expect(r"In \[\d+\]:")
    console.sendline("x + 2")
    console.expect(r"Out\[\d+\]: 42")
    console.expect(r"In \[\d+\]:")
    console.sendline("from_console = 'typed'")
    console.expect(r"In \[\d+\]:")
    assert session.value("from_console") == "'typed'"


def test_the_console_shows_errors_and_asks_for_input(
    console: pexpect.spawn, session: Session
) -> None:
    console.expect(r"In \[\d+\]:")
    console.sendline("1 / 0")
    console.expect("ZeroDivisionError")
    console.expect(r"In \[\d+\]:")
    console.sendline("name = input('who? ')")
    console.expect(r"who\? ")
    console.sendline("Ada")
    console.expect(r"In \[\d+\]:")
    assert session.value("name") == "'Ada'"
