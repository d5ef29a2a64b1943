# SPDX-License-Identifier: Apache-2.0
"""The server's program is replaced while the protocol's own client is connected: it notices nothing."""

from collections.abc import Iterator

import anyio
import pytest
from mcp import Client

from conftest import text_of, with_client
from harness import LEAN, Server
from upgrades import BARE, Asked, open_place

UPGRADES = 3


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with open_place("root"), Server(*LEAN, *BARE) as running:
        running.wait_until_ready()
        yield running


def test_a_client_works_on_through_upgrades(server: Server, era: str) -> None:
    name = f"upgrade-{era}"

    async def use(client: Client) -> None:
        async def run(code: str) -> object:
            return await client.call_tool("run_code", {"code": code, "session": name})

        assert (await run("n = 0")).structured_content["session_created"]
        for turn in range(1, UPGRADES + 1):
            await anyio.to_thread.run_sync(Asked(server).wait_until_served)
            done = await run("n += 1; n")
            assert not done.is_error, text_of(done)
            assert done.structured_content["result"] == str(turn)
            assert done.structured_content["state"] == "kept"
        await client.call_tool("close_session", {"session": name})

    with_client(server, era, use)
