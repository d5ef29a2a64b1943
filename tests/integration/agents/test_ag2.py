# SPDX-License-Identifier: Apache-2.0
"""ag2's executors, unchanged: JupyterCodeExecutor on the server, EmbeddedIPythonCodeExecutor on the kernelspec."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from autogen.coding import CodeBlock
from autogen.coding.jupyter import (
    EmbeddedIPythonCodeExecutor,
    JupyterCodeExecutor,
    JupyterConnectionInfo,
)

import trials
from harness import TOKEN, Server
from jupyter_home import KERNEL, JupyterHome
from trials import Answer, Execute


def connection(server: Server, token: str = TOKEN) -> JupyterConnectionInfo:
    port = urlsplit(server.url).port
    return JupyterConnectionInfo(host="127.0.0.1", use_https=False, port=port, token=token)


def execute_with(executor: JupyterCodeExecutor | EmbeddedIPythonCodeExecutor) -> Execute:
    def execute(*codes: str) -> Answer:
        blocks = [CodeBlock(code=code, language="python") for code in codes]
        result = executor.execute_code_blocks(blocks)
        return Answer(result.exit_code, result.output, [Path(name) for name in result.output_files or []])

    return execute


@pytest.fixture
def remote(server: Server, tmp_path: Path) -> Iterator[JupyterCodeExecutor]:
    with JupyterCodeExecutor(connection(server), output_dir=tmp_path) as executor:
        yield executor


@pytest.fixture
def embedded(in_home: JupyterHome, tmp_path: Path) -> Iterator[EmbeddedIPythonCodeExecutor]:
    executor = EmbeddedIPythonCodeExecutor(kernel_name=KERNEL, output_dir=str(tmp_path))
    assert len(in_home.kernels()) == 1
    yield executor
    # It has no end of its own.
    executor._kernel_client.stop_channels()
    executor._kernel_manager.shutdown_kernel()


@pytest.mark.parametrize("trial", trials.TRIALS, ids=lambda trial: trial.__name__)
def test_on_the_server(remote: JupyterCodeExecutor, trial: Callable[[Execute], None]) -> None:
    trial(execute_with(remote))


@pytest.mark.parametrize("trial", trials.TRIALS, ids=lambda trial: trial.__name__)
def test_on_the_kernelspec(
    embedded: EmbeddedIPythonCodeExecutor, trial: Callable[[Execute], None]
) -> None:
    trial(execute_with(embedded))


def test_a_restart_on_the_server(remote: JupyterCodeExecutor) -> None:
    trials.a_restart_forgets(execute_with(remote), remote.restart)


def test_a_restart_on_the_kernelspec(embedded: EmbeddedIPythonCodeExecutor) -> None:
    trials.a_restart_forgets(execute_with(embedded), embedded.restart)


def test_its_timeout_ends_its_waiting(server: Server, tmp_path: Path) -> None:
    with JupyterCodeExecutor(connection(server), output_dir=tmp_path, timeout=1) as executor:
        answer = execute_with(executor)("import time; time.sleep(100)")
        assert answer.exit_code == 1 and "Timeout" in answer.output, answer


def test_a_wrong_token_starts_nothing(server: Server, tmp_path: Path) -> None:
    refused = requests.get(f"{server.url}/api/kernels", headers={"Authorization": "token wrong"})
    assert refused.status_code == 401
    with pytest.raises(KeyError, match="kernelspecs"):  # of the answer, which is an error
        JupyterCodeExecutor(connection(server, "wrong"), output_dir=tmp_path)


def test_an_unknown_kernel_is_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not installed"):
        JupyterCodeExecutor(connection(server), kernel_name="cobol", output_dir=tmp_path)
