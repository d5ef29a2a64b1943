# SPDX-License-Identifier: Apache-2.0
"""The same work in three ways: the model calls tools directly; it writes code that calls them, and their stubs are
in the description of run_code; it writes code and searches for them first. Counts what passes the model.

    CELLKEEP_BINARY=… build/environments/mcp/bin/python tests/benchmark/tool_use/evaluate.py
        [--tools 8,40,120] [--document docs/tool-use.md] [--endpoint URL --model NAME]

Without an endpoint the turns are recordings (tasks.py): every tool call and every piece of code is really made, by
a FastMCP server and by a session of `cellkeep serve --mcp-servers`. Needs what the tests need.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT / "tests/integration/server")]

from harness import TOKEN, Server  # noqa: E402
from ledger import TOKENIZER, Ledger, compact  # noqa: E402
from models import Endpoint, Model, Recording, Said  # noqa: E402
from tasks import TASKS, WAYS, Question, Task  # noqa: E402

TURNS_MAX = 20
BEGIN, END = "<!-- tool-use:begin -->", "<!-- tool-use:end -->"
USE_TOOLS = "\nIn Python, `from cellkeep import tools` has tools that code can call, as tools.SERVER.NAME(argument=value). "
SEARCH_TOOLS = USE_TOOLS + "`print(*tools.search('a word'), sep='\\n\\n')` describes those with the word."


@dataclass(frozen=True)
class Row:
    tools: int
    way: str
    task: str
    right: bool
    ledger: Ledger


def text_of(result: object) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")


def stub_writer() -> Callable[[dict], str]:
    """The product's own: what tools.search() shows of a tool."""
    path = ROOT / "kernels/python/cellkeep_kernel/tools.py"
    spec = importlib.util.spec_from_file_location("cellkeep_kernel_tools", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module._explain


class Bench:
    """The shop with its tools, and a server whose sessions may call them."""

    def __init__(self, shop: Client, sessions: Client, shop_tools: list[dict], run_code: dict) -> None:
        self.shop, self.sessions, self.shop_tools, self._run_code = shop, sessions, shop_tools, run_code

    def offered(self, way: str) -> list[dict]:
        """What the model is told of tools."""
        if way == "direct":
            return self.shop_tools
        told = SEARCH_TOOLS
        if way == "stubs":
            explain = stub_writer()
            described = [
                f"shop.{tool['name']}: " + explain({**tool, "input_schema": tool["inputSchema"]})
                for tool in self.shop_tools
            ]
            told = USE_TOOLS + "They are:\n" + "\n".join(described)
        return [{**self._run_code, "description": self._run_code["description"] + told}]

    async def call(self, way: str, session: str, name: str, arguments: dict) -> str:
        if way == "direct":
            return text_of(await self.shop.call_tool(name, arguments))
        return text_of(await self.sessions.call_tool(name, {**arguments, "session": session}))


def listed(tool: object) -> dict:
    full = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {name: full.get(name, "") for name in ("name", "description", "inputSchema")}


def own_description() -> str:
    tools = json.loads((ROOT / "kernel-manager/mcp/tools/tools.json").read_text(encoding="utf-8"))
    return tools["run_code"]["description"]


@asynccontextmanager
async def open_bench(server: Server, count: int) -> AsyncIterator[Bench]:
    program = StdioServerParameters(command=sys.executable, args=["-B", str(HERE / "shop_server.py"), str(count)])
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=120) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(program) as shop, Client(transport) as sessions:
            tools = [listed(tool) for tool in (await shop.list_tools()).tools]
            own = {tool.name: listed(tool) for tool in (await sessions.list_tools()).tools}
            # Without what the server adds about the tools when it has them: the ways differ in that.
            run_code = {**own["run_code"], "description": own_description()}
            bench = Bench(shop, sessions, tools, run_code)
            await wait_for_tools(bench, count)
            yield bench


async def wait_for_tools(bench: Bench, count: int) -> None:
    with anyio.fail_after(60):
        code = {"code": "from cellkeep import tools\nprint(len(tools.list()))", "session": "probe"}
        while text_of(await bench.sessions.call_tool("run_code", code)).split()[0] != str(count):
            await anyio.sleep(0.2)
        await bench.sessions.call_tool("close_session", {"session": "probe"})


