# SPDX-License-Identifier: Apache-2.0
"""The protocol's own client in Python, over HTTP, in every era."""

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from conftest import connect, text_of, with_client
from harness import Server

FIGURE = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 3, 2])\nplt.show()"
LOOP = "import time\nwhile True:\n    print('tick', flush=True)\n    time.sleep(0.05)"


def told(result: object) -> dict:
    """The values of a result; the client has checked them against the tool's outputSchema."""
    return result.structured_content


def test_the_tools_are_listed_and_valid(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {"run_code", "read_output", "checkpoint", "rollback"} <= {tool.name for tool in tools}
        assert [tool.name for tool in tools] == sorted(tool.name for tool in tools)
        assert "python" in tools[-2].input_schema["properties"]["language"]["enum"]
        # A client that pins the revision asks for nothing before its first request.
        assert era == "2026-07-28" or client.server_info.name == "cellkeep"

    with_client(server, era, use)


def test_variables_live_on_between_calls(server: Server, era: str) -> None:
    name = f"vars-{era}"

    async def use(client: Client) -> None:
        first = await client.call_tool("run_code", {"code": "a = 40; print('hi')", "session": name})
        assert told(first)["state"] == "kept" and told(first)["session_created"]
        assert told(first)["stdout"]["text"] == "hi\n"
        second = await client.call_tool("run_code", {"code": "a + 2", "session": name})
        assert told(second)["result"] == "42"
        assert "42" in text_of(second)
        shell = {"code": "echo $((6 * 7))", "language": "bash", "session": name}
        assert told(await client.call_tool("run_code", shell))["stdout"]["text"] == "42\n"
        await client.call_tool("close_session", {"session": name})

    with_client(server, era, use)


def test_errors_say_what_has_become_of_the_state(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        async def run(code: str) -> object:
            return await client.call_tool("run_code", {"code": code, "session": "errors"})

        await run("kept = 1")
        failed = await run("1 / 0")
        assert failed.is_error and told(failed)["state"] == "kept"
        assert told(failed)["error"]["name"] == "ZeroDivisionError"
        asks = await run("input()")  # stdin is closed: it does not wait for ever
        assert asks.is_error and "EOF" in told(asks)["error"]["name"]
        assert told(await run("kept"))["result"] == "1"
        died = await run("import os; os._exit(3)")
        assert died.is_error and told(died)["state"] == "lost"
        after = await run("'kept' in globals()")
        assert told(after)["result"] == "False" and told(after)["state"] == "kept"
        await client.call_tool("close_session", {"session": "errors"})

    with_client(server, era, use)


def test_figures_files_and_links(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        session = {"session": "files"}
        figure = await client.call_tool("run_code", {"code": FIGURE, **session})
        (image,) = [part for part in figure.content if part.type == "image"]
        assert image.mime_type == "image/png" and image.data.startswith("iVBOR")
        made = await client.call_tool(
            "run_code", {"code": "open('a b.csv', 'w').write('x,y\\n1,2\\n')", **session}
        )
        (link,) = [part for part in made.content if part.type == "resource_link"]
        read = await client.read_resource(str(link.uri))
        assert read.contents[0].text == "x,y\n1,2\n"
        file = await client.call_tool("read_file", {"path": "a b.csv", **session})
        assert told(file)["text"] == "x,y\n1,2\n"
        await client.call_tool("write_file", {"path": "d/in.txt", "text": "from here", **session})
        code = {"code": "print(open('d/in.txt').read())", **session}
        assert "from here" in text_of(await client.call_tool("run_code", code))
        listed = await client.call_tool("list_files", session)
        assert {entry["path"] for entry in told(listed)["entries"]} >= {"a b.csv", "d"}
        assert len((await client.list_resources()).resources) >= 1
        assert len((await client.list_resource_templates()).resource_templates) == 3
        with pytest.raises(MCPError):
            await client.read_resource(str(link.uri) + ".missing")
        await client.call_tool("close_session", session)

    with_client(server, era, use)


def test_long_output_has_head_tail_and_numbers(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        code = "print('begin'); print('x' * 3_000_000); print('end')"
        result = await client.call_tool("run_code", {"code": code, "session": "long"})
        out = told(result)["stdout"]
        assert out["text"].startswith("begin") and out["text"].endswith("end\n")
        assert out["bytes"] == 3_000_011 and len(out["text"]) < 11_000
        assert out["omitted_bytes"] > 2_900_000
        part = {"path": out["saved_to"], "offset": 2_999_000, "session": "long"}
        assert told(await client.call_tool("read_file", part))["text"].endswith("end\n")
        await client.call_tool("close_session", {"session": "long"})

    with_client(server, era, use)


def test_a_long_run_is_read_on_and_interrupted(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        session = {"session": "run-on"}
        begun = told(await client.call_tool("run_code", {"code": LOOP, "wait_ms": 0, **session}))
        assert begun["status"] in ("running", "queued")
        which = {"execution_id": begun["execution_id"], "wait_ms": 1000, **session}
        more = told(await client.call_tool("read_output", {"cursor": begun["cursor"], **which}))
        assert "tick" in more["stdout"]["text"]
        await client.call_tool("interrupt", session)
        ended = await client.call_tool("read_output", {**which, "wait_ms": 60_000})
        assert ended.is_error and told(ended)["status"] == "interrupted"
        assert told(ended)["state"] == "kept"
        await client.call_tool("close_session", session)

    with_client(server, era, use)


def test_checkpoints_restore_the_variables(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        session = {"session": "copies"}

        async def value(expression: str) -> str:
            return told(await client.call_tool("run_code", {"code": expression, **session}))["result"]

        await value("x = 1")
        made = told(await client.call_tool("checkpoint", {"label": "one", **session}))
        await value("x = 2")
        back = told(
            await client.call_tool("rollback", {"checkpoint": made["checkpoint"], **session})
        )
        assert back["state"] == "restored"
        assert await value("x") == "1"
        unknown = await client.call_tool("rollback", {"checkpoint": "ckp_0", **session})
        assert unknown.is_error and told(unknown)["error"]["kind"] == "unknown_checkpoint"
        restarted = told(await client.call_tool("restart", session))
        assert restarted["state"] == "lost"
        assert await value("'x' in globals()") == "False"
        await client.call_tool("close_session", session)

    with_client(server, era, use)


def test_progress_is_reported_while_code_runs(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        heard: list[tuple[float, str]] = []

        async def on_progress(progress: float, _total: float | None, message: str | None) -> None:
            heard.append((progress, message or ""))

        await client.call_tool(
            "run_code",
            {"code": LOOP, "timeout_ms": 12_000, "session": "progress"},
            progress_callback=on_progress,
        )
        assert len(heard) >= 2
        assert [value for value, _ in heard] == sorted({value for value, _ in heard})
        assert any("tick" in message for _, message in heard)
        await client.call_tool("close_session", {"session": "progress"})

    with_client(server, era, use)


def test_a_cancelled_call_interrupts_its_run(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        session = {"session": "cancel"}
        await client.call_tool("run_code", {"code": "kept = 1", **session})
        with anyio.move_on_after(3) as scope:
            await client.call_tool("run_code", {"code": LOOP, **session})
        assert scope.cancelled_caught
        # The interpreter is free again: without an interrupt this would wait behind the loop.
        after = await client.call_tool("run_code", {"code": "kept", "wait_ms": 60_000, **session})
        assert told(after)["result"] == "1" and told(after)["state"] == "kept"
        await client.call_tool("close_session", session)

    with_client(server, era, use)


def test_what_is_wrong_is_refused_and_the_client_goes_on(server: Server, era: str) -> None:
    async def use(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.call_tool("missing", {})
        for wrong in ({}, {"code": 5}, {"code": "1", "wait_ms": -1}, {"code": "1", "other": 1}):
            refused = await client.call_tool("run_code", wrong)
            assert refused.is_error and told(refused)["error"]["kind"] == "invalid_argument"
        unknown = await client.call_tool("read_file", {"path": "a", "session": "never-made"})
        assert unknown.is_error and told(unknown)["state"] == "lost"
        assert not (await client.call_tool("list_sessions", {})).is_error

    with_client(server, era, use)


def test_many_clients_at_once(server: Server) -> None:
    async def one(number: int) -> None:
        async with connect(server, ("legacy", "2026-07-28")[number % 2]) as client:
            session = {"session": f"many-{number % 5}"}
            code = {"code": f"x{number} = {number}\nx{number}", **session}
            assert told(await client.call_tool("run_code", code))["result"] == str(number)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(one, number)
        async with connect(server, "2026-07-28") as client:
            for number in range(5):
                await client.call_tool("close_session", {"session": f"many-{number}"})

    anyio.run(run)
