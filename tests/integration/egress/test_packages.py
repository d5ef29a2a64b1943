# SPDX-License-Identifier: Apache-2.0
"""Packages that sessions install while they live: what is installed, what is refused, what is left."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from checkpoints import checkpoint, roll_back
from harness import LEAN, TOKEN, Server, Session, wait_until
from modes import ModeServer
from installations import ask, create, events, has, install, names, refused, runs_nothing
from package_index import SILENT, SLOW, PackageIndex
from wheels import Environments

PACKAGES_MAX = 50  # kOrderedPackagesMax (kernel-manager/environments/package_name.hpp)
ROOT = "/workspace/.cellkeep-packages"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    with PackageIndex(tmp_path_factory.mktemp("index")) as running:
        yield running


@pytest.fixture(scope="module")
def server(mode: str, index: PackageIndex) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, *index.arguments()) as running:
        yield running


@pytest.fixture
def session(server: Server, index: PackageIndex) -> Iterator[Session]:
    created = create(server, index)
    yield created
    assert created.delete() in (204, 404, 410)


@pytest.mark.both_modes
def test_what_is_installed_is_imported_at_once(server: Server, session: Session) -> None:
    assert not has(session, "tiny")
    done = install(session, "tiny==1.0")
    assert names(done["installed"]) == {"tiny": "1.0", "helper": "1.0"}
    assert (done["present"], done["restart_needed"]) == ([], False)
    assert "Successfully installed" in done["output"] and not done["output_truncated"]
    result = session.execute("import tiny, helper; print(tiny.VERSION, tiny.__file__)")
    assert result["stdout"].startswith(f"1.0 {ROOT}/"), result
    assert result["artifacts"] == []
    # Programs that code starts have it, too.
    assert session.value("__import__('os').system('python -c \"import tiny, numpy\"')") == "0"
    assert names(install(session, "tiny", "helper>=1,<2")["present"]) == {"tiny": "1.0", "helper": "1.0"}
    wait_until(lambda: runs_nothing(session), 30, "the installer is gone")
    asked = [event["asked"] for event in events(server, session)]
    assert asked == [["tiny==1.0"], ["tiny", "helper>=1,<2"]]
    assert events(server, session)[0]["installed"] == ["helper==1.0", "tiny==1.0"]
    assert events(server, session)[0]["outcome"] == "installed"


def test_magics_and_commands_install_into_the_same_place(session: Session) -> None:
    session.execute("import os; before = set(os.listdir('/workspace'))")
    result = session.execute("%pip install tiny")
    assert "Successfully installed" in result["stdout"], result
    assert result["artifacts"] == [] and result["artifacts_complete"]
    result = session.execute("!pip install later")
    assert "Successfully installed" in result["stdout"], result
    assert session.value("__import__('tiny').__file__").startswith(f"'{ROOT}/")
    assert session.value("__import__('later').__file__").startswith(f"'{ROOT}/")
    assert names(install(session, "tiny", "later")["present"]) == {"tiny": "1.0", "later": "2.0"}
    assert session.value("sorted(set(os.listdir('/workspace')) - before)") == "[]"
    result = session.execute("%pip install sourced")
    assert "Successfully installed" not in result["stdout"], result
    assert not has(session, "sourced")
    result = session.execute("%pip install --no-binary sourced sourced")
    assert "Successfully installed" in result["stdout"] and has(session, "sourced"), result


def test_the_environment_s_packages_keep_their_versions(session: Session, index: PackageIndex) -> None:
    version = session.value("__import__('importlib.metadata').metadata.version('numpy')").strip("'")
    index.arrived.clear()
    done = install(session, "numpy", "spare")
    assert names(done["present"]) == {"numpy": version}
    assert not [path for path in index.arrived if "numpy" in path]
    problem = refused(session, "numpy==0.1", "later")
    assert "constraint" in problem["output"] and problem["installed"] == []
    assert session.value("__import__('numpy').__version__") == f"'{version}'"


def test_a_named_environment_s_packages_keep_their_versions_too(
    mode: str, index: PackageIndex, tmp_path: Path
) -> None:
    environments = Environments(tmp_path, f"http://127.0.0.1:{index.port}/")
    made = environments.create("geo", "moving==1.0")
    assert made.returncode == 0, made.stderr
    running = ModeServer(mode, *LEAN, *index.arguments(), "--prespawn-count", "0")
    running.environment = environments.variables
    with running as server:
        session = create(server, index, environment="geo")
        done = install(session, "moving", "numpy", "tiny")
        assert names(done["installed"]) == {"tiny": "1.0", "helper": "1.0"}
        assert names(done["present"])["moving"] == "1.0" and "numpy" in names(done["present"])
        assert session.value("__import__('tiny').VERSION, __import__('moving').VERSION") == "('1.0', '1.0')"
        assert refused(session, "moving==2.0")["installed"] == []
        assert "Successfully installed" in session.execute("%pip install later")["stdout"]


def test_another_version_needs_a_restart(session: Session) -> None:
    assert not install(session, "moving==1.0")["restart_needed"]
    session.execute("import moving")
    done = install(session, "moving>=2")
    assert done["installed"] == [{"name": "moving", "version": "2.0", "replaced": "1.0"}]
    assert done["restart_needed"]
    assert session.value("moving.VERSION") == "'1.0'"
    assert session.post("restart").status_code == 200
    assert session.value("__import__('moving').VERSION") == "'2.0'"


def test_what_cannot_be_installed_says_why(session: Session) -> None:
    assert "No matching distribution" in refused(session, "missing-package")["output"]
    assert "No matching distribution" in refused(session, "later==9")["output"]
    # All or nothing.
    assert refused(session, "later", "missing-package")["installed"] == []
    assert not has(session, "later")
    assert names(install(session, "later")["installed"]) == {"later": "2.0"}


def test_source_is_built_only_if_the_caller_says_so(session: Session) -> None:
    assert "No matching distribution" in refused(session, "sourced")["output"]
    built = "__import__('os').path.exists('/workspace/built.txt')"
    assert session.value(built) == "False"
    assert names(install(session, "sourced", allow_source=True)["installed"]) == {"sourced": "1.0"}
    assert session.value(built) == "True"


@pytest.mark.parametrize("package", ["climber", "thief"])
def test_a_wheel_that_leaves_its_place_is_refused(session: Session, package: str) -> None:
    refused(session, package)
    escaped = "[p for p in ('/workspace', '/', '/tmp') if 'escaped.txt' in __import__('os').listdir(p)]"
    assert session.value(escaped) == "[]"
    assert names(install(session, "spare")["installed"]) == {"spare": "1.0"}


def test_an_index_that_never_answers_ends_with_the_deadline(server: Server, session: Session) -> None:
    answer = ask(session, SILENT, timeout_ms=3000)
    assert answer.status_code == 504 and answer.json()["type"] == "/problems/timeout", answer.text
    wait_until(lambda: runs_nothing(session), 30, "the installer is gone")
    assert events(server, session)[-1]["outcome"] == "timeout"
    assert names(install(session, "spare")["installed"]) == {"spare": "1.0"}


def test_an_index_that_is_down_is_told(mode: str, index: PackageIndex) -> None:
    down = "http://index.test:1/"
    options = [down if one.startswith("http") else one for one in index.arguments()]
    with ModeServer(mode, *LEAN, *options, "--prespawn-count", "0") as server:
        session = server.create(network={"mode": "allowlist", "allow": ["index.test:1"]})
        assert "The index answers 502 connect_failed" in refused(session, "tiny")["output"]
        assert session.value("1 + 1") == "2"


# What code puts into the place of its session's packages. The first is for `./scripts/test`; all of them are for `--full`.
SPOILED = {
    "a liar": "os.makedirs(ROOT + '/bin'); open(ROOT + '/bin/python', 'w').write('#!/bin/sh\\nyes lie | head -c 999999')"
    "; os.chmod(ROOT + '/bin/python', 0o755)",
    "a file": "open(ROOT, 'w').close()",
    "a fifo": "os.mkfifo(ROOT)",
    "a link to nowhere": "os.symlink('/nonexistent/x', ROOT)",
    "a fifo in the place of a file": "os.makedirs(ROOT); os.mkfifo(ROOT + '/pyvenv.cfg')",
    "a file that never ends": "os.makedirs(ROOT); os.symlink('/dev/zero', ROOT + '/constraints.txt')",
}
SPOILED_HERE = list(SPOILED)[: None if "CELLKEEP_EVERY_SPOILED_PLACE" in os.environ else 1]


@pytest.mark.parametrize("spoiled", SPOILED_HERE)
def test_what_code_does_to_its_packages_is_its_own_trouble(session: Session, spoiled: str) -> None:
    spoil = f"import os, shutil; ROOT = {ROOT!r}; shutil.rmtree(ROOT); {SPOILED[spoiled]}"
    assert session.execute(spoil)["status"] == "ok"
    answer = ask(session, "spare", timeout_ms=60_000)
    if answer.status_code == 200:
        assert names(answer.json()["installed"]) == {"spare": "1.0"}
    else:
        assert answer.json()["type"] == "/problems/packages-not-installed", answer.text
        assert answer.json()["output_truncated"] == (spoiled == "a liar")
        assert 0 < len(answer.json()["output"]) <= 16 << 10
    assert session.post("restart").status_code == 200
    assert session.execute(f"import os; os.rename({ROOT!r}, '/workspace/old')")["status"] == "ok"
    assert session.post("restart").status_code == 200
    assert names(install(session, "spare")["installed"]) == {"spare": "1.0"}


WRONG = [
    [],
    ["tiny"] * 1000,
    ["tiny"] * (PACKAGES_MAX + 1),
    ["--index-url=http://evil.test/"],
    ["-r/etc/passwd"],
    ["tiny", "--pre"],
    ["tiny --no-deps"],
    ["tiny\n--pre"],
    ["-e."],
    ["."],
    ["./tiny"],
    ["/workspace/tiny-1.0-py3-none-any.whl"],
    ["http://evil.test/tiny.whl"],
    ["tiny @ http://evil.test/tiny.whl"],
    ["git+https://evil.test/tiny"],
    ["tiny; python_version > '3'"],
    ["$(id)"],
    ["tiny;id"],
    [""],
    ["a" * 129],
    [1],
    [None],
    [["tiny"]],
]


def test_names_are_checked_before_anything_runs(session: Session, index: PackageIndex) -> None:
    index.arrived.clear()
    for packages in WRONG:
        answer = ask(session, *packages)
        assert answer.status_code == 422, packages
        assert answer.json()["type"] == "/problems/invalid-request"
        assert answer.json()["errors"][0]["pointer"].startswith("/python")
    for fields in ({"node": ["left-pad"]}, {"index": "http://evil.test"}, {"timeout_ms": 1}):
        assert ask(session, "tiny", **fields).json()["type"] == "/problems/invalid-request"
    assert index.arrived == []
    assert names(install(session, *["spare"] * PACKAGES_MAX)["installed"]) == {"spare": "1.0"}


def test_the_session_s_own_settings_of_pip_do_not_lead_elsewhere(
    server: Server, index: PackageIndex
) -> None:
    elsewhere = {"PIP_INDEX_URL": "http://evil.test/", "PIP_EXTRA_INDEX_URL": "http://evil.test/"}
    session = create(server, index, env={**elsewhere, "PIP_TARGET": "/workspace/other", "PIP_PRE": "1"})
    session.execute("open('/workspace/pip.conf', 'w').write('[global]\\nindex-url = http://evil.test/')")
    assert names(install(session, "tiny")["installed"]) == {"tiny": "1.0", "helper": "1.0"}
    assert session.value("'other' in __import__('os').listdir('/workspace')") == "False"


def test_one_installation_runs_at_a_time(server: Server, session: Session, index: PackageIndex) -> None:
    index.go.clear()
    index.asked.clear()
    answers: list[requests.Response] = []
    first = threading.Thread(
        target=lambda: answers.append(
            server.post_apart(session.path + "/packages", {"python": [SLOW]})
        )
    )
    first.start()
    try:
        assert index.asked.wait(60)
        second = ask(session, "spare")
        assert second.status_code == 409
        assert second.json()["type"] == "/problems/installation-running"
        # Code runs meanwhile, and other sessions install.
        assert session.value("1 + 1") == "2"
        other = create(server, index)
        assert names(install(other, "spare")["installed"]) == {"spare": "1.0"}
        assert other.delete() == 204
    finally:
        index.go.set()
        first.join()
    assert names(answers[0].json()["installed"]) == {SLOW: "1.0"}
    assert names(install(session, "spare")["installed"]) == {"spare": "1.0"}


def test_an_installation_goes_on_if_its_client_goes(
    server: Server, session: Session, index: PackageIndex
) -> None:
    index.go.clear()
    index.asked.clear()
    address = (server.record["url"].split("/")[2].rsplit(":", 1)[0], int(server.url.rsplit(":", 1)[1]))
    body = json.dumps({"python": [SLOW]})
    with socket.create_connection(address, timeout=60) as client:
        head = f"POST {session.path}/packages HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
        head += f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        assert index.asked.wait(60)
    index.go.set()
    wait_until(lambda: bool(events(server, session)), 60, "the installation has ended")
    assert events(server, session)[0]["installed"] == [f"{SLOW}==1.0"]
    assert has(session, SLOW)


def test_code_that_runs_finds_what_is_installed_meanwhile(session: Session) -> None:
    code = """
