# SPDX-License-Identifier: Apache-2.0
"""smolagents: an executor and whole agents over a session."""

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import end_session, session_ids
from smolagents import CodeAgent, FinalAnswerTool, Tool
from smolagents.models import ChatMessage, MessageRole, Model
from smolagents.utils import AgentError

from cellkeep_integrations import Box, SandboxLost
from cellkeep_integrations.smolagents import CellkeepExecutor
from harness import Server


@pytest.fixture
def executor(server: Server) -> Iterator[CellkeepExecutor]:
    made = CellkeepExecutor()
    yield made
    made.cleanup()


def test_variables_last_and_output_comes(executor: CellkeepExecutor) -> None:
    assert executor("a = 40; print('said')").logs == "said\n"
    answer = executor("a + 2")
    assert (answer.output, answer.is_final_answer) == ("42", False)


def test_variables_are_sent(executor: CellkeepExecutor) -> None:
    executor.send_variables({"numbers": [1, 2, 3], "name": "x"})
    assert executor("sum(numbers), name").output == "(6, 'x')"


@pytest.mark.parametrize("value", [41, "text", [1, {"a": None}], "x" * 300_000])
def test_a_final_answer_is_a_value(executor: CellkeepExecutor, value: Any) -> None:
    executor.send_tools({"final_answer": FinalAnswerTool()})
    executor.send_variables({"value": value})
    answer = executor("print('before')\nfinal_answer(value)")
    assert (answer.output, answer.is_final_answer, answer.logs) == (value, True, "before\n")


def test_a_picture_is_one(executor: CellkeepExecutor) -> None:
    answer = executor("import matplotlib.pyplot as p; _ = p.plot([1, 2]); p.show()")
    assert answer.output.size[0] > 100


@pytest.mark.parametrize("code", ["1 / 0", "def", "raise SystemError('x')", "import nothing", "undefined"])
def test_code_that_fails_is_the_agent_s_error(executor: CellkeepExecutor, code: str) -> None:
    with pytest.raises(AgentError):
        executor(code)
    assert executor("1 + 1").output == "2"


@pytest.mark.parametrize(
    ("code", "options", "reason"),
    [
        ("b'x' * (1 << 30)", {"limits": {"memory_mb": 128}}, "oom"),
        ("import time; time.sleep(60)", {"timeout": 1.0}, "timeout"),
        ("import os; os._exit(3)", {}, "dead"),
        ("open('f', 'wb').write(bytes(40 << 20))", {"limits": {"disk_mb": 16}}, "disk_full"),
    ],
)
def test_a_broken_sandbox_is_not(server: Server, code: str, options: dict[str, Any], reason: str) -> None:
    executor = CellkeepExecutor(**options)
    with pytest.raises(SandboxLost) as caught:
        executor(code)
    assert caught.value.reason == reason
    executor.cleanup()


def test_nor_is_a_dead_session(executor: CellkeepExecutor) -> None:
    end_session(executor.box.id)
    with pytest.raises(SandboxLost) as caught:
        executor("1")
    assert caught.value.reason == "dead"


@pytest.mark.parametrize("given", [{"timeout": 0.0}, {"timeout": -1.0}])
def test_what_is_no_time(given: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        CellkeepExecutor(**given)


def test_a_box_is_made_already(server: Server) -> None:
    with Box.create() as box:
        assert CellkeepExecutor(box=box)("2 + 2").output == "4"
        with pytest.raises(ValueError):
            CellkeepExecutor(box=box, language="python")


class Scripted(Model):
    """Says what it was told to."""

    def __init__(self, *codes: str) -> None:
        super().__init__(model_id="scripted")
        self.codes = list(codes)

    def generate(self, messages: list[ChatMessage], **_: Any) -> ChatMessage:
        code = self.codes.pop(0)
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought.\n<code>\n{code}\n</code>")


class Double(Tool):
    name = "double"
    description = "Doubles a number."
    inputs = {"number": {"type": "integer", "description": "the number"}}
    output_type = "integer"

    def forward(self, number: int) -> int:
        return 2 * number


def run_agent(*codes: str, **options: Any) -> tuple[CodeAgent, Any]:
    executor = CellkeepExecutor(**options)
    agent = CodeAgent([Double()], Scripted(*codes), executor=executor, verbosity_level=0)
    try:
        return agent, agent.run("?", max_steps=4)
    finally:
        agent.cleanup()


def test_an_agent(server: Server) -> None:
    agent, answer = run_agent("a = double(20)", "1 / 0", "final_answer(a + 2)")
    assert answer == 42
    assert "ZeroDivisionError" in str(agent.memory.steps[2].error)
    assert session_ids() == set()


def test_an_agent_does_not_go_on_without_its_sandbox(server: Server) -> None:
    with pytest.raises(SandboxLost) as caught:
        run_agent("x = b'x' * (1 << 30)", "final_answer(1)", limits={"memory_mb": 128})
    assert caught.value.reason == "oom"
    assert session_ids() == set()
