# SPDX-License-Identifier: Apache-2.0
"""A tool server of one era alone, or a hostile one: `python era_server.py KIND` over stdio, `KIND PORT` over HTTP.

KIND: `new` knows 2026-07-28 alone and checks what it is sent, `old` knows the handshake alone, `silent` is as old and
answers nothing before it, `dies` as old and ends at anything else, `liar` names 2026-07-28 and then refuses it,
`endless` never comes to an answer about its revisions.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NEW = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
TEXT = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"place": TEXT, "word": TEXT}}
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}}
SLOW_SECONDS = 60

kind = sys.argv[1]
met = False  # there was a handshake
ended: list[int] = []  # calls whose caller has given up


def error(code: int, message: str, **data: object) -> dict:
    return {"error": {"code": code, "message": message, "data": data}}


def result(**members: object) -> dict:
    return {"result": {"resultType": "complete", **members} if kind == "new" else members}


def tools() -> list[dict]:
    told = {"name": "told", "description": "What it was sent.", "inputSchema": SCHEMA}
    if kind == "new":
        place = {**TEXT, "x-mcp-header": "Place"}
        told["inputSchema"] = {**SCHEMA, "properties": {**SCHEMA["properties"], "place": place}}
    rest = [{"name": name, "inputSchema": {"type": "object"}} for name in ("slow", "ended")]
    return [told, *rest]


def call(message: dict, headers: dict[str, str]) -> dict:
    params = message["params"]
    if params["name"] == "slow":
        raise TimeoutError
    said = ended if params["name"] == "ended" else {"params": params, "headers": headers}
    return result(content=[{"type": "text", "text": json.dumps(said)}])


def refuse_new(message: dict, headers: dict[str, str] | None) -> dict | None:
    """What a server of 2026-07-28 alone has against a request."""
    version = message.get("params", {}).get("_meta", {}).get(VERSION)
    if version != NEW:
        return error(-32022, "Unsupported protocol version", supported=[NEW], requested=str(version))
    if headers is None:
        return None
    expected = {"mcp-protocol-version": NEW, "mcp-method": message["method"]}
    if message["method"] == "tools/call":
        expected["mcp-name"] = message["params"]["name"]
        place = message["params"]["arguments"].get("place")
        if place is not None and place.isascii():
            expected["mcp-param-place"] = place
    wrong = {name for name, value in expected.items() if headers.get(name) != value}
    if wrong or "mcp-session-id" in headers:
        return error(-32020, f"Header mismatch: {sorted(wrong)}")
    return None


def answer(message: dict, headers: dict[str, str] | None = None) -> dict | None:
    """None: never."""
    global met
    method = message["method"]
    if kind == "liar" and method != "server/discover":
        return error(-32022, "Unsupported protocol version", supported=["1900-01-01"])
    if kind in ("new", "liar"):
        if refused := refuse_new(message, headers):
            return refused
        if method == "server/discover":
            return result(supportedVersions=[NEW], capabilities={"tools": {}}, ttlMs=0, cacheScope="private")
    elif kind != "endless" and method == "initialize":
        met = True
        return result(protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo={"name": kind, "version": "1"})
    elif not met:
        if kind == "dies":
            sys.exit(1)
        return error(-32602, "Before the handshake.") if kind == "old" else None
    if method == "tools/list":
        return result(tools=tools(), ttlMs=0, cacheScope="private")
    if method == "tools/call":
        return call(message, headers or {})
    return error(-32601, "Method not found")


def serve_stdio() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            ended.append(message["params"]["requestId"])
        if "id" not in message:
            continue
        try:
            said = answer(message)
        except TimeoutError:
            continue
        while said is None and kind == "endless":
            print(json.dumps(NOTE), flush=True)
            threading.Event().wait(0.01)
        if said is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self.reply(202, b"")
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            said = answer(message, headers)
        except TimeoutError:
            self.wait_for_the_end(message["id"])
            return
        if said is None:
            self.go_on_and_on()
            return
        status = 400 if "error" in said and kind != "silent" else 200
        self.reply(status, json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}).encode())

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if kind == "old":
            self.send_header("Mcp-Session-Id", "one")
        self.end_headers()
        self.wfile.write(body)

    def begin_events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def wait_for_the_end(self, request: int) -> None:
        self.begin_events()
        self.connection.settimeout(SLOW_SECONDS)
        if self.connection.recv(1) == b"":
            ended.append(request)

    def go_on_and_on(self) -> None:
        self.begin_events()
        try:
            while True:
                self.wfile.write(f"data: {json.dumps(NOTE)}\n\n".encode())
        except OSError:
            pass  # it hears no more

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve_stdio()
    else:
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
