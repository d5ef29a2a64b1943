# SPDX-License-Identifier: Apache-2.0
"""What sessions reach in these tests: a package index and an API, over HTTP and HTTPS, on loopback.

Standard library only. Everything that arrives is remembered, so that a test can say what did.
"""

import io
import ssl
import subprocess
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAMES = ("index.test", "api.test", "other.test")
PACKAGE = "cellkeep_tiny-1.0-py3-none-any.whl"


PART_BYTES = 1 << 20


def part(number: int) -> bytes:
    """No two are equal."""
    line = b"%d of %d;" % (number, PART_BYTES)
    return (line * (PART_BYTES // len(line) + 1))[:PART_BYTES]


def make_wheel() -> bytes:
    """A package of one module."""
    info = "cellkeep_tiny-1.0.dist-info"
    files = {
        "cellkeep_tiny.py": "ANSWER = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: cellkeep-tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD"
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    bytes_of = io.BytesIO()
    with zipfile.ZipFile(bytes_of, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return bytes_of.getvalue()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for all names, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    names = ",".join(f"DNS:{name}" for name in NAMES)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName={names}"]
        + ["-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    return certificate, key


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    outside: "Outside"

    def do_GET(self) -> None:
        self.outside.arrived.append((self.path, dict(self.headers)))
        if self.path == f"/{PACKAGE}":
            self.answer(self.outside.wheel, "application/zip")
        elif self.path.startswith("/simple/cellkeep-tiny/"):
            self.answer(f'<a href="/{PACKAGE}">{PACKAGE}</a>'.encode(), "text/html")
        elif self.path.startswith("/parts/"):
            self.answer_in_parts(int(self.path.rsplit("/", 1)[1]))
        elif self.path.startswith("/v1/echo"):
            self.answer(str(self.headers).encode(), "text/plain")
        else:
            self.answer(b"hello from outside", "text/plain")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.outside.arrived.append((self.path, dict(self.headers)))
        self.answer(body, "text/plain")

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_in_parts(self, count: int) -> None:
        """Each when the test lets it go."""
        self.send_response(200)
        self.send_header("Content-Length", str(count * PART_BYTES))
        self.end_headers()
        for number in range(count):
            assert self.outside.parts.acquire(timeout=60)
            try:
                self.wfile.write(part(number))
            except OSError:  # the client has gone: that is what a test asks for
                self.close_connection = True
                return

    def log_message(self, *_: object) -> None:
        """The tests look at what arrived instead."""


class Outside:
    """Use as a context; `http` and `https` are ports on 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self.arrived: list[tuple[str, dict]] = []
        self.wheel = make_wheel()
        self.parts = threading.Semaphore(0)
        self.certificate, key = make_certificate(folder)
        handler = type("BoundHandler", (Handler,), {"outside": self})
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(2)]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        secure = self.servers[1]
        secure.socket = context.wrap_socket(
            secure.socket, server_side=True, do_handshake_on_connect=False
        )
        self.http, self.https = (server.server_address[1] for server in self.servers)
        self.threads = [threading.Thread(target=server.serve_forever) for server in self.servers]

    def arguments(self) -> list[str]:
        """The options that the server under test needs."""
        told = ["--egress-permit-address", "127.0.0.1", "--egress-ca", str(self.certificate)]
        for name in NAMES:
            told += ["--egress-resolve", f"{name}=127.0.0.1"]
        for port in (self.http, self.https):
            told += ["--allow-egress", f"*:{port}"]
        return told

    def __enter__(self) -> "Outside":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.shutdown()
            server.server_close()
        for thread in self.threads:
            thread.join()
