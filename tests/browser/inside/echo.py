# SPDX-License-Identifier: Apache-2.0
"""A WebSocket that says what it hears, and a page to ask it by hand."""

import sys

from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

PAGE = b"<!doctype html><title>Echo</title><h1>Echo</h1>"


def give_page(_: ServerConnection, request: Request) -> Response | None:
    if request.path == "/ws":
        return None
    headers = Headers({"Content-Type": "text/html", "Content-Length": str(len(PAGE))})
    return Response(200, "OK", headers, PAGE)


def echo(connection: ServerConnection) -> None:
    for message in connection:
        connection.send(message)


if __name__ == "__main__":
    with serve(echo, "127.0.0.1", int(sys.argv[1]), process_request=give_page) as server:
        server.serve_forever()
