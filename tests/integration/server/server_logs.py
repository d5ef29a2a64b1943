# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: a failed test shows what the servers have said. One that all tests of a file share goes
on after a failure, and would tell nobody."""

from collections.abc import Generator

import pytest

from harness import Server

CHARACTERS_MAX = 8_000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for server in Server.running:
            title = f"end of the log of the server at {server.url}"
            report.sections.append((title, server.output()[-CHARACTERS_MAX:]))
    return report
