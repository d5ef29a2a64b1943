# SPDX-License-Identifier: Apache-2.0
"""FastMCP's CodeMode, unchanged, with its code in a session of ours."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.experimental.transforms.code_mode import CodeMode

from cellkeep import AsyncClient, AsyncSession, LimitReached
from cellkeep.code_mode import (
    ANSWER_BYTES_MAX,
    CALL_BYTES_MAX,
    RESULT_BYTES_MAX,
    CellkeepSandboxProvider,
    CodeFailed,
)
from harness import TOKEN, Server


@asynccontextmanager
async def session_of(server: Server) -> AsyncIterator[AsyncSession]:
    async with AsyncClient(url=server.url, token=TOKEN) as client:
        async with await client.create() as session:
            yield session


def in_session(server: Server, use: Callable[[AsyncSession], Any]) -> Any:
    async def run() -> Any:
        async with session_of(server) as session:
            return await use(session)

    return asyncio.run(run())


def run(server: Server, code: str, **functions: Callable[..., Any]) -> Any:
    async def use(session: AsyncSession) -> Any:
        provider = CellkeepSandboxProvider(session=session)
        return await provider.run(code, external_functions=functions)

    return in_session(server, use)


def shop(provider: CellkeepSandboxProvider) -> FastMCP:
    mcp = FastMCP("shop", transforms=[CodeMode(sandbox_provider=provider)])

    @mcp.tool
    def price(item: str) -> int:
        """What an item costs."""
        if item == "nothing":
            raise ToolError("there is no nothing")
        return len(item)

    return mcp


def test_code_mode_chains_calls_in_a_session(server: Server) -> None:
    async def use(session: AsyncSession) -> None:
        async with Client(shop(CellkeepSandboxProvider(session=session))) as client:
            assert {"execute", "search"} <= {tool.name for tool in await client.list_tools()}
            code = """
