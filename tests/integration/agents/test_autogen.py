# SPDX-License-Identifier: Apache-2.0
"""AutoGen's executors, unchanged: DockerJupyterCodeExecutor on the server, JupyterCodeExecutor on the kernelspec.

The first takes any Jupyter gateway's connection; its Docker server is not used.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from autogen_ext.code_executors.docker_jupyter import DockerJupyterCodeExecutor
from autogen_ext.code_executors.docker_jupyter._jupyter_server import JupyterConnectionInfo
from autogen_ext.code_executors.jupyter import JupyterCodeExecutor

import trials
from harness import TOKEN, Server
from jupyter_home import KERNEL, JupyterHome
from trials import Answer, Execute

Executor = DockerJupyterCodeExecutor | JupyterCodeExecutor


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def execute_with(loop: asyncio.AbstractEventLoop, executor: Executor) -> Execute:
    def execute(*codes: str) -> Answer:
        blocks = [CodeBlock(code=code, language="python") for code in codes]
        result = loop.run_until_complete(executor.execute_code_blocks(blocks, CancellationToken()))
        return Answer(result.exit_code, result.output, [Path(name) for name in result.output_files])

    return execute


@pytest.fixture
def remote(
    loop: asyncio.AbstractEventLoop, server: Server, tmp_path: Path
) -> Iterator[DockerJupyterCodeExecutor]:
    port = urlsplit(server.url).port
    connection = JupyterConnectionInfo(host="127.0.0.1", use_https=False, port=port, token=TOKEN)
    executor = DockerJupyterCodeExecutor(connection, output_dir=tmp_path)
    loop.run_until_complete(executor.start())
    yield executor
    loop.run_until_complete(executor.stop())


@pytest.fixture
def local(
    loop: asyncio.AbstractEventLoop, in_home: JupyterHome, tmp_path: Path
) -> Iterator[JupyterCodeExecutor]:
    executor = JupyterCodeExecutor(kernel_name=KERNEL, output_dir=tmp_path)
    loop.run_until_complete(executor.start())
    assert len(in_home.kernels()) == 1
    yield executor
    loop.run_until_complete(executor.stop())


@pytest.mark.parametrize("trial", trials.TRIALS, ids=lambda trial: trial.__name__)
def test_on_the_server(
    loop: asyncio.AbstractEventLoop,
    remote: DockerJupyterCodeExecutor,
    trial: Callable[[Execute], None],
) -> None:
    trial(execute_with(loop, remote))


@pytest.mark.parametrize("trial", trials.TRIALS, ids=lambda trial: trial.__name__)
def test_on_the_kernelspec(
    loop: asyncio.AbstractEventLoop, local: JupyterCodeExecutor, trial: Callable[[Execute], None]
) -> None:
    trial(execute_with(loop, local))


def test_a_restart_on_the_server(
    loop: asyncio.AbstractEventLoop, remote: DockerJupyterCodeExecutor
) -> None:
    trials.a_restart_forgets(
        execute_with(loop, remote), lambda: loop.run_until_complete(remote.restart())
    )


def test_a_restart_on_the_kernelspec(
    loop: asyncio.AbstractEventLoop, local: JupyterCodeExecutor
) -> None:
    trials.a_restart_forgets(
        execute_with(loop, local), lambda: loop.run_until_complete(local.restart())
    )
