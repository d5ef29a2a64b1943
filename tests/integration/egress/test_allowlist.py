# SPDX-License-Identifier: Apache-2.0
"""Egress by allowlist, through the public API: what clients inside reach, and what they do not."""

import json
import socket
from collections.abc import Iterator

import pytest

from harness import LEAN, Server, Session, wait_until
from modes import ModeServer
from outside import Outside

pytestmark = pytest.mark.both_modes

# A raw client: exactly these bytes to the proxy, and what comes back.
RAW = """
import json, socket
def raw(text, port=3128):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        wire.sendall(text.encode("latin-1"))
        wire.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := wire.recv(65536):
            answer += piece
    head = answer.decode("latin-1").split("\\r\\n\\r\\n")[0].split("\\r\\n")
    fields = dict(line.split(": ", 1) for line in head[1:])
    return int(head[0].split()[1]), fields.get("X-Cellkeep-Deny", "")
def get(target, host):
    return raw(f"GET {target} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n")
"""


@pytest.fixture(scope="module")
def server(mode: str, outside: Outside) -> Iterator[Server]:
    denied = ["--egress-resolve", "private.test=10.1.2.3"]
    denied += ["--egress-resolve", "metadata.test=169.254.169.254"]
    denied += ["--egress-resolve", "mapped.test=::ffff:127.0.0.1"]
    with ModeServer(mode, *LEAN, *outside.arguments(), *denied) as running:
        yield running


@pytest.fixture
def session(server: Server, outside: Outside) -> Iterator[Session]:
    allow = [f"index.test:{port}" for port in (outside.http, outside.https)]
    allow += [f"{name}.test:{outside.http}" for name in ("private", "metadata", "mapped")]
    created = server.create(network={"mode": "allowlist", "allow": allow})
    yield created
    assert created.delete() in (204, 404, 410)


def ran(session: Session, code: str) -> str:
    result = session.execute(code)
    assert result["status"] == "ok", result
    return result["stdout"]


def egress_lines(server: Server) -> list[dict]:
    return server.events("egress")


def test_pip_installs_from_an_allowed_index(session: Session, outside: Outside) -> None:
    said = ran(
        session,
        f"""
import subprocess, sys
done = subprocess.run(
    ["/opt/cellkeep/environment/bin/python", "-m", "pip", "install", "--no-cache-dir",
     "--index-url", "https://index.test:{outside.https}/simple/",
     "--target", "/workspace/packages", "cellkeep-tiny"],
    capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
sys.path.insert(0, "/workspace/packages")
import cellkeep_tiny
print("the answer is", cellkeep_tiny.ANSWER)
""",
    )
    assert "the answer is 42" in said, said


def test_common_clients_work_without_configuration(session: Session, outside: Outside) -> None:
    said = ran(
        session,
        f"""
import subprocess, urllib.request, requests
for url in ("http://index.test:{outside.http}/x", "https://index.test:{outside.https}/x"):
    print("urllib", urllib.request.urlopen(url, timeout=60).read())
    print("requests", requests.get(url, timeout=60).content)
    print("posted", requests.post(url, data=b"a" * 100_000, timeout=60).content == b"a" * 100_000)
    done = subprocess.run(["curl", "-sS", "--max-time", "60", url], capture_output=True)
    print("curl", done.stdout, done.stderr)
""",
    )
    for client in ("urllib", "requests", "curl"):
        assert said.count(f"{client} b'hello from outside'") == 2, said
    assert said.count("posted True") == 2, said


def test_a_refusal_can_be_read_by_an_agent(session: Session, outside: Outside) -> None:
    said = ran(
        session,
        f"""
import json, urllib.request, urllib.error
try:
    urllib.request.urlopen("http://other.test:{outside.http}/", timeout=60)
except urllib.error.HTTPError as refusal:
    print(json.dumps([refusal.code, refusal.headers["X-Cellkeep-Deny"], json.load(refusal)]))
""",
    )
    status, code, problem = json.loads(said)
    assert (status, code) == (403, "not_allowed")
    assert problem["host"] == "other.test" and problem["port"] == outside.http
    assert problem["status"] == 403 and problem["hint"]


