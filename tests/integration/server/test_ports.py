# SPDX-License-Identifier: Apache-2.0
"""Preview addresses: servers inside a session, at paths and at host names of their own."""

import base64
import hashlib
from collections.abc import Iterator
from socket import create_connection

import pytest
import requests
from branches import branch, create
from harness import TOKEN, Server, Session, read_lines, wait_until
from inner_servers import (
    fields_of,
    host_of,
    issue,
    kind_of,
    path_of,
    prepare,
    start_http,
    text_of,
    visit,
)
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

pytestmark = pytest.mark.both_modes

TOKENS_MAX = 64


@pytest.fixture
def visitor() -> Iterator[requests.Session]:
    """Without a token of the server's."""
    with requests.Session() as http:
        yield http


def test_requests_are_passed_on_with_their_bodies(server: Server, session: Session) -> None:
    port = start_http(session)
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        body = b"" if method == "GET" else b"x" * 300_000
        answer = server.request(method, path_of(session, port, "/a/b?c=1&d=%20"), data=body)
        assert answer.status_code == 200, answer.text
        echo = answer.json()
        assert (echo["method"], echo["path"]) == (method, "/a/b?c=1&d=%20")
        assert echo["sha256"] == hashlib.sha256(body).hexdigest()
        fields = fields_of(echo)
        assert fields["host"] == f"localhost:{port}"
        assert fields["x-forwarded-prefix"] == path_of(session, port, "")
    pieces = [b"a" * 100_000, b"b" * 100_000]
    chunked = server.request("POST", path_of(session, port, "/x"), data=iter(pieces)).json()
    assert chunked["sha256"] == hashlib.sha256(b"".join(pieces)).hexdigest()
    head = server.request("HEAD", path_of(session, port, "/big?1000"))
    assert head.headers["Content-Length"] == "1000" and not head.content
    big = server.get(path_of(session, port, "/big?5000000"))
    assert len(big.content) == 5_000_000 and big.headers["Content-Length"] == "5000000"
    assert "port_opened" in server.output()


def test_paths_are_passed_on_as_they_are_spelled(server: Server, session: Session) -> None:
    port = start_http(session)
    for path in ("/", "/a%2Fb", "/a%252e%252e/b", "/sp%20ce/", "//double", "/%C3%A9?q=%2F", "/;x=1"):
        echo = server.get(path_of(session, port, path)).json()
        assert echo["path"] == path
    for path in ("/..", "/a/../b", "/%2e%2e/x", "/a/%2E%2E"):
        request = requests.Request(
            "GET", server.url, headers=dict(server.http.headers)
        ).prepare()
        request.url = server.url + path_of(session, port, path)  # as it stands
        assert server.http.send(request, timeout=60).status_code == 400
    for number in ("0", "65536", "08000", "-1", "x"):
        assert server.get(f"{session.path}/ports/{number}/").status_code == 404


def test_no_credential_of_the_server_comes_inside(
    server: Server, session: Session, visitor: requests.Session
) -> None:
    port = start_http(session)
    path = path_of(session, port, "/x?token=theirs&cellkeep_token=old&keep=1")
    named = {
        "X-API-Key": TOKEN,
        "X-Access-Token": "envd",
        "E2B-Traffic-Access-Token": "traffic",
        "Cookie": "theirs=1",
        "Referer": f"{server.url}/?token={TOKEN}",
        "Origin": server.url,
        "Keep-This": "1",
    }
    echo = server.request("GET", path, headers=named).json()
    assert echo["path"] == "/x?token=theirs&keep=1"
    assert TOKEN not in text_of(echo)
    fields = fields_of(echo)
    for name in ("authorization", "x-api-key", "cookie", "referer", "origin", "x-access-token"):
        assert name not in fields
    assert not [name for name in fields if name.startswith("e2b-")]
    assert fields["keep-this"] == "1"
    # The same at a host name of the port's own, in whatever field they come.
    token = issue(session, port)["token"]
    basic = base64.b64encode(f"me:{TOKEN}".encode()).decode()
    for value in (f"Bearer {TOKEN}", f"token {TOKEN}", TOKEN, f"Basic {basic}"):
        headers = {"Authorization": value, "Cellkeep-Preview-Token": token}
        seen = visit(server, visitor, host_of(session, port), headers=headers).json()
        assert "authorization" not in fields_of(seen) and TOKEN not in text_of(seen)
        assert token not in text_of(seen)
    # What is the application's own passes.
    headers = {"Authorization": "Bearer theirs", "Cellkeep-Preview-Token": token}
    seen = visit(server, visitor, host_of(session, port), headers=headers).json()
    assert fields_of(seen)["authorization"] == "Bearer theirs"


