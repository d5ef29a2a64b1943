# SPDX-License-Identifier: Apache-2.0
"""What the list of tools costs a model, counted with o200k_base, which the package bpe-openai brings."""

import json

import bpe_openai
from mcp import Client

from conftest import with_client
from harness import Server

TOKENS_MAX = 2000


def test_the_whole_list_of_tools_is_small(server: Server) -> None:
    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        text = json.dumps(listed, separators=(",", ":"))
        tokens = len(bpe_openai.get_encoding("o200k_base").encode(text))
        assert len(tools) == 11
        assert tokens < TOKENS_MAX, f"{tokens} tokens, {len(text)} bytes"

    with_client(server, "2026-07-28", use)
