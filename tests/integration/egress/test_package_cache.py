# SPDX-License-Identifier: Apache-2.0
"""Sessions that install from the cache of packages: what is downloaded once, what is refused."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LEAN, Server, Session
from installations import ask, has, install, names, refused
from modes import ModeServer
from package_cache import ADDRESS, INDEX, PAGES, PackageCache
from stated_index import SUFFIX, StatedIndex

TINY, HELPER, SPARE = (f"{name}-1.0{SUFFIX}" for name in ("tiny", "helper", "spare"))


@pytest.fixture(scope="module")
def server(mode: str, port: int) -> Iterator[Server]:
    index = ["--package-index", f"http://{ADDRESS}:{port}{PAGES}"]
    with ModeServer(mode, *LEAN, *index, "--egress-permit-address", ADDRESS) as running:
        yield running


def create(server: Server, port: int, **fields: object) -> Session:
    return server.create(network={"mode": "allowlist", "allow": [f"{ADDRESS}:{port}"]}, **fields)


@pytest.mark.both_modes
def test_what_one_session_has_installed_the_next_has_from_the_cache(
    server: Server, port: int, index: StatedIndex, cache: PackageCache
) -> None:
    for _ in range(3):
        session = create(server, port)
        assert names(install(session, "tiny")["installed"]) == {"tiny": "1.0", "helper": "1.0"}
        assert session.value("__import__('tiny').VERSION") == "'1.0'"
        assert session.delete() == 204
    assert [index.asked_for(file) for file in (TINY, HELPER, SPARE)] == [1, 1, 0]
    assert sorted(Path(one["file"]).name for one in cache.events("fetched")) == [HELPER, TINY]
    assert len(cache.events("kept")) == 4
    # Its place is named by its hash, so there is one of it.
    assert set(cache.files()) == {TINY, HELPER}
    path = cache.files()[TINY]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest.startswith(path.parts[-3] + path.parts[-2])
    assert path.stat().st_mode & 0o777 == 0o600


def test_magics_install_from_the_cache_too(
    server: Server, port: int, index: StatedIndex, cache: PackageCache
) -> None:
    for _ in range(2):
        session = create(server, port)
        assert "Successfully installed" in session.execute("%pip install spare")["stdout"]
        assert session.delete() == 204
    assert index.asked_for(SPARE) == 1


def test_the_next_session_installs_while_the_index_is_away(
    server: Server, port: int, index: StatedIndex, cache: PackageCache
) -> None:
    session = create(server, port)
    install(session, "tiny")
    assert session.delete() == 204
    index.stop()
    # Started again, it has in memory nothing of what the index said.
    cache.stop()
    cache.start()
    session = create(server, port)
    assert names(install(session, "tiny")["installed"]) == {"tiny": "1.0", "helper": "1.0"}
    assert session.value("__import__('tiny').VERSION") == "'1.0'"
    assert "The index answers 502" in refused(session, "spare")["output"]
    assert not has(session, "spare")


def test_a_file_that_the_index_has_spoiled_is_refused(
    server: Server, port: int, index: StatedIndex, cache: PackageCache
) -> None:
    index.spoiled.add(SPARE)
    session = create(server, port)
    problem = refused(session, "spare")
    assert "The cache does not take this file from the index" in problem["output"], problem
    assert "sha256 mismatch" in problem["output"], problem
    assert not has(session, "spare") and SPARE not in cache.files()
    [event] = cache.events("refused")
    assert event["file"].endswith(SPARE) and "sha256 mismatch" in event["why"]
    # Others are installed, and this one too once it is mended.
    assert names(install(session, "helper")["installed"]) == {"helper": "1.0"}
    index.spoiled.clear()
    assert names(install(session, "spare")["installed"]) == {"spare": "1.0"}


def test_a_file_that_is_spoiled_in_the_cache_is_never_installed(
    server: Server, port: int, index: StatedIndex, cache: PackageCache
) -> None:
    session = create(server, port)
    install(session, "spare")
    path = cache.files()[SPARE]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"?")
    # The index is there: it is fetched again.
    session = create(server, port)
    assert names(install(session, "spare")["installed"]) == {"spare": "1.0"}
    assert index.asked_for(SPARE) == 2 and path.read_bytes() == whole
    assert [Path(one["file"]).name for one in cache.events("spoiled")] == [SPARE]
    # It is away.
    path.write_bytes(whole[:-1] + b"?")
    index.stop()
    session = create(server, port)
    assert "502" in refused(session, "spare")["output"]
    assert not has(session, "spare") and SPARE not in cache.files()


def test_pip_inside_checks_the_hash_itself(mode: str, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    with StatedIndex(tmp_path / "bare") as bare:
        bare.spoiled.add(SPARE)
        # Inside, 127.0.0.1 is the session itself.
        place = f"index.test:{bare.server.server_port}"
        options = ["--package-index", f"http://{place}/", "--egress-resolve", "index.test=127.0.0.1"]
        options += ["--egress-permit-address", "127.0.0.1", "--prespawn-count", "0"]
        with ModeServer(mode, *LEAN, *options) as server:
            session = server.create(network={"mode": "allowlist", "allow": [place]})
            assert "DO NOT MATCH THE HASHES" in refused(session, "spare")["output"]
            assert not has(session, "spare")
            assert names(install(session, "helper")["installed"]) == {"helper": "1.0"}


def test_a_file_whose_hash_is_not_stated_is_refused(
    server: Server, port: int, index: StatedIndex, cache: PackageCache
) -> None:
    index.unstated.add("spare")
    session = create(server, port)
    assert "states no hash of this file" in refused(session, "spare")["output"]
    assert index.asked_for(SPARE) == 0
    assert names(install(session, "helper")["installed"]) == {"helper": "1.0"}


def test_a_session_without_network_is_refused_as_without_a_cache(
    server: Server, port: int, index: StatedIndex, cache: PackageCache
) -> None:
    for network in ({"mode": "none"}, {"mode": "allowlist", "allow": []}):
        session = server.create(network=network)
        answer = ask(session, "tiny")
        assert answer.status_code == 409
        assert answer.json()["type"] == "/problems/package-index-not-reached"
        assert f"{ADDRESS}:{port}" in answer.json()["detail"]
        assert not has(session, "tiny")
        assert session.delete() == 204
    assert index.arrived == []
    session = create(server, port)
    assert names(install(session, "helper")["installed"]) == {"helper": "1.0"}


# What code in a session asks the cache for, and must not get.
FORBIDDEN = [
    ("GET", "/"),
    ("GET", "/+status"),
    ("GET", "/+api"),
    ("GET", "/+changelog/0"),
    ("GET", "/root"),
    ("GET", f"/{INDEX}"),
    ("GET", f"/{INDEX}/spare"),
    ("GET", f"/{INDEX}/+simple/"),
    ("GET", f"/{INDEX}/+simple/../../+status"),
    ("GET", f"/{INDEX}/+f/../../../../etc/passwd"),
    ("GET", f"/{INDEX}/+f/abc/../secret"),
    ("GET", f"/{INDEX}/+simple/spare/refresh"),
    ("POST", f"/{INDEX}/+simple/spare/refresh"),
    ("POST", "/+login"),
    ("POST", f"/{INDEX}"),
    ("PUT", "/code"),
    ("PUT", "/code/other"),
    ("PATCH", "/root"),
    ("PATCH", f"/{INDEX}"),
    ("DELETE", f"/{INDEX}/spare"),
    ("DELETE", f"/{INDEX}/+simple/spare/"),
]
ASK = """
import http.client
def ask(method, path, body=None):
    there = http.client.HTTPConnection("127.0.0.1", 3128, timeout=60)
    there.request(method, "http://{place}" + path, body, {{"Content-Type": "application/json"}})
    return there.getresponse().status
"""


def test_code_in_a_session_only_reads_pages_and_files(
    server: Server, port: int, cache: PackageCache
) -> None:
    session = create(server, port)
    install(session, "spare")
    assert session.execute(ASK.format(place=f"{ADDRESS}:{port}"))["status"] == "ok"
    file = cache.link("spare", SPARE).removeprefix(cache.url)
    for method, path in FORBIDDEN:
        status = session.value(f"ask({method!r}, {path!r}, {'{}' if method != 'GET' else None!r})")
        assert status in ("403", "404", "405"), (method, path, status)
    assert session.value(f"ask('DELETE', {file!r})") == "405"
    assert session.value(f"ask('PUT', {file!r}, 'x' * 70_000)") in ("405", "413")
    assert session.value(f"ask('GET', {PAGES + 'spare/'!r})") == "200"
    assert session.value(f"ask('GET', {file!r})") == "200"
    assert session.value(f"ask('HEAD', {file!r})") == "200"
