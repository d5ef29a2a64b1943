# SPDX-License-Identifier: Apache-2.0
"""Servers inside a session that mean harm: to their visitors, to this server, to other sessions."""

import base64
import hashlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from branches import branch, create
from harness import Server, Session, wait_until
from inner_servers import host_of, issue, kind_of, path_of, prepare, start_http, start_raw, visit

pytestmark = pytest.mark.both_modes

#: The port of the proxy, in sessions that have one.
PROXY_PORT = 3128
CONNECTIONS_MAX = 64


@pytest.fixture
def visitor() -> Iterator[requests.Session]:
    """Without a token of the server's."""
    with requests.Session() as http:
        yield http


def test_what_is_not_there_is_said(server: Server, session: Session) -> None:
    prepare(session)
    session.execute("s = socket.create_server(('127.0.0.1', 0)); closed = s.getsockname()[1]; s.close()")
    answer = server.get(path_of(session, int(session.value("closed"))))
    assert answer.status_code == 502 and kind_of(answer) == "port-not-open"
    assert "port is not open" in answer.json()["detail"]
    reserved = server.get(path_of(session, PROXY_PORT))
    assert reserved.status_code == 403 and kind_of(reserved) == "port-reserved"
    deaf = server.get(path_of(session, int(session.value("start_deaf()"))))
    assert deaf.status_code == 504 and kind_of(deaf) == "port-timeout"
    gone = server.create()
    port = start_http(gone)
    assert server.get(path_of(gone, port)).status_code == 200
    assert gone.delete() == 204
    assert server.get(path_of(gone, port)).status_code == 410


def test_a_port_is_the_sessions_own(server: Server, session: Session) -> None:
    """Never the host's, where this server listens, and never another session's."""
    at = int(server.url.rsplit(":", 1)[1])
    assert server.get("/healthz").status_code == 200
    assert kind_of(server.get(path_of(session, at))) == "port-not-open"
    port = start_http(session)
    assert server.get(path_of(session, port)).status_code == 200
    other = server.create()
    assert kind_of(server.get(path_of(other, port))) == "port-not-open"
    assert other.delete() == 204


NO_ANSWERS = (
    b"",
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 200 + b"\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20,
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    b"HTTP/1.1 999 Whatever\r\n\r\n",
)


