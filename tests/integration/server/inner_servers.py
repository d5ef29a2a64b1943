# SPDX-License-Identifier: Apache-2.0
"""Servers that code starts inside a session: one that behaves, and one that says whatever a test wants."""

import json

import requests
from harness import Server, Session

#: Run in a session once. HTTP at the port that start_http() returns.
GUEST = r'''
import base64, hashlib, http.server, json, socket, struct, threading, urllib.parse

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def read_body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def give(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def echo(self):
        body = self.read_body()
        spelled = self.requestline.split()[1]  # self.path has no two slashes in front
        said = {"method": self.command, "path": spelled, "headers": self.headers.items(),
                "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        self.give(200, json.dumps(said).encode(), Content_Type="application/json")

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for number in range(3):
            self.wfile.write(b"data: %d\n\n" % number)
            self.wfile.flush()
            step.wait(60)
            step.clear()
        self.close_connection = True

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept",
                         base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while True:
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                break
            size = head[1] & 127
            if size == 126:
                size = struct.unpack(">H", self.rfile.read(2))[0]
            mask = self.rfile.read(4)
            text = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(size)))
            short = bytes([head[0], size]) if size < 126 else struct.pack(">BBH", head[0], 126, size)
            self.wfile.write(short + text)
            self.wfile.flush()
        self.close_connection = True

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        if address.path == "/events":
            self.events()
        elif address.path == "/ws":
            self.websocket()
        elif address.path == "/redirect":
            self.give(302, b"", Location=urllib.parse.unquote(address.query))
        elif address.path == "/cookie":
            self.give(200, b"cookie", Set_Cookie="mine=1; Domain=localhost; Path=/",
                      Clear_Site_Data='"*"')
        elif address.path == "/big":
            self.give(200, b"x" * int(address.query))
        else:
            self.echo()

    do_HEAD = do_GET
    do_POST = do_PUT = do_PATCH = do_DELETE = echo

step = threading.Event()

class SixServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

def start_http(address="127.0.0.1"):
    kind = SixServer if ":" in address else http.server.ThreadingHTTPServer
    server = kind((address, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]

def start_text(text, port=0):
    """Answers with a text, at that port."""
    class Text(Handler):
        def do_GET(self):
            self.give(200, text.encode())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Text)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]

def start_held():
    """Says that a visitor has come, and answers once `release` is set. Waits without a time limit."""
    global arrived, release
    arrived, release = threading.Event(), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    def serve():
        connection, _ = listener.accept()
        connection.recv(65536)
        arrived.set()
        release.wait()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nreleased")
        connection.close()
    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]

def start_raw(answer, then="close"):
    """Reads a head from each connection, answers with these bytes, and closes or holds it."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []
    def serve():
        while True:
            connection, _ = listener.accept()
            got = b""
            while b"\r\n\r\n" not in got and (piece := connection.recv(65536)):
                got += piece
            connection.sendall(answer)
            if then == "close":
                connection.close()
            held.append(connection)
    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]

def start_deaf(full=True):
    """Accepts nothing, with a queue that is full or empty."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0 if full else 4)
    port = listener.getsockname()[1]
    waiting = []
    for _ in range(8 if full else 0):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
        waiting.append(one)
    globals().setdefault("kept", []).append((listener, waiting))
    return port
'''


def prepare(session: Session) -> None:
    result = session.execute(GUEST)
    assert result["status"] == "ok", result


def start_http(session: Session) -> int:
    prepare(session)
    return int(session.value("start_http()"))


def start_raw(session: Session, answer: bytes, then: str = "close") -> int:
    return int(session.value(f"start_raw({answer!r}, {then!r})"))


def path_of(session: Session, port: int, path: str = "/") -> str:
    return f"{session.path}/ports/{port}{path}"


def host_of(session: Session, port: int) -> str:
    """The host name of the port's own, without this server's port."""
    return f"{port}-{session.info['id'].removeprefix('ses_')}.localhost"


def fields_of(echo: dict) -> dict[str, str]:
    """The header fields that the server inside got, in lower case."""
    return {name.lower(): value for name, value in echo["headers"]}


def text_of(echo: dict) -> str:
    return json.dumps(echo)


def visit(
    server: Server, visitor: requests.Session, host: str, path: str = "/", **more: object
) -> requests.Response:
    """Asks for a path of a host name of a port's own, whose names this host may not resolve."""
    port = server.url.rsplit(":", 1)[1]
    headers = {"Host": f"{host}:{port}", **more.pop("headers", {})}
    return visitor.get(
        f"http://127.0.0.1:{port}{path}", headers=headers, timeout=60, allow_redirects=False, **more
    )


def issue(session: Session, port: int, **fields: object) -> dict:
    answer = session.server.post(f"{session.path}/ports/{port}/tokens", fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


def kind_of(answer: requests.Response) -> str:
    return answer.json()["type"].removeprefix("/problems/")