def test_refusals_do_not_fill_the_log(server: Server) -> None:
    session = server.create(network={"mode": "allowlist", "allow": []})
    said = ran(
        session,
        """
import socket
codes = []
for _ in range(100):
    with socket.create_connection(("127.0.0.1", 3128), timeout=60) as proxy:
        proxy.sendall(b"M" * 5000 + b" http://other.test/ HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n")
        proxy.shutdown(socket.SHUT_WR)
        codes.append(proxy.makefile("rb").read().split()[1])
print(codes.count(b"405"))
""",
    )
    assert said == "100\n"
    assert session.delete() == 204

    def lines_of_session() -> list[dict]:
        return [line for line in egress_lines(server) if line["session"] == session.info["id"]]

    # What the log says comes a moment after what the API says.
    def ended() -> bool:
        return any(line["reason"] == "session_ended" for line in lines_of_session())

    wait_until(ended, 60, "the last line of the session")
    lines = lines_of_session()
    refused = [line for line in lines if line["method"] == "other"]
    suppressed = sum(line.get("suppressed", 0) for line in lines)
    assert suppressed > 0 and len(refused) + suppressed == 100
    assert {line["method"] for line in lines} == {"other", ""}
    assert {line["decision"] for line in lines} == {"deny"}


def test_no_other_spelling_leads_anywhere(session: Session, outside: Outside) -> None:
    before = len(outside.arrived)
    port = outside.http
    spellings = [
        "2130706433",
        "0x7f000001",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[::1%25lo]",
        "index.test.",
        "user@index.test",
        "index.test@127.0.0.1",
        "index%2etest",
        "b\u00fccher.test",
        "xn--bcher-kva.test",
        "127.0.0.1",
        "[::1]",
        "localhost",
        "a.index.test",
        "INDEX.TEST.evil.test",
        "private.test",
        "metadata.test",
        "mapped.test",
    ]
    said = ran(
        session,
        RAW
        + f"""
for host in json.loads({json.dumps(spellings)!r}):
    print(json.dumps([host, get(f"http://{{host}}:{port}/", f"{{host}}:{port}"),
                      raw(f"CONNECT {{host}}:{port} HTTP/1.1\\r\\n\\r\\n")]))
""",
    )
    answers = [json.loads(line) for line in said.splitlines()]
    assert [host for host, _, _ in answers] == spellings
    codes = {"bad_target", "not_allowed", "address_refused", "malformed"}
    for host, plain, tunnel in answers:
        assert plain[0] in (400, 403) and plain[1] in codes, (host, plain)
        assert tunnel[0] in (400, 403) and tunnel[1] in codes, (host, tunnel)
    by_host = {host: plain[1] for host, plain, _ in answers}
    for name in ("private.test", "metadata.test", "mapped.test"):
        assert by_host[name] == "address_refused"
    assert len(outside.arrived) == before


def test_there_is_no_way_past_the_proxy(server: Server, session: Session, outside: Outside) -> None:
    with socket.create_connection(("127.0.0.1", outside.http), timeout=60):
        pass  # outside the very same call succeeds
    probe = f"""
import socket
def reach(kind, family, address):
    try:
        with socket.socket(family, kind) as wire:
            wire.settimeout(60)
            wire.connect(address)
            if kind == socket.SOCK_DGRAM:
                wire.send(b"x")
                wire.recv(1)
        return "reached"
    except OSError as error:
        return type(error).__name__
def resolves(name):
    try:
        return socket.getaddrinfo(name, 80)
    except OSError:
        return []
tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
print([reach(tcp, socket.AF_INET, (host, port)) for host, port in
       (("127.0.0.1", {outside.http}), ("127.0.0.1", {outside.https}), ("1.1.1.1", 443),
        ("169.254.169.254", 80), ("10.0.0.1", 80))])
print([reach(udp, socket.AF_INET, (host, 53)) for host in ("1.1.1.1", "127.0.0.53")])
print(reach(tcp, socket.AF_INET6, ("::1", {outside.http})), resolves("index.test"))
print(reach(tcp, socket.AF_INET, ("127.0.0.1", 3128)))
"""
    said = ran(session, probe)
    assert said.count("reached") == 1 and said.rstrip().endswith("reached"), said
    assert said.splitlines()[2].endswith("[]"), said
    alone = server.create()
    assert "reached" not in ran(alone, probe)  # not even a proxy
    assert alone.info["network"] == {"mode": "none"}
    assert alone.delete() == 204