def test_no_page_has_an_address_with_a_token_of_the_server(
    server: Server, session: Session, visitor: requests.Session
) -> None:
    """A page can read its own address, and send it away."""
    port = start_http(session)
    token = {"Cellkeep-Preview-Token": issue(session, port)["token"]}
    for query in (f"?token={TOKEN}", f"?a&%74oken={TOKEN}", f"?token=x&token={TOKEN}"):
        refused = server.get(path_of(session, port, "/x" + query))
        assert refused.status_code == 400 and "token of this server" in refused.json()["detail"]
        by_host = visit(server, visitor, host_of(session, port), "/x" + query, headers=token)
        assert by_host.status_code == 400
    in_path = f"{server.url}/token/{TOKEN}{path_of(session, port)}"
    assert visitor.get(in_path, timeout=60).status_code == 400
    by_host = visit(server, visitor, host_of(session, port), f"/?token={TOKEN}")
    assert by_host.status_code == 401
    # The control: another word is the application's own.
    assert server.get(path_of(session, port, "/x?token=theirs")).json()["path"] == "/x?token=theirs"
    # No page can read the address of a WebSocket, and a browser's has no fields of its own.
    url = server.url.replace("http://", "ws://", 1) + path_of(session, port, f"/ws?token={TOKEN}")
    with connect(url, compression=None) as socket:
        socket.send("hello")
        assert socket.recv(timeout=60) == "hello"


def test_a_server_that_listens_at_the_other_loopback_address_is_found(
    server: Server, session: Session
) -> None:
    start_http(session)
    made = session.execute("six = start_http('::1')")
    if made["status"] != "ok":
        pytest.skip("this host has no IPv6")
    port = int(session.value("six"))
    assert server.get(path_of(session, port, "/x")).json()["path"] == "/x"


def test_a_branch_has_ports_of_its_own(server: Server, visitor: requests.Session) -> None:
    parent = create(server)
    prepare(parent)
    port = int(parent.value("start_text('parent')"))
    token = {"Cellkeep-Preview-Token": issue(parent, port)["token"]}
    child = branch(parent, on_threads="drop")
    # What listened before is the parent's.
    assert kind_of(server.get(path_of(child, port))) == "port-not-open"
    assert child.value(f"start_text('child', {port})") == str(port)
    for whose, text in ((child, b"child"), (parent, b"parent")):
        assert server.get(path_of(whose, port)).content == text
    # So is its token.
    assert visit(server, visitor, host_of(parent, port), headers=token).content == b"parent"
    assert visit(server, visitor, host_of(child, port), headers=token).status_code == 401
    assert parent.delete() == 204
    assert server.get(path_of(parent, port)).status_code == 410
    assert server.get(path_of(child, port)).content == b"child"
    assert child.delete() == 204


def test_a_browser_gets_a_cookie_for_a_token(
    server: Server, session: Session, visitor: requests.Session
) -> None:
    port = start_http(session)
    issued = issue(session, port)
    host = host_of(session, port)
    at = server.url.rsplit(":", 1)[1]
    assert issued["url"] == f"http://{host}:{at}/?cellkeep_token={issued['token']}"
    assert visit(server, visitor, host).status_code == 401
    entered = visit(server, visitor, host, f"/a?b=1&cellkeep_token={issued['token']}&c=2")
    assert entered.status_code == 302 and entered.headers["Location"] == "/a?b=1&c=2"
    cookie = entered.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Domain" not in cookie
    ours = cookie.split(";")[0]
    both = {"Cookie": f"theirs=1; {ours}; more=2"}
    echo = visit(server, visitor, host, "/a?b=1", headers=both).json()
    assert fields_of(echo)["cookie"] == "theirs=1; more=2"
    assert fields_of(echo)["host"] == f"{host}:{at}"
    # A page of another origin may not use the cookie for more than a look.
    foreign = {**both, "Origin": "http://elsewhere.example"}
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
    assert visit(server, visitor, host, headers={**foreign, **upgrade}).status_code == 403
    # No redirect leads to another host.
    lure = visit(server, visitor, host, f"//evil.example/?cellkeep_token={issued['token']}")
    assert lure.status_code == 400
    # Cookies of the server inside are for its own host alone.
    given = visit(server, visitor, host, "/cookie", headers=both)
    assert given.headers["Set-Cookie"] == "mine=1; Path=/"
    assert "Clear-Site-Data" not in given.headers
    plain = server.get(path_of(session, port, "/cookie"))
    assert "Set-Cookie" not in plain.headers and plain.headers["Content-Security-Policy"] == "sandbox"


