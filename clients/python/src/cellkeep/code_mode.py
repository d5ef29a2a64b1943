# SPDX-License-Identifier: Apache-2.0
"""Code that calls the tools of its host: a sandbox provider for FastMCP's ``CodeMode``.

The code runs in a session and awaits the functions that the host lends it for this one run. A call leaves the
sandbox as an output of the run, and its answer comes back as a file in the session, so neither a network nor a
credential is inside. The interpreter waits for the answer with all its variables; other calls go on meanwhile.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from .aio import AsyncClient, AsyncSession
from .errors import CellkeepError
from .models import Event, Result

__all__ = ["CellkeepSandboxProvider", "CodeFailed"]

#: Calls of one run; more are an error in the code.
CALLS_MAX = 10_000
#: Calls of one run that are answered at a time; others wait for their turn.
CALLS_AT_ONCE_MAX = 32
#: The arguments of one call, the answer to it, and what the code returns, as JSON.
CALL_BYTES_MAX = 1 << 20
ANSWER_BYTES_MAX = 16 << 20
RESULT_BYTES_MAX = 1 << 20

_CALL = "application/vnd.cellkeep.call+json"
_RETURN = "application/vnd.cellkeep.return+json"

# What runs inside, before and around the code. Names that the code assigns are the interpreter's own, so that
# the next run finds them.
_INSIDE = '''
async def __cellkeep_run(code, names, inputs, folder, result_bytes_max, calls_max):
    import ast, asyncio, itertools, json, os, shutil
    from IPython.display import display

    class ToolCallError(RuntimeError):
        """The host's function failed, or refused the call."""

    os.makedirs(folder, exist_ok=True)
    numbers = itertools.count(1)

    def lent(name):
        async def call(*args, **kwargs):
            number = next(numbers)
            if number > calls_max:
                raise ToolCallError(f"The run has made {calls_max} calls.")
            path = f"{folder}/{number}.json"
            request = {"number": number, "name": name, "args": args, "kwargs": kwargs}
            display({"CALL": json.loads(json.dumps(request))}, raw=True)
            pause = 0.002
            while not os.path.exists(path):
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, 0.05)
            with open(path, encoding="utf-8") as file:
                answer = json.load(file)
            os.remove(path)
            if "error" in answer:
                raise ToolCallError(answer["error"])
            return answer["value"]

        call.__name__ = name
        return call

    space = globals()
    space.update(inputs)
    space.update({name: lent(name) for name in names})
    space["ToolCallError"] = ToolCallError
    tree = ast.parse("async def __cellkeep_main(): pass", "<code>")
    main = tree.body[0]

    class Plain(ast.NodeTransformer):
        """Names with annotations cannot be the interpreter's own."""

        def visit_AnnAssign(self, node):
            if node.value is None:
                return ast.copy_location(ast.Pass(), node)
            return ast.copy_location(ast.Assign([node.target], node.value), node)

        def leave(self, node):
            return node

        visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = leave

    written = Plain().visit(ast.parse(code, "<code>")).body
    main.body = [*written, ast.Pass()]
    ast.fix_missing_locations(tree)
    (inner,) = (each for each in compile(tree, "<code>", "exec").co_consts if hasattr(each, "co_varnames"))
    own = sorted({*inner.co_varnames, *inner.co_cellvars})
    if own:
        main.body.insert(0, ast.Global(own))
        ast.fix_missing_locations(tree)
    try:
        exec(compile(tree, "<code>", "exec"), space)
        value = await space["__cellkeep_main"]()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = json.dumps(value, default=repr)
    if len(text) > result_bytes_max:
        raise ValueError(f"The code returned {len(text)} bytes; write a file, or return less.")
    display({"RETURN": {"value": json.loads(text)}}, raw=True)
