# SPDX-License-Identifier: Apache-2.0
"""What the list of tools costs a model, counted with o200k_base, which the package bpe-openai brings."""

import json
from pathlib import Path

import bpe_openai
import pytest
from mcp import Client

from conftest import with_client
from harness import Server
from tool_servers import await_tools, program, serving

TOKENS_MAX = 2000


def tokens_of(tools: list) -> int:
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    return len(bpe_openai.get_encoding("o200k_base").encode(json.dumps(listed, separators=(",", ":"))))


def test_the_whole_list_of_tools_is_small(server: Server) -> None:
    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert len(tools) == 12
        assert tokens_of(tools) < TOKENS_MAX

    with_client(server, "2026-07-28", use)


@pytest.mark.parametrize(
    ("count", "said"), [(1, "tools.server0.echo(text: str)"), (5, "tools.server4.echo"), (20, "tools.search(word)")]
)
def test_the_list_stays_small_with_tools_for_code(tmp_path: Path, count: int, said: str) -> None:
    rules = {"default": "deny", "tools": {"echo": "allow", "create*": "allow", "structured": "allow"}}
    servers = {f"server{number}": program(tmp_path, rules=rules) for number in range(count)}

    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        (run_code,) = [tool for tool in tools if tool.name == "run_code"]
        assert said in run_code.description
        assert tokens_of(tools) < TOKENS_MAX

    with serving(tmp_path, **servers) as running:
        session = running.create()
        for name in servers:
            await_tools(session, f"{name}.echo")
        with_client(running, "2026-07-28", use)