def test_a_token_is_for_one_port_of_one_session(
    server: Server, session: Session, visitor: requests.Session
) -> None:
    port = start_http(session)
    second = int(session.value("start_http()"))
    other = server.create()
    other_port = start_http(other)
    token = issue(session, port)["token"]

    def ask(whose: Session, number: int, with_token: str = token) -> int:
        headers = {"Cellkeep-Preview-Token": with_token}
        return visit(server, visitor, host_of(whose, number), headers=headers).status_code

    assert ask(session, port) == 200
    assert ask(session, second) == 401
    assert ask(other, other_port) == 401
    assert ask(session, port, token[:-1]) == 401
    # It is none of the session API's.
    bearer = {"Authorization": f"Bearer {token}"}
    assert visitor.get(server.url + session.path, headers=bearer, timeout=60).status_code == 401
    path = server.url + path_of(session, port)
    assert visitor.get(path, headers=bearer, timeout=60).status_code == 401
    # Spellings of the host that name no port.
    good = host_of(session, port)
    for host in (
        good.replace("-", "--"),
        "0" + good,
        good.upper().replace("LOCALHOST", "example.org"),
        good + ".evil.example",
        good.replace(".", "..", 1),
        f"{port}-{session.info['id']}.localhost",
    ):
        headers = {"Cellkeep-Preview-Token": token}
        answer = visit(server, visitor, host, headers=headers)
        assert answer.status_code in (400, 401, 404, 421), (host, answer.text)
    assert other.delete() == 204


def test_a_token_expires_and_is_revoked(
    server: Server, session: Session, visitor: requests.Session
) -> None:
    port = start_http(session)
    host = host_of(session, port)
    short = issue(session, port, expires_in_s=1)
    kept = issue(session, port)
    listed = server.get(f"{session.path}/ports/{port}/tokens").json()
    assert {one["token_id"] for one in listed["tokens"]} == {short["token_id"], kept["token_id"]}
    assert short["token"] not in str(listed)

    def status(token: str) -> int:
        headers = {"Cellkeep-Preview-Token": token}
        return visit(server, visitor, host, headers=headers).status_code

    wait_until(lambda: status(short["token"]) == 401, 30, "the token expires")
    assert status(kept["token"]) == 200
    one = f"{session.path}/ports/{port}/tokens/{kept['token_id']}"
    assert server.request("DELETE", one).status_code == 204
    assert server.request("DELETE", one).status_code == 404
    assert status(kept["token"]) == 401
    for wrong in ({"expires_in_s": 0}, {"expires_in_s": 10**9}, {"expires_in_s": "1"}, {"x": 1}):
        answer = server.post(f"{session.path}/ports/{port}/tokens", wrong)
        assert answer.status_code == 422, answer.text
    for _ in range(TOKENS_MAX):
        issue(session, port)
    assert server.post(f"{session.path}/ports/{port}/tokens").status_code == 429


def test_the_servers_own_token_opens_a_host_too(
    server: Server, session: Session, visitor: requests.Session
) -> None:
    port = start_http(session)
    host = host_of(session, port)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert visit(server, visitor, host, headers=bearer).status_code == 200
    assert visit(server, visitor, host, headers={"Authorization": "Bearer no"}).status_code == 401


def test_events_come_as_they_happen(server: Server, session: Session) -> None:
    port = start_http(session)
    with server.request("GET", path_of(session, port, "/events"), stream=True) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        lines = (line for line in read_lines(answer) if line)
        for number in range(3):
            # The next one is sent only when this one has come.
            assert next(lines) == b"data: %d" % number
            session.execute("step.set()")
        assert list(lines) == []


def test_a_websocket_passes(server: Server, session: Session) -> None:
    port = start_http(session)
    url = server.url.replace("http://", "ws://", 1) + path_of(session, port, "/ws")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with connect(url, additional_headers=headers, compression=None) as socket:
        for text in ("hello", "x" * 10_000):
            socket.send(text)
            assert socket.recv(timeout=60) == text
    # By the port's own host, with a token.
    token = issue(session, port)["token"]
    at = server.url.rsplit(":", 1)[1]
    own = f"ws://{host_of(session, port)}:{at}/ws"
    fields = {"Cellkeep-Preview-Token": token}
    plain = create_connection(("127.0.0.1", int(at)))  # this host may not resolve the name
    with connect(own, sock=plain, additional_headers=fields, compression=None) as socket:
        socket.send("again")
        assert socket.recv(timeout=60) == "again"
    # What refuses the upgrade is passed on, too.
    with pytest.raises(InvalidStatus) as refused:
        connect(url.replace("/ws", "/cookie"), additional_headers=headers)
    assert refused.value.response.status_code == 200