'''.replace('"CALL"', repr(_CALL)).replace('"RETURN"', repr(_RETURN))


class CodeFailed(CellkeepError):
    """The code raised, or was stopped; ``result`` is the whole answer."""

    def __init__(self, result: Result) -> None:
        error = result.error
        what = f"{error.name}: {error.message}" if error is not None else f"status {result.status}"
        super().__init__(what)
        self.result = result


class CellkeepSandboxProvider:
    """``CodeMode(sandbox_provider=CellkeepSandboxProvider())``.

    Without ``session`` each run has a session of its own, made with ``options`` as ``AsyncClient.create`` takes
    them (``limits``, ``network`` and so on), on the server that ``client`` is for. With a session all runs use
    that one, and variables live on between them. ``timeout`` is for one run, in seconds, the time that it waits
    for the host included, at most the session's ``wall_ms``, which is what counts without it.
    """

    def __init__(
        self,
        *,
        session: AsyncSession | None = None,
        client: AsyncClient | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> None:
        if session is not None and (client is not None or options):
            raise ValueError("give either a session, or a client and what its sessions are made with")
        self._own = session
        self._client = client
        self._options = options
        self._timeout = timeout

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[AsyncSession]:
        if self._own is not None:
            yield self._own
            return
        client = self._client or AsyncClient()
        try:
            async with await client.create(**self._options) as session:
                yield session
        finally:
            if self._client is None:
                await client.close()

    async def run(
        self,
        code: str,
        *,
        inputs: dict[str, Any] | None = None,
        external_functions: dict[str, Callable[..., Any]] | None = None,
    ) -> Any:
        """Runs the code of an ``async def`` and gives what it returns, as JSON has it (other values by their
        ``repr``). Raises :class:`CodeFailed` if it fails."""
        functions = dict(external_functions or {})
        folder = f".cellkeep-calls-{secrets.token_hex(8)}"
        arguments = json.dumps([code, sorted(functions), inputs or {}, folder, RESULT_BYTES_MAX, CALLS_MAX])
        program = f"{_INSIDE}\nimport json as _json\nawait __cellkeep_run(*_json.loads({arguments!r}))"
        options: dict[str, Any] = {"on_disconnect": "interrupt"}
        if self._timeout is not None:
            options["timeout"] = self._timeout
        async with self._session() as session:
            return await _Run(session, functions, folder).follow(program, options)


class _Run:
    """One run while the host follows it."""

    def __init__(
        self, session: AsyncSession, functions: Mapping[str, Callable[..., Any]], folder: str
    ) -> None:
        self._session = session
        self._functions = functions
        self._folder = folder
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(CALLS_AT_ONCE_MAX)
        self._seen: set[int] = set()
        self._returned: list[Any] = []

    async def follow(self, program: str, options: dict[str, Any]) -> Any:
        try:
            async with self._session.stream(program, **options) as events:
                async for event in events:
                    self._take(event)
                result = await events.result()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if result.status != "ok" or not self._returned:
            raise CodeFailed(result)
        return self._returned[-1]

    def _take(self, event: Event) -> None:
        bundle = event.data.get("data") if event.type == "display" else None
        if not isinstance(bundle, Mapping):
            return
        returned = bundle.get(_RETURN)
        if isinstance(returned, Mapping):
            self._returned.append(returned.get("value"))
        call = bundle.get(_CALL)
        if not isinstance(call, Mapping):
            return
        number = call.get("number")
        # What the code makes up itself is no call, or one more of those that are counted.
        if isinstance(number, int) and not isinstance(number, bool) and number not in self._seen:
            if len(self._seen) <= CALLS_MAX:
                self._seen.add(number)
                task = asyncio.create_task(self._answer(number, call))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int, call: Mapping[str, Any]) -> None:
        async with self._turn:
            try:
                answer = {"value": await self._call(number, call)}
                text = json.dumps(answer, default=str)
            except Exception as error:  # whatever the host's function raises is the code's to see
                text = json.dumps({"error": f"{error}" or type(error).__name__})
            if len(text) > ANSWER_BYTES_MAX:
                text = json.dumps({"error": f"The answer has more than {ANSWER_BYTES_MAX} bytes."})
            await self._session.upload(text.encode(), f"{self._folder}/{number}.json")

    async def _call(self, number: int, call: Mapping[str, Any]) -> Any:
        name, args, kwargs = call.get("name"), call.get("args"), call.get("kwargs")
        if len(self._seen) > CALLS_MAX:
            raise RuntimeError(f"The run has made {CALLS_MAX} calls.")
        if not isinstance(name, str) or name not in self._functions:
            raise LookupError("There is no such function.")
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise TypeError("The arguments are none.")
        if len(json.dumps([args, kwargs])) > CALL_BYTES_MAX:
            raise ValueError(f"The arguments have more than {CALL_BYTES_MAX} bytes.")
        value = self._functions[name](*args, **kwargs)
        return await value if inspect.isawaitable(value) else value
