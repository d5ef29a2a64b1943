# SPDX-License-Identifier: Apache-2.0
"""What the client asks and says about calls that wait for a person. The server's side has tests of its own."""

import asyncio
import json

import httpx
import pytest

from cellkeep import Approval, AsyncClient, Client, Conflict

ONE = {
    "id": "apr_1",
    "session_id": "ses_1",
    "execution_id": None,
    "owner": "analyst",
    "server": "github",
    "tool": "github.create_issue",
    "reason": "changed_tool",
    "description": "Opens an issue.",
    "arguments": '{"title":"t"}',
    "expires_at": "2026-11-22T04:40:00.000000Z",
}
GONE = {"type": "/problems/conflict", "title": "Conflict", "status": 409, "detail": "it no longer waits"}


def answer(request: httpx.Request) -> httpx.Response:
    if request.method == "GET":
        assert request.url.path == "/v1/approvals"
        return httpx.Response(200, json={"approvals": [ONE]})
    decision = json.loads(request.read())
    if request.url.path == "/v1/approvals/apr_1" and decision in ({"decision": "approve"}, {"decision": "deny"}):
        return httpx.Response(204)
    return httpx.Response(409, json=GONE, headers={"Content-Type": "application/problem+json"})


def check(one: Approval) -> None:
    assert (one.id, one.owner, one.tool, one.reason) == ("apr_1", "analyst", "github.create_issue", "changed_tool")
    assert one.execution_id is None and json.loads(one.arguments) == {"title": "t"}


def test_approvals_are_listed_and_answered() -> None:
    with Client("http://127.0.0.1:1", "t", transport=httpx.MockTransport(answer)) as client:
        (one,) = client.approvals.list()
        check(one)
        client.approvals.approve(one.id)
        client.approvals.deny(one.id)
        with pytest.raises(Conflict):
            client.approvals.approve("apr_2")


def test_the_twin_does_the_same() -> None:
    async def run() -> None:
        async with AsyncClient("http://127.0.0.1:1", "t", transport=httpx.MockTransport(answer)) as client:
            (one,) = await client.approvals.list()
            check(one)
            await client.approvals.approve(one.id)
            await client.approvals.deny(one.id)
            with pytest.raises(Conflict):
                await client.approvals.deny("apr_2")

    asyncio.run(run())
