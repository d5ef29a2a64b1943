# SPDX-License-Identifier: Apache-2.0
"""An MCP server without a library, for tests: one message a line, and badly behaved when asked to be.

    python3 tool_program.py FOLDER [MODE]

Each line that comes is added to FOLDER/received. FOLDER/description, if it is there, is what `echo` says
of itself. Modes: usual, endless, huge, garbage, silent, flood, restless, modern.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

FOLDER, MODE = Path(sys.argv[1]), (sys.argv + ["usual"])[2]
OBJECT = {"type": "object"}
HUNDRED_MEGABYTES = 100 << 20
lock = threading.Lock()


def send(message: dict) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(value: str, **more: object) -> dict:
    return {"content": [{"type": "text", "text": value}], **more}


def echo_tool() -> dict:
    path = FOLDER / "description"
    return {
        "name": "echo",
        "description": path.read_text() if path.exists() else "Gives back what it gets.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What to give back"}},
            "required": ["text"],
        },
    }


def tools() -> list[dict]:
    names = ["fail", "environment", "big", "slow", "crash", "structured", "several"]
    names += ["create-issue", "delete_all", "then", "class", "1st"]
    described = [echo_tool()] + [{"name": name, "description": "", "inputSchema": OBJECT} for name in names]
    if MODE == "huge":
        large = {"type": "object", "description": "x" * (33 << 10)}
        described += [{"name": "large", "inputSchema": large}, {"name": "n" * 129}, {"nameless": 1}, 7]
        described += [{"name": "create.issue", "description": "the same name in code"}]
        described += [{"name": f"tool{i}", "description": "\x00\x1b[31m" + "d" * 100} for i in range(1_000)]
    return described


def list_tools(params: dict) -> dict:
    if MODE == "endless":
        page = int(params.get("cursor", "0"))
        return {"tools": [{"name": f"t{page}", "inputSchema": OBJECT}], "nextCursor": str(page + 1)}
    return {"tools": tools()}


def call(params: dict) -> dict | None:
    name, given = params["name"], params["arguments"]
    if name == "echo":
        return text(given["text"])
    if name == "fail":
        return text("it went wrong", isError=True)
    if name == "environment":
        return text(json.dumps(dict(os.environ)))
    if name == "big":
        return text("x" * given["bytes"])
    if name == "structured":
        return text("the same as text", structuredContent={"degrees": -3})
    if name == "several":
        return {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    if name == "crash":
        os._exit(3)
    return None if name == "slow" else text(f"{name} done")


def answer(message: dict) -> None:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        version = "2099-01-01" if MODE == "modern" else params["protocolVersion"]
        result: dict | None = {"protocolVersion": version, "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = list_tools(params)
    elif method == "tools/call":
        result = call(params)
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
        return
    if result is not None:
        send({"id": message["id"], "result": result})


def flood() -> None:
    """A message of a hundred megabytes, and no end of it."""
    sys.stdout.write('{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"')
    for _ in range(HUNDRED_MEGABYTES >> 20):
        sys.stdout.write("x" * (1 << 20))
    sys.stdout.flush()


def restless() -> None:
    """Says again and again that its tools have changed, and asks for what no client of tools has."""
    for number in range(20_000):
        send({"method": "notifications/tools/list_changed"})
        send({"id": f"ask{number}", "method": "sampling/createMessage", "params": {}})
        send({"id": 10_000 + number, "result": text("an answer to nothing")})


AFTER_LIST: dict[str, Callable[[], None]] = {"flood": flood, "restless": restless}


def main() -> None:
    print("the program of the test is up", file=sys.stderr, flush=True)
    received = (FOLDER / "received").open("a")
    if MODE == "garbage":
        print("Welcome to my server!", flush=True)
    for line in sys.stdin:
        received.write(line)
        received.flush()
        message = json.loads(line)
        if MODE != "silent" and "id" in message and "method" in message:
            answer(message)
            if message["method"] == "tools/list" and MODE in AFTER_LIST:
                AFTER_LIST[MODE]()


if __name__ == "__main__":
    main()
