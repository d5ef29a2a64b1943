# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: a failed test shows the end of the log of each server that runs. A server that all tests
of a file share runs on after a failure, and its log is removed at its end."""

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
