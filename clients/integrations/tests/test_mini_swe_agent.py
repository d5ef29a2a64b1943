# SPDX-License-Identifier: Apache-2.0
"""mini-swe-agent: its own agent over a session."""

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import end_session, session_ids
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments import get_environment
from minisweagent.exceptions import Submitted
from minisweagent.models.test_models import DeterministicModel, make_output

from cellkeep_integrations import SandboxBroken
from cellkeep_integrations.mini_swe_agent import CellkeepEnvironment
from harness import Server

CLASS = "cellkeep_integrations.mini_swe_agent.CellkeepEnvironment"


def make(**options: Any) -> CellkeepEnvironment:
    """As a configuration's lines make one."""
    made = get_environment({"environment_class": CLASS, **options})
    assert isinstance(made, CellkeepEnvironment)
    return made


@pytest.fixture
def environment(server: Server) -> Iterator[CellkeepEnvironment]:
    made = make(env={"PAGER": "cat"})
    yield made
    made.cleanup()


def test_an_action_has_an_output(environment: CellkeepEnvironment) -> None:
    command = "echo $PAGER; echo err >&2; [[ $PWD == /workspace ]] && exit 3"
    assert environment.execute({"command": command}) == {
        "output": "cat\nerr\n",
        "returncode": 3,
        "exception_info": "",
    }
    assert environment.execute({"command": "pwd"}, "/tmp")["output"] == "/tmp\n"


def test_the_end_is_a_submission(environment: CellkeepEnvironment) -> None:
    line = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo patch"
    with pytest.raises(Submitted) as caught:
        environment.execute({"command": line})
    assert caught.value.messages[0]["extra"]["submission"] == "patch\n"
    assert environment.execute({"command": line + "; exit 1"})["returncode"] == 1


def test_a_command_that_is_out_of_time(environment: CellkeepEnvironment) -> None:
    answer = environment.execute({"command": "echo begun; sleep 60"}, timeout=1)
    assert (answer["output"], answer["returncode"]) == ("begun\n", -1)
    assert "1 seconds" in answer["exception_info"]


@pytest.mark.parametrize("action", [{"command": "a\0b"}, {"command": None}, {"command": 3}])
def test_what_is_no_command(environment: CellkeepEnvironment, action: dict[str, Any]) -> None:
    assert environment.execute(action)["returncode"] == -1


@pytest.mark.parametrize("options", [{"image": "x"}, {"timeout": 0}, {"limits": "many"}, {"env": {"A": 1}}])
def test_what_is_no_configuration(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        make(**options)


def test_a_session_is_adopted(environment: CellkeepEnvironment) -> None:
    other = make(session=environment.box.id)
    other.execute({"command": "touch seen"})
    other.cleanup()
    assert environment.execute({"command": "ls"})["output"] == "seen\n"


def test_a_dead_session_is_raised(environment: CellkeepEnvironment) -> None:
    end_session(environment.box.id)
    with pytest.raises(SandboxBroken, match="dead"):
        environment.execute({"command": "true"})
    with pytest.raises(SandboxBroken, match="dead"):
        make(session=environment.box.id)


def test_a_full_server_is_raised(full_server: Server) -> None:
    with pytest.raises(SandboxBroken, match="capacity"):
        make(patience=0.1)


def test_no_server_is_raised(nowhere: None) -> None:
    with pytest.raises(SandboxBroken, match="unreachable"):
        make(patience=0)


def agent_of(environment: CellkeepEnvironment, *commands: str) -> DefaultAgent:
    outputs = [make_output("do", [{"command": command}]) for command in commands]
    model = DeterministicModel(outputs=outputs)
    return DefaultAgent(model, environment, system_template="s", instance_template="{{task}} {{system}}")


def test_an_agent(environment: CellkeepEnvironment) -> None:
    agent = agent_of(
        environment,
        "echo 42 > answer; exit 2",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat answer",
    )
    assert agent.run("?") == {"exit_status": "Submitted", "submission": "42\n"}
    kind = agent.serialize()["info"]["config"]["environment_type"]
    assert kind == CLASS


def test_an_agent_does_not_go_on_without_its_sandbox(server: Server) -> None:
    environment = make(limits={"memory_mb": 128})
    agent = agent_of(environment, "python3 -c 'bytearray(1 << 30)'", "echo never")
    with pytest.raises(SandboxBroken) as caught:
        agent.run("?")
    assert caught.value.reason == "oom"
    assert agent.serialize()["info"]["exit_status"] == "SandboxBroken"
    environment.cleanup()
    assert session_ids() == set()
