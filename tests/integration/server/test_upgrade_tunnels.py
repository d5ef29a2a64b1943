# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while connections go through a session's proxy: none of their bytes is lost or comes twice."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Server, Session, wait_until
from networks import egress_lines, network, serve, traffic
from outside import PART_BYTES, Outside, part
from package_index import PackageIndex
from processes import finish, python, wait_for_text
from upgrades import SECONDS_MAX, Asked, Place, news, upgrade

pytestmark = pytest.mark.both_modes

# Says how many parts have come, and what all of them are.
DOWNLOAD = f"""
import hashlib, sys, urllib.request
whole, bytes_seen = hashlib.sha256(), 0
with urllib.request.urlopen(sys.argv[1], timeout=60) as answer:
    print("begun", flush=True)
    while piece := answer.read(65536):
        whole.update(piece)
        for number in range(bytes_seen // {PART_BYTES}, (bytes_seen + len(piece)) // {PART_BYTES}):
            print("part", number, flush=True)
        bytes_seen += len(piece)
print(bytes_seen, whole.hexdigest())
"""
# One connection to the proxy for all requests of a session.
KEPT = """
import http.client
def ask(wire, target, host):
    wire.request("GET", target, headers={"Host": host})
    return wire.getresponse().read().decode(), wire.sock.getsockname()
"""


@pytest.fixture(scope="module")
def outside(folder: Path) -> Iterator[Outside]:
    with Outside(folder) as running:
        yield running


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    with PackageIndex(tmp_path_factory.mktemp("index")) as running:
        yield running


@pytest.fixture(scope="module")
def server(
    mode: str, place: Place, outside: Outside, index: PackageIndex, folder: Path
) -> Iterator[Server]:
    with serve(mode, outside, index, folder) as running:
        yield running


@pytest.fixture
def session(server: Server, outside: Outside, index: PackageIndex) -> Iterator[Session]:
    created = server.create(network=network(outside, index))
    yield created
    assert created.delete() in (204, 404, 410)


def digest_of(parts: int) -> str:
    return hashlib.sha256(b"".join(part(number) for number in range(parts))).hexdigest()


def test_a_download_through_a_tunnel_is_whole(
    server: Server, session: Session, outside: Outside
) -> None:
    url = f"https://index.test:{outside.https}/parts/4"
    process = python(session, DOWNLOAD.replace("sys.argv[1]", repr(url)))
    place = wait_for_text(session, process, "begun")
    for number in range(3):
        # What has come before the upgrade, and what comes in the middle of it.
        outside.parts.release()
        place = wait_for_text(session, process, f"part {number}", place)
        before = traffic(session)
        upgrade(server)
        assert traffic(session) == before
    outside.parts.release()
    done = finish(session, process)
    assert done.stdout.decode().splitlines()[-1] == f"{4 * PART_BYTES} {digest_of(4)}", done.stderr
    # One tunnel, one line, with all of it.
    lines = [line for line in egress_lines(server, session) if line["method"] == "CONNECT"]
    assert len(lines) == 1, lines
    assert (lines[0]["decision"], lines[0]["sni"], lines[0]["status"]) == ("allow", "index.test", 200)
    assert lines[0]["bytes_down"] > 4 * PART_BYTES
    assert traffic(session)["bytes_down"] == lines[0]["bytes_down"]
    assert [path for path, _ in outside.arrived if path == "/parts/4"] == ["/parts/4"]
    outside.arrived.clear()


def test_connections_that_a_client_keeps_go_on(
    server: Server, session: Session, outside: Outside
) -> None:
    secure = f"'index.test', {outside.https}"
    code = f"""
plain = http.client.HTTPConnection("127.0.0.1", 3128, timeout=60)
secure = http.client.HTTPSConnection("127.0.0.1", 3128, timeout=60)
secure.set_tunnel({secure})
idle = http.client.HTTPConnection("127.0.0.1", 3128, timeout=60)
idle.connect()
"""
    assert session.execute(KEPT + code)["status"] == "ok"
    target = f"'http://index.test:{outside.http}/x', 'index.test:{outside.http}'"
    asks = [
        f"ask(plain, {target})",
        f"ask(secure, '/x', 'index.test:{outside.https}')",
    ]
    before = [session.value(one) for one in asks]
    assert all("hello from outside" in one for one in before)
    for _ in range(3):
        upgrade(server)
        # The same connections, from the same ports.
        assert [session.value(one) for one in asks] == before
    # One that has never asked, and one that begins afterwards.
    assert "hello from outside" in session.value(f"ask(idle, {target})")
    assert session.execute("fresh = http.client.HTTPConnection('127.0.0.1', 3128)")["status"] == "ok"
    assert "hello from outside" in session.value(f"ask(fresh, {target})")
    assert traffic(session)["requests"] == 4 + 1 + 1 + 1
    # And what is not allowed on a kept connection was and is not.
    other = f"'http://other.test:{outside.http}/x', 'other.test:{outside.http}'"
    assert "not_allowed" in session.value(f"ask(plain, {other})")


def test_a_request_under_way_is_waited_for(
    server: Server, session: Session, outside: Outside
) -> None:
    url = f"http://index.test:{outside.http}/parts/2"
    process = python(session, DOWNLOAD.replace("sys.argv[1]", repr(url)))
    outside.parts.release()
    place = wait_for_text(session, process, "part 0")
    sent = Asked(server)
    said = f"{session.info['id']} (a request goes through its proxy)"
    assert sent.wait("waiting")["for"] == [said]
    assert [each["outcome"] for each in news(server)[sent.before :]] == ["waiting"]
    outside.parts.release()
    wait_for_text(session, process, "part 1", place)
    sent.wait_until_served()
    done = finish(session, process)
    assert done.stdout.decode().splitlines()[-1] == f"{2 * PART_BYTES} {digest_of(2)}", done.stderr
    assert [path for path, _ in outside.arrived if path == "/parts/2"] == ["/parts/2"]


def test_a_tunnel_ends_with_what_allowed_it_and_with_its_session(
    server: Server, session: Session, outside: Outside, index: PackageIndex
) -> None:
    url = f"https://index.test:{outside.https}/parts/1"
    codes = DOWNLOAD.replace("sys.argv[1]", repr(url))
    first = python(session, codes)
    wait_for_text(session, first, "begun")
    upgrade(server)
    allow = [one for one in session.fetch()["network"]["allow"] if not one.endswith(str(outside.https))]
    assert server.request("PATCH", session.path, json={"network": {"allow": allow}}).status_code == 200
    assert digest_of(1).encode() not in finish(session, first).stdout
    lines = [line for line in egress_lines(server, session) if line["method"] == "CONNECT"]
    assert [line["reason"] for line in lines] == ["policy_changed"]
    outside.parts.release()  # the test's own server stops sending to the client that has gone
    other = server.create(network=network(outside, index))
    second = python(other, codes)
    wait_for_text(other, second, "begun")
    upgrade(server)
    assert other.delete() == 204

    def ended() -> bool:
        return [line["reason"] for line in egress_lines(server, other)] == ["session_ended"]

    wait_until(ended, SECONDS_MAX, "its tunnel has ended")
    outside.parts.release()