def test_an_answer_that_is_none_is_not_passed_on(server: Server, session: Session) -> None:
    prepare(session)
    for answer in NO_ANSWERS:
        got = server.get(path_of(session, start_raw(session, answer)))
        assert got.status_code == 502 and kind_of(got) == "port-protocol", (answer[:60], got.text)
    fine = start_raw(session, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    assert server.get(path_of(session, fine)).content == b"hello"


def test_a_server_that_lies_about_lengths(server: Server, session: Session) -> None:
    prepare(session)
    long = start_raw(
        session, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n"
    )
    assert server.get(path_of(session, long)).content == b"hello"
    # The connection to the visitor is in step.
    assert server.get("/healthz").json()["status"] == "ok"
    for short in (
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\nhello\r\n",
    ):
        port = start_raw(session, short)
        with pytest.raises(requests.RequestException):
            _ = server.get(path_of(session, port)).content
    empty = start_raw(session, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello")
    assert server.get(path_of(session, empty)).content == b""
    assert server.get("/healthz").status_code == 200


def test_no_redirect_leads_to_the_server_itself(
    server: Server, session: Session, visitor: requests.Session
) -> None:
    port = start_http(session)
    token = issue(session, port)["token"]
    at = server.url.rsplit(":", 1)[1]
    prefix = path_of(session, port, "")

    def ask(location: str) -> requests.Response:
        path = path_of(session, port, "/redirect?" + requests.utils.quote(location, safe=""))
        return server.request("GET", path, allow_redirects=False)

    def ask_host(location: str) -> requests.Response:
        path = "/redirect?" + requests.utils.quote(location, safe="")
        headers = {"Cellkeep-Preview-Token": token}
        return visit(server, visitor, host_of(session, port), path, headers=headers)

    for location, wanted in (
        ("/v1/sessions", prefix + "/v1/sessions"),
        ("/../../../../sessions", prefix + "/sessions"),
        ("/%2e%2e/%2E./x?y#z", prefix + "/x?y#z"),
        ("../../../../../v1/sessions", prefix + "/v1/sessions"),
        ("next", prefix + "/next"),
        (f"http://localhost:{port}/a", prefix + "/a"),
        (f"http://127.0.0.1:{port}", prefix + "/"),
    ):
        answer = ask(location)
        assert answer.status_code == 302 and answer.headers["Location"] == wanted, location
    for location in ("/v1/sessions", "../x", "https://example.org/x", "app://x"):
        assert ask_host(location).headers["Location"] == location
    # Some clients send a token in a field of their own to whatever host they are led to.
    for location in ("https://example.org/x", "//example.org/x", "app://x"):
        assert kind_of(ask(location)) == "port-redirect", location
    for location in (
        f"{server.url}/v1/sessions",
        f"http://localhost:{at}/v1/sessions",
        f"http://LOCALHOST:{at}/v1/sessions",
        f"//127.0.0.1:{at}/v1/sessions",
        f"http:/127.0.0.1:{at}/v1/sessions",
        f"http:\\\\127.0.0.1:{at}/v1/sessions",
        "/\\evil",
        f"http://user@127.0.0.1:{at}/",
        f"http://127.1:{at}/",
        f"http://0x7f000001:{at}/",
        f"http://%6cocalhost:{at}/",
        f"http://1-x.localhost:{at}/v1/sessions",
    ):
        for answer in (ask(location), ask_host(location)):
            assert answer.status_code == 502, location
            assert "sends its visitors" in answer.text or "Location" in answer.text, location


def test_a_server_that_never_speaks_holds_no_more_than_its_places(
    server: Server, session: Session
) -> None:
    prepare(session)
    accept = base64.b64encode(hashlib.sha1(b"x").digest()).decode()
    head = (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n\r\n"
    )
    silent = start_raw(session, head.encode(), "hold")
    at = int(server.url.rsplit(":", 1)[1])
    wanted = (
        f"GET {path_of(session, silent)} HTTP/1.1\r\nHost: 127.0.0.1:{at}\r\n"
        f"Authorization: {server.http.headers['Authorization']}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    held = []
    for _ in range(CONNECTIONS_MAX):
        held.append(socket.create_connection(("127.0.0.1", at), timeout=60))
        held[-1].sendall(wanted.encode())
        assert held[-1].recv(4096).startswith(b"HTTP/1.1 101 ")
    refused = server.get(path_of(session, silent))
    assert refused.status_code == 429 and kind_of(refused) == "too-many-connections"
    # Another session has its own.
    other = server.create()
    assert server.get(path_of(other, start_http(other))).status_code == 200
    assert other.delete() == 204
    for one in held:
        one.close()
    port = int(session.value("start_http()"))
    wait_until(
        lambda: server.get(path_of(session, port)).status_code == 200, 60, "places become free"
    )


def test_a_connection_ends_with_its_session_though_a_branch_holds_its_sockets(server: Server) -> None:
    parent = create(server)
    prepare(parent)
    port = int(parent.value("start_deaf(full=False)"))
    with ThreadPoolExecutor() as pool:
        # It waits in the queue of a listener that the branch has, too.
        answer = pool.submit(server.get, path_of(parent, port))
        kernel = f"/api/kernels/{parent.info['kernel_id']}"
        wait_until(
            lambda: server.get(kernel).json()["connections"] == 1, 60, "the visitor has got in"
        )
        child = branch(parent)
        assert parent.delete() == 204
        assert answer.result(60).status_code == 502
    assert child.value("1 + 1") == "2"
    assert child.delete() == 204


FLOOD = """
sent = 0
def flood():
    global sent
    connection, _ = flooder.accept()
    connection.recv(65536)
    connection.settimeout(2)
    connection.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n')
    try:
        while True:
            sent += connection.send(b'x' * 65536)
    except TimeoutError:
        stalled.set()
    connection.settimeout(None)
    try:
        while True:
            sent += connection.send(b'x' * 65536)
    except OSError:
        ended.set()
stalled, ended = threading.Event(), threading.Event()
flooder = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=flood, daemon=True).start()
"""


def test_a_slow_visitor_slows_the_server_inside(server: Server, session: Session) -> None:
    prepare(session)
    assert session.execute(FLOOD)["status"] == "ok"
    port = int(session.value("flooder.getsockname()[1]"))
    with server.request("GET", path_of(session, port), stream=True) as answer:
        assert answer.status_code == 200
        # Nothing is read: what the buffers on the way hold is all that it gets rid of.
        assert session.value("stalled.wait(60)") == "True"
        assert int(session.value("sent")) < 32 << 20
    # The visitor has gone, and so is the connection inside.
    assert session.value("ended.wait(60)") == "True"