def test_a_new_list_counts_at_once_and_ends_what_it_does_not_name(
    server: Server, session: Session, outside: Outside
) -> None:
    begin = RAW + f"""
tunnel = socket.create_connection(("127.0.0.1", 3128), timeout=60)
tunnel.sendall(b"CONNECT index.test:{outside.https} HTTP/1.1\\r\\n\\r\\n")
print(tunnel.recv(1000).split(b"\\r\\n")[0])
"""
    assert "200" in ran(session, begin)
    change = {"network": {"allow": [f"other.test:{outside.http}"]}}
    changed = server.request("PATCH", session.path, json=change)
    assert changed.status_code == 200, changed.text
    assert changed.json()["network"]["allow"] == [f"other.test:{outside.http}"]
    port = outside.http
    said = ran(
        session,
        f"""
try:
    print(tunnel.recv(1000))
except ConnectionError:
    print(b"")
print(get("http://index.test:{port}/", "index.test:{port}"))
print(get("http://other.test:{port}/", "other.test:{port}"))
""",
    )
    assert said.splitlines() == ["b''", "(403, 'not_allowed')", "(200, '')"]
    beyond = {"network": {"allow": ["index.test:1"]}}
    assert server.request("PATCH", session.path, json=beyond).status_code == 403
    assert session.fetch()["network"]["allow"] == [f"other.test:{port}"]
    alone = server.create()
    refused = server.request("PATCH", alone.path, json=change)
    assert refused.status_code == 409, refused.text
    assert alone.delete() == 204


def test_the_session_and_the_log_say_what_happened(
    server: Server, session: Session, outside: Outside
) -> None:
    port = outside.http
    ran(
        session,
        RAW
        + f"""
get("http://index.test:{port}/path?query=1", "index.test:{port}")
get("http://other.test:{port}/", "other.test:{port}")
""",
    )
    network = session.fetch()["network"]
    assert network["mode"] == "allowlist"
    assert network["traffic"]["requests"] == 2 and network["traffic"]["denied"] == 1
    assert network["traffic"]["bytes_down"] > 0 < network["traffic"]["bytes_up"]
    lines = [line for line in egress_lines(server) if line["session"] == session.info["id"]]
    assert [(line["decision"], line["reason"], line["host"]) for line in lines] == [
        ("allow", "allowed", "index.test"),
        ("deny", "not_allowed", "other.test"),
    ]
    assert lines[0]["address"] == "127.0.0.1" and lines[0]["port"] == port
    assert "query" not in json.dumps(lines)


def test_a_session_gets_no_more_than_the_operator_allows(server: Server, outside: Outside) -> None:
    for body, status in (
        ({"mode": "allowlist", "allow": ["index.test:443"]}, 403),
        ({"mode": "allowlist", "allow": [], "secrets": ["unknown"]}, 403),
        ({"mode": "allowlist", "allow": ["127.1:80"]}, 422),
        ({"mode": "allowlist", "allow": ["*"]}, 422),
        ({"mode": "allowlist", "allow": [7]}, 422),
        ({"mode": "allowlist", "allow": ["a.test"] * 65}, 422),
        ({"mode": "none", "allow": ["index.test"]}, 422),
        ({"allow": ["index.test"]}, 422),
        ({"mode": "all"}, 422),
        ({"mode": "allowlist", "alow": []}, 422),
    ):
        refused = server.post("/v1/sessions", {"network": body})
        assert refused.status_code == status, (body, refused.text)
        assert refused.headers["Content-Type"] == "application/problem+json"
    once = server.post(
        "/v1/executions",
        {
            "code": RAW + f'print(get("http://index.test:{outside.http}/", "index.test:'
            f'{outside.http}"))',
            "network": {"mode": "allowlist", "allow": [f"index.test:{outside.http}"]},
        },
    )
    assert once.json()["stdout"] == "(200, '')\n", once.text


def test_without_the_operators_word_there_is_no_network(mode: str) -> None:
    with ModeServer(mode, *LEAN) as alone:
        refused = alone.post("/v1/sessions", {"network": {"mode": "allowlist", "allow": []}})
        assert refused.status_code == 403
        assert "--allow-egress" in refused.json()["detail"]
