# SPDX-License-Identifier: Apache-2.0
"""Named environments of what projects ask for, from the public index."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LEAN, Server, Session, wait_until
from projects import BUILT, PROJECTS, REFUSED, build_arguments
from wheels import Environments

PUBLIC_INDEX = ""

@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    return Environments(tmp_path_factory.mktemp("projects"), PUBLIC_INDEX)


@pytest.fixture(scope="module")
def server(environments: Environments) -> Iterator[Server]:
    running = Server(*LEAN, "--log-format", "text")
    running.environment = environments.variables
    with running:
        yield running


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PROJECTS)
def test_a_projects_requirements_are_an_environment(
    server: Server, environments: Environments, name: str
) -> None:
    requirements, code, value = PROJECTS[name]
    built = BUILT.get(name, "")
    made = environments.create(name, *requirements, more=build_arguments(built))
    assert made.returncode == 0, made.stderr
    shown = json.loads(environments.run("show", name, "--json").stdout)
    for requirement in requirements:
        package, version = requirement.lower().split("==")
        assert shown["packages"][package] == version
    assert shown["built_from_source"] == ([built] if built else [])
    wait_until(lambda: f"python3-{name}" in server.get("/api/kernelspecs").json()["kernelspecs"], 60, "it is offered")
    answer = server.post("/v1/sessions", {"environment": name})
    assert answer.status_code == 201, answer.text
    session = Session(server, answer.json())
    assert session.value(code) == value
    assert session.delete() == 204


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_an_environment_says_why_and_leaves_nothing(
    environments: Environments, name: str
) -> None:
    requirements, reason = REFUSED[name]
    before = sorted(path.name for path in environments.store.rglob("*"))
    made = environments.create(name, *requirements)
    assert made.returncode != 0
    assert reason in made.stderr, made.stderr
    assert requirements[0].split("==")[0] in made.stderr
    assert sorted(path.name for path in environments.store.rglob("*")) == before
