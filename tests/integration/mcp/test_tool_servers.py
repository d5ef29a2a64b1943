# SPDX-License-Identifier: Apache-2.0
"""FastMCP servers, unchanged, as tools of the code in sessions: over stdio and over streamable HTTP."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from harness import LEAN, Server, wait_until

SHOP = str(Path(__file__).with_name("shop_server.py"))
PATIENCE_SECONDS = 60
IMPORT = "from cellkeep import ToolError, tools\n"
SECRET = "shop-secret-" + "k3Y" * 8


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def shop_over_http() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-B", SHOP, "http", str(port)])
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None
        try:
            return requests.get(f"{url}/healthz", timeout=5).ok
        except requests.ConnectionError:
            return False

    try:
        wait_until(answers, PATIENCE_SECONDS, "the shop is open")
        yield f"{url}/mcp"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@contextmanager
def serving(folder: Path, entry: dict) -> Iterator[Server]:
    path = folder / "mcp-servers.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"mcpServers": {"the-shop": {**entry, "cellkeep": {"default": "allow"}}}}))
    with Server(*LEAN, "--mcp-servers", str(path), "--prespawn-count", "0") as running:
        yield running


def stdout_of(server: Server, code: str) -> str:
    session = server.create()
    try:
        done = session.execute(IMPORT + code)
        assert done["status"] == "ok", done
        return done["stdout"]
    finally:
        session.delete()


def check_shop(server: Server) -> None:
    wait_until(lambda: "the_shop.price" in stdout_of(server, "print(tools.list())"), PATIENCE_SECONDS, "tools")
    said = stdout_of(
        server,
        "print(tools.the_shop.price(item='apple', count=3))\n"
        "print(tools.the_shop.offer(item='pear'), tools.the_shop.items())\n"
        "print(sum([tools.the_shop.price(item=one) for one in tools.the_shop.items()]))\n"
        "try: tools.the_shop.price(item='nothing')\n"
        "except ToolError as error: print(error.reason, error)\n"
        "try: tools.the_shop.price(item=[1])\n"
        "except ToolError as error: print(error.reason)\n"
        "print(tools.the_shop.price.__doc__)",
    )
    lines = said.splitlines()
    assert lines[:3] == ["15", "{'item': 'pear', 'price': 4} ['apple', 'pear']", "9"]
    assert lines[3].startswith("failed") and "no nothing" in lines[3]
    assert lines[4:8] == [
        "failed",
        "What an item costs.",
        "    item (string)",
        "    count (integer, optional)",
    ]


def test_a_program(tmp_path: Path) -> None:
    with serving(tmp_path, {"command": sys.executable, "args": ["-B", SHOP, "stdio"]}) as server:
        check_shop(server)


def test_a_server_over_http(tmp_path: Path) -> None:
    with shop_over_http() as url:
        headers = {"Authorization": f"Bearer {SECRET}"}
        with serving(tmp_path, {"url": url, "headers": headers}) as server:
            check_shop(server)
            said = stdout_of(server, "print(tools.the_shop.credentials())")
            assert "Bearer ****" in said and SECRET not in said
            assert SECRET not in server.output()


def test_a_server_over_http_that_is_away(tmp_path: Path) -> None:
    with serving(tmp_path, {"url": f"http://127.0.0.1:{free_port()}/mcp"}) as server:
        wait_until(lambda: "not_started" in server.output(), PATIENCE_SECONDS, "it was tried")
        assert stdout_of(server, "print(tools.list())") == "[]\n"


class Lies:
    """Answers of an HTTP server that lies about their lengths, or of what they are."""

    CASES = {
        "too short": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{}",
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "no http": b"hello\r\n\r\n",
        "a redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        "no json": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\nno",
        "an event of another": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"id\":99,\"result\":{}}\n\n",
        "much": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + b"x" * (20 << 20),
    }


@pytest.mark.parametrize("lie", Lies.CASES)
def test_a_server_over_http_that_lies(tmp_path: Path, lie: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with serving(tmp_path, {"url": f"http://127.0.0.1:{port}/mcp"}) as server:
            for _ in range(2):
                listener.settimeout(PATIENCE_SECONDS)
                client, _address = listener.accept()
                with client:
                    client.settimeout(PATIENCE_SECONDS)
                    assert client.recv(1 << 16).startswith(b"POST /mcp HTTP/1.1\r\n")
                    try:
                        client.sendall(Lies.CASES[lie])
                    except (ConnectionError, TimeoutError):
                        pass  # it does not take so much
            wait_until(lambda: "not_started" in server.output(), PATIENCE_SECONDS, "it is refused")
            assert stdout_of(server, "print(tools.list())") == "[]\n"
