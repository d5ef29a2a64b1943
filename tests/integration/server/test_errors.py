# SPDX-License-Identifier: Apache-2.0
"""Wrong input: each gets a clear coded answer as problem+json, and the server goes on."""

import http.client
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import requests

from harness import LEAN, TOKEN, Server, Session


@pytest.fixture(autouse=True)
def still_serving(server: Server) -> Iterator[None]:
    yield
    assert server.get("/healthz").json()["status"] == "ok"


def check_problem(response: requests.Response, status: int) -> dict:
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"].startswith("application/problem+json")
    problem = response.json()
    assert problem["status"] == status
    assert problem["title"] and problem["detail"] and problem["type"]
    return problem


def raw_request(server: Server, head: str, body: bytes = b"") -> tuple[int, bytes]:
    """As a client that sends what no library would, and reads the answer even if it is early."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        lines = f"{head}\r\nHost: {address.netloc}\r\nAuthorization: Bearer {TOKEN}\r\n"
        try:
            connection.sendall(lines.encode() + b"Connection: close\r\n\r\n")
            for start in range(0, len(body), 1 << 16):
                connection.sendall(body[start : start + (1 << 16)])
        except (BrokenPipeError, ConnectionResetError):
            pass  # The server answered early and closed, as RFC 9112, 9.6 lets it.
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, response.read()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic dDp0"},
    ],
)
def test_a_wrong_token_is_refused(server: Server, headers: dict) -> None:
    response = requests.get(server.url + "/v1/sessions", headers=headers, timeout=30)
    check_problem(response, 401)
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert TOKEN not in response.text


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "token {}"])
def test_the_right_token_in_each_form(server: Server, form: str) -> None:
    headers = {"Authorization": form.format(TOKEN)}
    assert requests.get(server.url + "/v1/sessions", headers=headers, timeout=30).ok
    assert requests.get(f"{server.url}/v1/sessions?token={TOKEN}", timeout=30).ok


@pytest.mark.parametrize(
    "body", [b"{", b"", b"nonsense", b'{"code": "1",}', b"\xff\xfe", b"[" * 10_000, b"{}{}"]
)
def test_malformed_json(server: Server, session: Session, body: bytes) -> None:
    response = server.request(
        "POST",
        session.path + "/executions",
        data=body,
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == 400, response.text
    check_problem(response, 400)


def test_a_body_that_is_not_declared_as_json(server: Server, session: Session) -> None:
    response = server.request(
        "POST", session.path + "/executions", data="code=1", headers={"Content-Type": "text/plain"}
    )
    check_problem(response, 415)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"nonsense": 1}, "/nonsense"),
        ({"limits": {"memory": 1}}, "/limits/memory"),
        ({"limits": {"memory_mb": "many"}}, "/limits/memory_mb"),
        ({"limits": {"memory_mb": 10**12}}, "/limits/memory_mb"),
        ({"limits": {"wall_ms": 0}}, "/limits/wall_ms"),
        ({"language": "cobol"}, "/language"),
        ({"network": {"mode": "full"}}, "/network/mode"),
        ({"env": {"A=B": "x"}}, "/env/A=B"),
        ({"env": {"A": 1}}, "/env/A"),
        ({"files": [{"path": "a", "base64": "***"}]}, "/files/0/base64"),
        ({"files": [{"path": "../a", "text": ""}]}, "/files/0/path"),
        ({"files": [{"path": "/etc/passwd", "text": ""}]}, "/files/0/path"),
        ({"files": [{"text": ""}]}, "/files/0/path"),
        ({"files": {}}, "/files"),
        ({"metadata": []}, "/metadata"),
    ],
)
def test_each_wrong_field_is_named_by_its_pointer(
    server: Server, fields: dict, pointer: str
) -> None:
    problem = check_problem(server.post("/v1/sessions", fields), 422)
    assert pointer in [error["pointer"] for error in problem["errors"]]
    assert all(error["message"] for error in problem["errors"])


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({}, "/code"),
        ({"code": 1}, "/code"),
        ({"code": "1", "timeout_ms": -1}, "/timeout_ms"),
        ({"code": "1", "timeout_ms": 10**9}, "/timeout_ms"),
        ({"code": "1", "cod": "2"}, "/cod"),
        ({"code": "1", "language": "cobol"}, "/language"),
        ({"code": "1", "files": [{"path": "a", "base64": "YQ"}]}, "/files/0/base64"),
    ],
)
def test_each_wrong_field_of_an_execution(
    server: Server, session: Session, fields: dict, pointer: str
) -> None:
    response = server.post(session.path + "/executions", fields)
    problem = check_problem(response, 422)
    assert pointer in [error["pointer"] for error in problem["errors"]]


def test_a_hundred_megabytes_are_too_many(server: Server, session: Session) -> None:
    size = 100 * 1000 * 1000
    head = (
        f"POST {session.path}/executions HTTP/1.1\r\nContent-Type: application/json"
        f"\r\nContent-Length: {size}"
    )
    status, body = raw_request(server, head, b" " * size)
    assert status == 413
    assert json.loads(body)["status"] == 413
    assert session.value("1") == "1"


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "%2e%2e/x", "%2E%2E%2Fetc%2Fpasswd", "a/%2e%2e/%2e%2e/x", "%2Fetc/passwd"],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_path_that_leads_out(server: Server, session: Session, method: str, path: str) -> None:
    status, body = raw_request(
        server, f"{method} {session.path}/files/{path} HTTP/1.1\r\nContent-Length: 0"
    )
    assert status == 400, body
    assert json.loads(body)["status"] == 400


def test_a_link_that_leads_out_is_not_followed(server: Server, session: Session) -> None:
    session.execute("import os\nos.symlink('/etc', 'etc')\nos.symlink('/etc/passwd', 'passwd')")
    for name in ("passwd", "etc/passwd"):
        response = server.get(f"{session.path}/files/{name}")
        assert response.status_code in (403, 404, 409), response.text
        assert "root:" not in response.text


@pytest.mark.parametrize("name", ["ses_000000000000000000000000", "nobody", "a%2Fb"])
def test_an_unknown_session(server: Server, name: str) -> None:
    for method, suffix in (("GET", ""), ("DELETE", ""), ("POST", "/interrupt"), ("POST", "/restart")):
        response = server.request(method, f"/v1/sessions/{name}{suffix}")
        assert response.status_code == 404, response.text
        check_problem(response, 404)
    check_problem(server.post(f"/v1/sessions/{name}/executions", {"code": "1"}), 404)


def test_a_session_name_that_cannot_be_one(server: Server) -> None:
    check_problem(server.get("/v1/sessions/%00"), 400)


def test_an_unknown_address_and_an_unknown_execution(server: Server, session: Session) -> None:
    check_problem(server.get("/v9/sessions"), 404)
    check_problem(server.get(f"{session.path}/executions/exe_none"), 404)
    check_problem(server.get(f"{session.path}/files/not-there"), 404)


def test_methods_an_address_does_not_know(server: Server) -> None:
    refused = server.request("PUT", "/v1/sessions")
    check_problem(refused, 405)
    assert {"GET", "HEAD", "POST", "OPTIONS"} <= set(refused.headers["Allow"].split(", "))
    options = server.request("OPTIONS", "/v1/sessions")
    assert options.status_code in (200, 204)
    assert "POST" in options.headers["Allow"]
    head = server.request("HEAD", "/v1/sessions")
    assert head.status_code == 200 and head.content == b""
    assert int(head.headers["Content-Length"]) > 0


@pytest.mark.parametrize(
    "head",
    [
        "GET /healthz HTTP/9.9",
        "NONSENSE",
        "GET  /healthz HTTP/1.1",
        "GET /healthz HTTP/1.1\r\nContent-Length: -1",
        "GET /healthz HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2",
        "GET /" + "a" * 70_000 + " HTTP/1.1",
        "GET /healthz HTTP/1.1\r\nX: " + "a" * 70_000,
    ],
)
def test_what_is_not_http(server: Server, head: str) -> None:
    try:
        status, _ = raw_request(server, head)
    except (http.client.HTTPException, ConnectionError):
        return  # Closed without an answer is as clear.
    assert 400 <= status < 600 and status != 500


def test_another_host_name_is_refused(server: Server) -> None:
    """A web page whose name was rebound to 127.0.0.1 must not reach the API."""
    response = server.request("GET", "/v1/sessions", headers={"Host": "evil.example.org"})
    check_problem(response, 421)


def test_one_session_more_than_allowed() -> None:
    with Server(*LEAN, "--max-sessions", "2", "--log-format", "text") as small:
        first, second = small.create(), small.create()
        problem = check_problem(small.post("/v1/sessions"), 429)
        assert "sessions" in problem["detail"]
        assert first.delete() == 204
        third = small.create()
        assert third.value("1 + 1") == "2"
        assert second.delete() == 204 and third.delete() == 204