import asyncio
found = await asyncio.gather(*(call_tool("price", {"item": item}) for item in ["a", "bb", "ccc"]))
total = sum(each["result"] for each in found)
return {"total": total, "found": found}
"""
            answer = await client.call_tool("execute", {"code": code})
            assert '"total":6' in answer.content[0].text.replace(" ", "")
            # The session's variables are there for the next code.
            again = await client.call_tool("execute", {"code": "return total + 1"})
            assert again.content[0].text == "7"
            caught = "try:\n    await call_tool('price', {'item': 'nothing'})\nexcept ToolCallError as e:\n    return str(e)"
            said = await client.call_tool("execute", {"code": caught})
            assert "there is no nothing" in said.content[0].text
            with pytest.raises(ToolError, match="there is no nothing"):
                await client.call_tool(
                    "execute", {"code": "return await call_tool('price', {'item': 'nothing'})"}
                )
            with pytest.raises(ToolError, match="Unknown tool"):
                await client.call_tool("execute", {"code": "return await call_tool('missing', {})"})

    in_session(server, use)


def test_each_run_has_a_session_of_its_own_unless_it_is_given_one(server: Server) -> None:
    async def use() -> None:
        async with AsyncClient(url=server.url, token=TOKEN) as client:
            provider = CellkeepSandboxProvider(client=client)
            assert await provider.run("kept = 1\nreturn kept") == 1
            with pytest.raises(CodeFailed, match="NameError"):
                await provider.run("return kept")
            assert [each async for each in client.sessions()] == []
            with pytest.raises(ValueError):
                CellkeepSandboxProvider(session=await client.create(), client=client)
            for left in [each async for each in client.sessions()]:
                await (await client.session(left.id)).close()

    asyncio.run(use())


def test_values_functions_and_inputs_cross(server: Server) -> None:
    async def use(session: AsyncSession) -> None:
        provider = CellkeepSandboxProvider(session=session)

        async def later(value: int, *, twice: bool = False) -> Any:
            await asyncio.sleep(0)
            return value * 2 if twice else {"value": [value, None, "ä"]}

        functions = {"later": later, "now": lambda: "text"}
        code = "x = await later(given, twice=True)\nreturn [x, await later(1), await now()]"
        answer = await provider.run(code, inputs={"given": 21}, external_functions=functions)
        assert answer == [42, {"value": [1, None, "ä"]}, "text"]
        assert await provider.run("import os\nreturn os.path.basename('a/b')") == "b"
        assert await provider.run("pass") is None
        assert await provider.run("") is None
        odd = "count: int = 2\ntext = \'\'\'a\n  b\'\'\'\nreturn [count, text, [i for i in range(count)], (lambda: count)()]"
        assert await provider.run(odd) == [2, "a\n  b", [0, 1], 2]
        assert "object" in await provider.run("return object()")
        assert [file.path for file in await session.files() if "calls" in file.path] == []

    in_session(server, use)


def test_the_interpreter_waits_while_others_run(server: Server) -> None:
    """A call that is not answered yet holds neither other calls nor another language."""

    async def use(session: AsyncSession) -> None:
        asked = asyncio.Event()
        go_on = asyncio.Event()

        async def approval() -> str:
            asked.set()
            await go_on.wait()
            return "yes"

        functions = {"approval": approval, "quick": lambda: 1}
        code = "import asyncio\nhere = 5\nboth = await asyncio.gather(approval(), quick())\nreturn [here, *both]"
        running = asyncio.create_task(
            CellkeepSandboxProvider(session=session).run(code, external_functions=functions)
        )
        await asked.wait()
        assert (await session.run("echo free", language="bash")).stdout == "free\n"
        go_on.set()
        assert await running == [5, "yes", 1]

    in_session(server, use)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("return await missing()", "NameError"),
        ("this is no Python", "SyntaxError"),
        ("return await lend('x')", "refused"),
        ("return await lend(object())", "TypeError"),
        ("import os\nos._exit(3)", "died|dead|exit"),
        (f"return 'x' * {RESULT_BYTES_MAX}", "return less"),
        (f"return await lend('x' * {CALL_BYTES_MAX})", "more than"),
        ("return await big()", "more than"),
    ],
)
def test_what_goes_wrong_is_said(server: Server, code: str, said: str) -> None:
    def lend(_value: str) -> None:
        raise PermissionError("refused")

    with pytest.raises(CodeFailed, match=said):
        run(server, code, lend=lend, big=lambda: "x" * ANSWER_BYTES_MAX)


def test_calls_have_a_bound(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellkeep.code_mode.CALLS_MAX", 3)
    code = "return [await lent(i) for i in range(COUNT)]"
    assert run(server, code.replace("COUNT", "3"), lent=lambda value: value) == [0, 1, 2]
    with pytest.raises(CodeFailed, match="has made 3 calls"):
        run(server, code.replace("COUNT", "9"), lent=lambda value: value)


def test_forged_calls_reach_nothing(server: Server) -> None:
    """The code prints what a call looks like; only names that were lent are called, once a number."""
    called: list[Any] = []
    code = """
from IPython.display import display
kind = "application/vnd.cellkeep.call+json"
good = {"number": 501, "name": "lent", "args": [1], "kwargs": {}}
for wrong in (5, None, [], {}, {"number": "1"}, {"number": True}, {"number": 502, "name": "__import__"},
              {"number": 503, "name": "lent", "args": "x"}, {"number": 504, "name": 7},
              {"number": 505, "name": "lent", "args": [], "kwargs": []}, good, good):
    display({kind: wrong}, raw=True)
return await lent(2)
"""
    assert run(server, code, lent=lambda value: called.append(value) or "done") == "done"
    assert sorted(called) == [1, 2]


def test_a_run_that_is_given_up_is_interrupted(server: Server) -> None:
    async def use(session: AsyncSession) -> None:
        started = asyncio.Event()
        provider = CellkeepSandboxProvider(session=session)
        running = asyncio.create_task(
            provider.run(
                "await started()\nwhile True: pass", external_functions={"started": started.set}
            )
        )
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        # The interpreter is free again.
        assert await provider.run("return 'free'") == "free"
        with pytest.raises(CodeFailed, match="time limit"):
            await CellkeepSandboxProvider(session=session, timeout=1).run("while True: pass")

    in_session(server, use)


def test_a_session_that_cannot_be_made_is_the_servers_refusal(server: Server) -> None:
    async def use() -> None:
        async with AsyncClient(url=server.url, token=TOKEN) as client:
            provider = CellkeepSandboxProvider(client=client, limits={"memory_mb": 10**9})
            with pytest.raises(Exception, match="memory") as refused:
                await provider.run("return 1")
            assert not isinstance(refused.value, (CodeFailed, LimitReached))

    asyncio.run(use())
