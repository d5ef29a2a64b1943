# SPDX-License-Identifier: Apache-2.0
"""FastMCP's client, unchanged, over HTTP and with `cellkeep mcp`."""

import os

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError

from harness import LEAN, TOKEN, Server, binary


async def use(client: Client) -> None:
    async with client:
        assert len(await client.list_tools()) == 12
        session = {"session": "fast"}
        await client.call_tool("run_code", {"code": "a = 40", **session})
        result = await client.call_tool("run_code", {"code": "a + 2", **session})
        assert result.structured_content["result"] == "42"
        assert result.structured_content["state"] == "kept"
        with pytest.raises(ToolError, match="ZeroDivisionError"):
            await client.call_tool("run_code", {"code": "1 / 0", **session})
        heard: list[float] = []

        async def on_progress(progress: float, _total: float | None, _message: str | None) -> None:
            heard.append(progress)

        code = {"code": "import time; time.sleep(8); 'slept'", **session}
        slept = await client.call_tool("run_code", code, progress_handler=on_progress)
        assert "slept" in slept.structured_content["result"] and heard
        write = {"path": "a.txt", "text": "x", **session}
        uri = (await client.call_tool("write_file", write)).structured_content["uri"]
        assert (await client.read_resource(uri))[0].text == "x"
        await client.call_tool("close_session", session)


def test_over_http() -> None:
    with Server(*LEAN, "--log-format", "text") as server:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        anyio.run(use, Client(StreamableHttpTransport(f"{server.url}/mcp", headers=headers)))


def test_over_stdio() -> None:
    program = StdioTransport(command=binary(), args=["mcp"], env=dict(os.environ), keep_alive=False)
    anyio.run(use, Client(program))


def test_without_the_token_nothing_is_answered() -> None:
    async def refused(url: str) -> None:
        with pytest.raises(Exception, match="error response|401"):
            async with Client(StreamableHttpTransport(url)) as client:
                await client.list_tools()

    with Server(*LEAN, "--log-format", "text") as server:
        anyio.run(refused, f"{server.url}/mcp")
