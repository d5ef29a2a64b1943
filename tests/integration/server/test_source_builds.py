# SPDX-License-Identifier: Apache-2.0
"""Environments whose packages are built from source, by code of their authors: what comes of it, and that it
does not get out of its sandbox."""

import contextlib
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sources
from harness import LEAN, Server, Session
from wheels import Environments, make_wheel, serve_index


class _Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def another_server() -> Iterator[int]:
    """Its port: a server of this machine that is no index."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("index")
    make_wheel(folder, "alpha", "1.0")
    sources.make_source(folder, "native", sources.NATIVE, {"native.c": sources.NATIVE_C})
    sources.make_source(folder, "broken", sources.BROKEN)
    sources.make_source(folder, "impostor", sources.IMPOSTOR)
    sources.make_source(folder, "stowaway", sources.STOWAWAY)
    sources.make_source(folder, "greedy", sources.GREEDY)
    yield folder


@pytest.fixture(scope="module")
def address(index: Path) -> Iterator[str]:
    with serve_index(index) as url:
        yield url


@pytest.fixture
def environments(tmp_path: Path, address: str) -> Environments:
    return Environments(tmp_path, address)


def build(environments: Environments, built: str, *requirements: str) -> subprocess.CompletedProcess:
    return environments.create("made", *requirements, more=("--build-sdists", built))


def left(environments: Environments) -> list[str]:
    """But for what keeps two builds of images apart."""
    images = [name for name in os.listdir(environments.store / "images") if name != "lock"]
    return sorted(os.listdir(environments.store)) + images


@contextlib.contextmanager
def session_in(environments: Environments, name: str) -> Iterator[Session]:
    running = Server(*LEAN, "--prespawn-count", "0")
    running.environment = environments.variables
    with running as server:
        session = server.create(environment=name)
        yield session
        assert session.delete() == 204


def test_a_module_in_c_is_built_and_runs(environments: Environments) -> None:
    made = build(environments, "native", "native", "alpha==1.0")
    assert made.returncode == 0, made.stderr
    shown = json.loads(environments.run("show", "made", "--json").stdout)
    assert shown["packages"] == {"alpha": "1.0", "native": "1.0"}
    assert shown["built_from_source"] == ["native"]
    text = environments.run("show", "made").stdout
    assert "  native 1.0 (built from source)\n" in text and "  alpha 1.0\n" in text
    with session_in(environments, "made") as session:
        assert session.value("__import__('native').twice(21), __import__('alpha').VERSION") == "(42, '1.0')"


def test_nothing_is_built_that_is_not_named(environments: Environments) -> None:
    for refused in (environments.create("made", "native"), build(environments, "alpha", "native", "alpha")):
        assert refused.returncode == 1
        assert "native" in refused.stderr or "alpha" in refused.stderr, refused.stderr
    assert json.loads(environments.run("list", "--json").stdout) == []


def test_hashes_are_those_of_the_source(environments: Environments, index: Path) -> None:
    digest = hashlib.sha256((index / "native/native-1.0.tar.gz").read_bytes()).hexdigest()
    wrong = build(environments, "native", "native==1.0 --hash=sha256:" + "0" * 64)
    assert wrong.returncode == 1 and "build native from its source" in wrong.stderr, wrong.stderr
    right = build(environments, "native", f"native==1.0 --hash=sha256:{digest}")
    assert right.returncode == 0, right.stderr


@pytest.mark.parametrize(
    ("built", "reason"),
    [
        ("broken", "the author has forgotten something"),
        ("impostor", "gave something else than a wheel of impostor"),
        ("stowaway", "no wheel, or more than one"),
        ("missing", "No matching distribution found"),
    ],
)
def test_a_build_that_does_not_give_its_wheel_says_why_and_leaves_nothing(
    environments: Environments, built: str, reason: str
) -> None:
    refused = build(environments, built, built, "alpha")
    assert refused.returncode == 1
    assert reason in refused.stderr, refused.stderr
    assert f"build {built} from its source" in refused.stderr or reason.endswith(built)
    assert left(environments) == ["images", "lock", "names"]
    # What it gave of another package is nowhere: that comes from the index.
    assert environments.create("made", "alpha").returncode == 0
    assert json.loads(environments.run("show", "made", "--json").stdout)["packages"] == {"alpha": "1.0"}


def test_a_build_has_bounds_of_space(environments: Environments) -> None:
    refused = build(environments, "greedy", "greedy")
    assert refused.returncode == 1
    assert "nothing has stopped it" not in refused.stderr
    assert "No space left on device" in refused.stderr or "MiB of" in refused.stderr, refused.stderr
    assert left(environments) == ["images", "lock", "names"]


def test_one_that_nothing_needs_is_an_error(environments: Environments) -> None:
    refused = build(environments, "native", "alpha")
    assert refused.returncode == 1 and "none of the requirements needs it" in refused.stderr


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict]:
    """What a build that wants out may look for."""
    (tmp_path / "secret").write_text("the host's own", encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    (home / "key").touch()
    with another_server() as port, subprocess.Popen(["sleep", "infinity"]) as victim:
        yield {
            "secret": str(tmp_path / "secret"),
            "home": str(home),
            "mark": str(tmp_path / "mark"),
            "port": port,
            "victim": victim.pid,
        }
        if victim.poll() is None:
            victim.kill()


def test_a_build_does_not_leave_its_sandbox(tmp_path: Path, places: dict) -> None:
    index = tmp_path / "index"
    index.mkdir()
    files = {"attempts.py": sources.ATTEMPTS, "places.json": json.dumps(places)}
    sources.make_source(index, "hostile", sources.HOSTILE, files)
    with serve_index(index) as url:
        environments = Environments(tmp_path, url)
        made = build(environments, "hostile", "hostile")
    assert made.returncode == 0, made.stderr
    with session_in(environments, "made") as session:
        inside = json.loads(session.execute("import hostile, json; print(json.dumps(hostile.RESULTS))")["stdout"])
    assert {outcome for outcome, _ in inside.values()} == {"failed"}, inside
    assert not Path(places["mark"]).exists()
    assert Path(f"/proc/{places['victim']}").exists()
    # The same succeeds where nothing holds it back.
    program = sources.ATTEMPTS + "\nimport json, sys\nprint(json.dumps(try_all(json.loads(sys.argv[1]))))"
    ran = subprocess.run(
        [sys.executable, "-c", program, json.dumps(places)],
        env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    outside = json.loads(ran.stdout)
    assert {outcome for outcome, _ in outside.values()} == {"done"}, outside
    assert outside.keys() == inside.keys()


def test_wrong_words_are_refused(environments: Environments) -> None:
    environments.requirements.write_text("alpha\n", encoding="utf-8")
    asked = ("create", "made", "--requirements", "requirements.txt")
    local = ("--index", environments.index)
    for words, reason in [
        ((*local, "--build-sdists", "native==1.0"), "no name of a package"),
        ((*local, "--build-sdists", "nat ive"), "no name of a package"),
        ((*local, "--build-sdists", "../native"), "no name of a package"),
        ((*local, "--build-sdists", ":all:"), "no name of a package"),
        ((*local, "--build-sdists", ",".join(f"p{n}" for n in range(33))), "more than 32 packages"),
        (("--build-sdists", "native"), "needs --index"),
        (("--index", "http://me:secret@index.example/", "--build-sdists", "native"), "that sessions may see"),
        ((*local, "--build-sdists", "native", "--build-hosts", "*"), "--build-hosts"),
        ((*local, "--build-sdists", "native", "--build-hosts", "http://files.example/"), "--build-hosts"),
    ]:
        refused = environments.run(*asked, *words)
        assert refused.returncode == 1, (words, refused)
        assert reason in refused.stderr and "secret" not in refused.stderr, (words, refused.stderr)
    assert environments.run(*asked, *local, "--build-hosts", "files.example").returncode == 2
    assert json.loads(environments.run("list", "--json").stdout) == []