import os, time
print("waits", flush=True)
while not os.path.exists("/workspace/go"): time.sleep(0.01)
import later
print(later.VERSION)
"""
    texts = []
    for event in session.events(code):
        if event["type"] == "stdout":
            texts.append(event["text"])
            if len(texts) == 1:
                assert names(install(session, "later")["installed"]) == {"later": "2.0"}
                answer = session.server.request("PUT", session.path + "/files/go", data=b"x")
                assert answer.status_code in (200, 201)
    assert "".join(texts) == "waits\n2.0\n"


def test_a_rollback_goes_back_before_an_installation(session: Session) -> None:
    before = checkpoint(session)
    install(session, "tiny")
    after = checkpoint(session)
    assert session.value("__import__('tiny').VERSION") == "'1.0'"
    roll_back(session, before)
    assert not has(session, "tiny")
    assert names(install(session, "later")["installed"]) == {"later": "2.0"}
    roll_back(session, after)
    assert has(session, "tiny") and not has(session, "later")
    assert names(install(session, "later")["installed"]) == {"later": "2.0"}
    assert session.post("restart").status_code == 200
    assert session.value("__import__('tiny').VERSION, __import__('later').VERSION") == "('1.0', '2.0')"


def test_a_session_that_has_ended_installs_nothing(session: Session) -> None:
    install(session, "spare")
    assert session.delete() == 204
    assert ask(session, "tiny").status_code == 410


def test_a_session_that_ends_meanwhile_ends_its_installation(
    server: Server, session: Session, index: PackageIndex
) -> None:
    index.asked.clear()
    answers: list[requests.Response] = []
    waiting = threading.Thread(
        target=lambda: answers.append(
            server.post_apart(session.path + "/packages", {"python": [SILENT]})
        )
    )
    waiting.start()
    assert index.asked.wait(60)
    assert session.delete() == 204
    waiting.join(60)
    assert answers and answers[0].status_code == 503, answers


def test_a_session_without_the_index_is_told_how_to_reach_it(
    server: Server, index: PackageIndex
) -> None:
    for network in ({"mode": "none"}, {"mode": "allowlist", "allow": []}):
        session = server.create(network=network)
        answer = ask(session, "tiny")
        assert answer.status_code == 409
        assert answer.json()["type"] == "/problems/package-index-not-reached"
        assert index.host in answer.json()["detail"]
        assert not has(session, "tiny")
        assert session.delete() == 204
    # One that has a network can be given the index while it lives.
    session = server.create(network={"mode": "allowlist", "allow": []})
    changed = server.request("PATCH", session.path, json={"network": {"allow": [index.host]}})
    assert changed.status_code == 200, changed.text
    assert names(install(session, "tiny")["installed"]) == {"tiny": "1.0", "helper": "1.0"}


def test_another_language_takes_no_packages(server: Server, index: PackageIndex) -> None:
    session = create(server, index, language="bash")
    answer = ask(session, "tiny")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/python"
    assert "bash" in answer.json()["errors"][0]["message"]


def test_a_server_without_an_index_says_what_is_there(mode: str) -> None:
    with ModeServer(mode, *LEAN, "--prespawn-count", "0") as server:
        session = server.create()
        answer = ask(session, "tiny")
        assert answer.status_code == 403
        problem = answer.json()
        assert problem["type"] == "/problems/no-package-index"
        assert problem["environment"] == "default"
        assert "cellkeep env show" in problem["detail"] and "--package-index" in problem["detail"]
        assert session.value("'CELLKEEP_PACKAGES' in __import__('os').environ") == "False"
        assert session.value("__import__('os').path.exists('" + ROOT + "')") == "False"