async def answer(bench: Bench, way: str, question: Question, model: Model, ledger: Ledger, session: str) -> bool:
    """Whether the model's last words have the answer."""
    tools = bench.offered(way)
    ledger.offer(tools)
    ledger.ask(question.text)
    model.ask(question.text)
    said, told = Said(), ""
    for _ in range(TURNS_MAX):
        said = model.say(tools)
        shown = compact([{"name": call.name, "arguments": call.arguments} for call in said.calls])
        ledger.say(said.text + (shown if said.calls else ""), len(said.calls))
        if not said.calls:
            break
        for call in said.calls:
            told = await bench.call(way, session, call.name, call.arguments)
            ledger.tell(told)
            model.tell(call, told)
    # A recorded answer is right by itself: with code it has to be what the code printed, too.
    shown_right = way == "direct" or question.answer in told.split()
    return question.answer in said.text and (not isinstance(model, Recording) or shown_right)


async def converse(bench: Bench, way: str, task: Task, model: Model) -> tuple[bool, Ledger]:
    ledger, right = Ledger(), True
    session = f"{way}-{TASKS.index(task)}"
    for question in task.questions:
        right = await answer(bench, way, question, model, ledger, session) and right
    if way != "direct":
        await bench.sessions.call_tool("close_session", {"session": session})
    return right, ledger


async def evaluate(server: Server, count: int, endpoint: Callable[[], Model] | None) -> list[Row]:
    rows = []
    async with open_bench(server, count) as bench:
        for way in WAYS:
            for task in TASKS:
                model = endpoint() if endpoint else Recording(task.turns(way))
                right, ledger = await converse(bench, way, task, model)
                rows.append(Row(count, way, task.name, right, ledger))
    return rows


def run(counts: list[int], endpoint: Callable[[], Model] | None = None) -> list[Row]:
    rows = []
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="ck-tool-use-") as folder:
            path = Path(folder) / "mcp-servers.json"
            path.touch(mode=0o600)
            shop = {"command": sys.executable, "args": ["-B", str(HERE / "shop_server.py"), str(count)]}
            shop["cellkeep"] = {"default": "allow"}
            path.write_text(json.dumps({"mcpServers": {"shop": shop}}))
            with Server("--mcp-servers", str(path), "--prespawn-count", "0") as server:
                rows += anyio.run(evaluate, server, count, endpoint)
    return rows


def totals(rows: list[Row]) -> list[Row]:
    """One row for each way and number of tools."""
    found = []
    for count in sorted({row.tools for row in rows}):
        for way in WAYS:
            mine = [row for row in rows if (row.tools, row.way) == (count, way)]
            total = Ledger()
            for row in mine:
                total.add(row.ledger)
            found.append(Row(count, way, f"{sum(row.right for row in mine)} of {len(mine)}", True, total))
    return found


def table(rows: list[Row], task: str) -> str:
    lines = [
        f"| tools | way | {task} | turns | calls | tokens of the tools | tokens in | tokens out | bytes past the model |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ledger = row.ledger
        figures = (ledger.turns, ledger.calls, ledger.tools_tokens, ledger.input_tokens, ledger.output_tokens)
        shown = " | ".join(f"{figure:,}" for figure in (*figures, ledger.passed_bytes))
        lines.append(f"| {row.tools} | {row.way} | {row.task} | {shown} |")
    return "\n".join(lines)


def report(rows: list[Row]) -> str:
    middle = sorted({row.tools for row in rows})[len({row.tools for row in rows}) // 2]
    each = sorted((row for row in rows if row.tools == middle), key=lambda row: [t.name for t in TASKS].index(row.task))
    return (
        f"All tasks together; tokens are those of {TOKENIZER}:\n\n{table(totals(rows), 'right')}\n\n"
        f"Task by task, with {middle} tools:\n\n{table(each, 'task')}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="8,40,120", help="numbers of tools, from 8")
    parser.add_argument("--document", type=Path, help="puts the tables between the marks of this file")
    parser.add_argument("--endpoint", help="address of an API that speaks OpenAI's chat completions, such as …/v1")
    parser.add_argument("--model", default="", help="its model")
    arguments = parser.parse_args()
    endpoint = (lambda: Endpoint(arguments.endpoint, arguments.model)) if arguments.endpoint else None
    rows = run([int(count) for count in arguments.tools.split(",")], endpoint)
    text = report(rows)
    print(text)
    if arguments.document:
        before, _, rest = arguments.document.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        arguments.document.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")
    return 0 if all(row.right for row in rows) or endpoint else 1


if __name__ == "__main__":
    sys.exit(main())
