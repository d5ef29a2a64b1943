# SPDX-License-Identifier: Apache-2.0
"""jupyter-mcp-server, unchanged: an MCP client runs code in the server's kernels through it."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import requests
from harness import TOKEN, Server
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

Call = Callable[..., Awaitable[str]]


def text(result: object) -> str:
    return "\n".join(getattr(part, "text", f"<{part.type}>") for part in result.content)


def with_tools(server: Server, folder: Path, use: Callable[[Call], Awaitable[None]]) -> None:
    """Starts jupyter-mcp-server on this server and calls its tools. It leaves its kernel running."""
    url = server.url.rstrip("/")
    program = StdioServerParameters(
        command=str(Path(sys.executable).parent / "jupyter-mcp-server"),
        args=["start", "--transport", "stdio"],
        env={**os.environ, "HOME": str(folder), "JUPYTER_URL": url, "JUPYTER_TOKEN": TOKEN},
        cwd=folder,
    )

    async def run() -> None:
        with (folder / "mcp.log").open("w", encoding="utf-8") as log:
            async with stdio_client(program, errlog=log) as (read, write):
                async with ClientSession(read, write) as session:
                    await session.initialize()

                    async def call(tool: str, **arguments: object) -> str:
                        return text(await session.call_tool(tool, arguments))

                    await use(call)

    asyncio.run(run())
    for kernel in server.get("/api/kernels").json():
        path = f"{url}/api/kernels/{kernel['id']}?token={TOKEN}"
        assert requests.delete(path).status_code == 204


def test_it_runs_code_and_keeps_variables(server: Server, tmp_path: Path) -> None:
    async def use(call: Call) -> None:
        assert (await call("execute_code", code="a = 40\nprint('hello')")).strip() == "hello"
        assert (await call("execute_code", code="a + 2")).strip() == "42"

    with_tools(server, tmp_path, use)


def test_it_goes_on_after_an_error(server: Server, tmp_path: Path) -> None:
    async def use(call: Call) -> None:
        for turn in range(10):
            assert "ZeroDivisionError" in await call("execute_code", code="1 / 0")
            assert (await call("execute_code", code=f"print({turn})")).strip() == str(turn)

    with_tools(server, tmp_path, use)


def test_it_lists_the_kernels_and_runs_in_one_by_its_id(server: Server, tmp_path: Path) -> None:
    url = f"{server.url.rstrip('/')}/api/kernels?token={TOKEN}"
    kernel = requests.post(url).json()["id"]

    async def use(call: Call) -> None:
        assert kernel in await call("list_kernels")
        await call("execute_code", code="there = 7", kernel_id=kernel)
        assert (await call("execute_code", code="there * 6", kernel_id=kernel)).strip() == "42"
        assert "NameError" in await call("execute_code", code="there")  # its own kernel

    with_tools(server, tmp_path, use)


def test_a_cell_that_takes_too_long_is_interrupted(server: Server, tmp_path: Path) -> None:
    async def use(call: Call) -> None:
        await call("execute_code", code="kept = 1")
        said = await call("execute_code", code="while True: pass", timeout=2)
        assert "TIMEOUT" in said.upper(), said
        assert (await call("execute_code", code="kept + 1")).strip() == "2"

    with_tools(server, tmp_path, use)
