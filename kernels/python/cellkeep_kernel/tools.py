# SPDX-License-Identifier: Apache-2.0
"""Tools that the caller of an execution lends to its code, and those of the server's operator
(protocol/tool_request.hpp).

A call leaves over the link, and the code waits for the answer with its variables. The caller or the
server runs the tool; nothing of it is in here but its name.
"""

import json
import os
import sys
import threading

_CALL = "cellkeep_tool_request", "cellkeep_tool_reply"
_LIST = "cellkeep_tool_list_request", "cellkeep_tool_list_reply"
_FOUND_MAX = 20
_WORKSPACE = "/workspace"


class ToolError(RuntimeError):
    """A call that has no result. ``reason`` is ``failed`` if the tool itself said so, else why it was not
    called: ``not_lent``, ``too_large``, ``malformed``, ``too_many_calls`` or ``no_caller``. Of the operator's
    tools also ``denied``, ``not_approved``, ``unavailable`` and ``timeout``."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


class ResultFile(os.PathLike):
    """A result of more than 4 MiB: a file in the workspace, which is yours to remove. ``path`` is its name,
    ``bytes`` its length, ``media_type`` is ``text/plain`` or ``application/json``. It can be given to ``open``,
    to ``pandas.read_json`` and to all else that takes a path."""

    def __init__(self, file):
        self.path = f"{_WORKSPACE}/{file['path']}"
        self.bytes = file["bytes"]
        self.media_type = file["media_type"]
        self.sha256 = file["sha256"]

    def __fspath__(self):
        return self.path

    def read(self):
        """What a shorter result would have been: the text, or the value of the JSON."""
        with open(self.path, encoding="utf-8", newline="") as file:
            text = file.read()
        return text if self.media_type == "text/plain" else json.loads(text)

    def __repr__(self):
        return f"<a result of {self.bytes:,} bytes in {self.path}>"


class _Line:
    """The way to the caller. There is one in a process."""

    def __init__(self):
        self._host = self._stdin = None
        self.allowed = False

    def begin(self, host, stdin):
        self._host, self._stdin = host, stdin

    def ask(self, types, content):
        if not self.allowed:
            raise ToolError("no_caller", "Tools can be called while a cell runs, by its own process.")
        if threading.current_thread() is not threading.main_thread():
            raise ToolError("no_caller", "Tools can be called from the main thread only.")
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            self._host.ask(types[0], content.encode())
        except ValueError as error:
            raise ToolError("too_large", str(error)) from None
        return json.loads(self._stdin.wait_for_answer(lambda: self._host.read_answer(types[1])))


_line = _Line()


def begin(host, stdin):
    _line.begin(host, stdin)


def allow(allowed):
    _line.allowed = allowed


def _call(name, arguments):
    try:
        content = json.dumps({"name": name, "arguments": arguments}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: arguments must be JSON values: {error}") from None
    reply = _line.ask(_CALL, content)
    if reply.get("status") != "ok":
        raise ToolError(reply.get("reason", "failed"), reply.get("message", ""))
    return ResultFile(reply["file"]) if "file" in reply else reply.get("result")


def _described():
    """What is lent to this cell, by name."""
    reply = _line.ask(_LIST, "{}")
    if "tools" not in reply:
        raise ToolError(reply.get("reason", "failed"), reply.get("message", ""))
    return {tool["name"]: tool for tool in reply["tools"]}


def _explain(tool):
    lines = [tool["description"]] if tool["description"] else []
    schema = tool["input_schema"]
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    properties = schema.get("properties", {})
    # Those that a call needs come first. JSON has no order of members.
    for name in sorted(properties, key=lambda each: each not in required):
        kind = properties[name] if isinstance(properties[name], dict) else {}
        facts = [str(kind["type"])] if "type" in kind else []
        if name not in required:
            facts.append("optional")
        line = f"{name} ({', '.join(facts)})" if facts else name
        lines.append(f"    {line}: {kind['description']}" if "description" in kind else f"    {line}")
    return "\n".join(lines)


def _is_hidden(name):
    """Whether it is no tool's: others ask every object for such names. Of a server or a tool that begins with a
    digit the name in code is ``_7zip``."""
    return name.startswith("_") and not name[1:2].isdigit()


def _by_name(example, given, arguments):
    if given:
        raise TypeError(f"arguments of a tool are given by their names, such as {example}")
    return arguments


class Tool:
    """One of them, or the beginning of the names of several: ``tools.github.create_issue``."""

    def __init__(self, name):
        self._name = name

    def __call__(self, /, *given, **arguments):
        """Waits for the answer and returns it; one of more than 4 MiB is a ResultFile. ToolError: there is none.
        KeyboardInterrupt passes through."""
        return _call(self._name, _by_name(f"tools.{self._name}(title='x')", given, arguments))

    async def aio(self, /, *given, **arguments):
        """The same, to be awaited. Nothing else of the event loop runs meanwhile."""
        return _call(self._name, _by_name(f"tools.{self._name}.aio(title='x')", given, arguments))

    def __getattr__(self, name):
        if _is_hidden(name):
            raise AttributeError(name)
        return Tool(f"{self._name}.{name}")

    def __dir__(self):
        return [*super().__dir__(), *_next_names(f"{self._name}.")]

    @property
    def __doc__(self):
        try:
            found = _described().get(self._name)
        except ToolError:
            found = None
        return _explain(found) if found else None

    def __repr__(self):
        return f"<tool {self._name}>"


def _next_names(prefix):
    try:
        names = _described()
    except ToolError:
        return []
    return sorted({name[len(prefix) :].split(".")[0] for name in names if name.startswith(prefix)})


class Tools:
    """All that the cell that runs may call."""

    def __getattr__(self, name):
        if _is_hidden(name):
            raise AttributeError(name)
        return Tool(name)

    def __dir__(self):
        return [*super().__dir__(), *_next_names("")]

    def call(self, name, /, *given, **arguments):
        """The tool of this name as list() has it, which need not be one that Python can write:
        ``tools.call("a.import")``."""
        return _call(name, _by_name(f"tools.call({name!r}, title='x')", given, arguments))

    def list(self):
        """Their names."""
        return sorted(_described())

    def search(self, words):
        """Those whose names or descriptions have all of these words: a text for each, of at most 20."""
        wanted = words.lower().split()
        found = []
        for name, tool in sorted(_described().items()):
            text = f"{name} {tool['description']}".lower()
            if all(word in text for word in wanted):
                found.append(f"{name}: {_explain(tool)}")
        return found[:_FOUND_MAX]

    def __repr__(self):
        return "<tools: tools.list() names them>"


tools = Tools()
