# SPDX-License-Identifier: Apache-2.0
"""smolagents' CodeAgent whose code runs on the server: its DockerExecutor without Docker.

DockerExecutor starts a container with a Jupyter kernel gateway and then speaks to that gateway's port. Here the port
is the server's. A model that says what a test wrote stands for the language model.
"""

import io
from collections.abc import Callable, Iterator

import pytest
import requests
from harness import TOKEN, Server
from rich.console import Console
from smolagents import ChatMessage, CodeAgent, Model
from smolagents.memory import ActionStep
from smolagents.models import MessageRole
from smolagents.monitoring import AgentLogger, LogLevel, TokenUsage
from smolagents.remote_executors import DockerExecutor, RemotePythonExecutor, _create_kernel_http
from smolagents.utils import AgentError


class ServerExecutor(DockerExecutor):
    """As DockerExecutor.__init__ does it, after the container."""

    def __init__(self, server: Server) -> None:
        log = AgentLogger(LogLevel.INFO, Console(force_terminal=False, file=io.StringIO()))
        RemotePythonExecutor.__init__(self, [], log)
        base = server.url.rstrip("/")
        self.kernel_id = _create_kernel_http(f"{base}/api/kernels?token={TOKEN}", log)
        channels = f"{base}/api/kernels/{self.kernel_id}/channels?token={TOKEN}"
        self.ws_url = channels.replace("http", "ws", 1)
        self.installed_packages = self.install_packages([])


class Script(Model):
    """Says one prepared cell after the other."""

    def __init__(self, *cells: str) -> None:
        super().__init__(model_id="script")
        self.cells = iter(cells)

    def generate(self, messages: list, **_: object) -> ChatMessage:
        text = f"Thought: the next step.\n<code>\n{next(self.cells)}\n</code>"
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=text,
            token_usage=TokenUsage(input_tokens=1, output_tokens=1),
        )


@pytest.fixture
def executor(server: Server) -> Iterator[ServerExecutor]:
    made = ServerExecutor(server)
    yield made
    gone = requests.delete(f"{server.url}/api/kernels/{made.kernel_id}?token={TOKEN}")
    assert gone.status_code == 204


@pytest.fixture
def agent(executor: ServerExecutor) -> Callable[..., CodeAgent]:
    def make(*cells: str) -> CodeAgent:
        return CodeAgent(
            tools=[], model=Script(*cells), executor=executor, max_steps=len(cells), verbosity_level=0
        )

    return make


def steps(agent: CodeAgent) -> list[ActionStep]:
    return [step for step in agent.memory.steps if isinstance(step, ActionStep)]


def test_an_agent_computes_in_steps_and_answers(agent: Callable[..., CodeAgent]) -> None:
    made = agent("import numpy as np\na = 2\nprint('ready')", "final_answer(float(np.sqrt(a * 8)))")
    assert made.run("Compute.") == 4.0
    assert "ready" in steps(made)[0].observations


def test_an_agent_s_answer_may_be_structured(agent: Callable[..., CodeAgent]) -> None:
    made = agent("final_answer({'names': ['\u00e4', 'b'], 'sum': 3})")
    assert made.run("Compute.") == {"names": ["\u00e4", "b"], "sum": 3}


def test_an_agent_gets_a_table_of_the_session(agent: Callable[..., CodeAgent]) -> None:
    made = agent(
        "import pandas as pd\ntable = pd.DataFrame({'a': [1, 2, 3]})",
        "final_answer(int(table.a.sum()))",
    )
    assert made.run("Compute.") == 6


def test_an_agent_goes_on_after_its_errors(agent: Callable[..., CodeAgent]) -> None:
    """The executor leaves its WebSocket at `error` and opens another for the next cell, at once."""
    failing = ["undefined_variable"] * 10
    working = [f"kept = {turn}\nprint('after', kept)" for turn in range(10)]
    cells = [cell for pair in zip(failing, working, strict=True) for cell in pair]
    made = agent(*cells, "final_answer(kept)")
    assert made.run("Compute.") == 9
    for turn in range(10):
        failed, worked = steps(made)[2 * turn : 2 * turn + 2]
        assert "NameError" in str(failed.error), failed.error
        assert worked.error is None and f"after {turn}" in worked.observations


def test_variables_are_sent_into_the_session(executor: ServerExecutor) -> None:
    executor.send_variables({"numbers": [1, 2, 3], "text": "\u00e4"})
    assert executor("print(sum(numbers), text)").logs == "6 \u00e4\n"


def test_a_syntax_error_is_an_error_of_the_agent(executor: ServerExecutor) -> None:
    with pytest.raises(AgentError, match="SyntaxError"):
        executor("print('never'")
    assert executor("print('still here')").logs == "still here\n"


def test_large_output_is_whole(executor: ServerExecutor) -> None:
    assert executor("print('x' * 300_000)").logs == "x" * 300_000 + "\n"


def test_a_wrong_token_starts_no_kernel(server: Server) -> None:
    log = AgentLogger(LogLevel.OFF)
    with pytest.raises(RuntimeError, match="Status 401"):
        _create_kernel_http(f"{server.url.rstrip('/')}/api/kernels?token=wrong", log)
