# SPDX-License-Identifier: Apache-2.0
"""One server for all; what was found goes into a file for table.py.

The tests that leave their session as it was share one, because to start R takes a second of a processor.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from languages import LANGUAGES

from harness import LEAN, Client, Server, Session
from language import Language

FOUND = pytest.StashKey[dict[str, dict[str, str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--language", choices=list(LANGUAGES), help="only this one")
    parser.addoption("--results", type=Path, help="the file for what was found, JSON")


def chosen(config: pytest.Config) -> list[Language]:
    only = config.getoption("--language")
    return [LANGUAGES[only]] if only else list(LANGUAGES.values())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "language" in metafunc.fixturenames:
        languages = chosen(metafunc.config)
        names = [language.name for language in languages]
        metafunc.parametrize("language", languages, ids=names, scope="session")


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> Iterator[Server]:
    offer = [each for language in chosen(pytestconfig) for each in language.serve]
    with Server(*LEAN, "--log-format", "text", *offer) as running:
        yield running


def create(server: Server, language: Language) -> Session:
    """With time for everything on a busy machine: what ends early says so itself."""
    return server.create(language=language.name, limits={"wall_ms": 100_000, "cpu_ms": 100_000})


@pytest.fixture
def session(server: Server, language: Language) -> Iterator[Session]:
    created = create(server, language)
    yield created
    assert created.delete() == 204


@pytest.fixture(scope="session")
def shared(server: Server, language: Language) -> Iterator[Session]:
    """What the language's declaration defines is defined in it."""
    created = create(server, language)
    for cell in language.define:
        assert created.execute(cell)["status"] == "ok", cell
    yield created
    assert created.delete() == 204


@pytest.fixture
def client(session: Session) -> Iterator[Client]:
    attached = Client(session)
    yield attached
    attached.close()


@pytest.fixture
def shared_client(shared: Session) -> Iterator[Client]:
    attached = Client(shared)
    yield attached
    attached.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "language" in callspec.params:
        found = item.config.stash.setdefault(FOUND, {})
        of_language = found.setdefault(callspec.params["language"].name, {})
        key = item.originalname.removeprefix("test_")
        # Set-up, call, tear-down: the worst of them counts.
        if report.outcome != "passed" or key not in of_language:
            of_language[key] = report.outcome
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if results := session.config.getoption("--results"):
        results.parent.mkdir(parents=True, exist_ok=True)
        found = session.config.stash.get(FOUND, {})
        results.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
