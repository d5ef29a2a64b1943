# SPDX-License-Identifier: Apache-2.0
"""SIGUSR2 while sessions have a network: they reach what they might before, and nothing else."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LEAN, Server, Session
from installations import install, names
from modes import ModeServer, give_to
from networks import ASK, VALUE, egress_lines, network, secrets_of, serve, traffic
from outside import Outside
from package_index import PackageIndex
from upgrades import BARE, Asked, Place, news, upgrade

pytestmark = pytest.mark.both_modes


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
    assert created.execute(ASK)["status"] == "ok"
    yield created
    assert created.delete() in (204, 404, 410)


def asked(session: Session, url: str, **more: object) -> tuple[int, str, str]:
    result = session.execute(f"print(repr(ask({url!r}, **{more!r})))")
    assert result["status"] == "ok", result
    return ast.literal_eval(result["stdout"])


def test_a_session_reaches_what_it_may_and_nothing_else(
    server: Server, session: Session, outside: Outside
) -> None:
    def look() -> None:
        hello = (200, "", "hello from outside")
        assert asked(session, f"http://index.test:{outside.http}/x") == hello
        assert asked(session, f"https://index.test:{outside.https}/x") == hello
        assert asked(session, f"http://other.test:{outside.http}/x")[:2] == (403, "not_allowed")
        assert asked(session, f"https://other.test:{outside.https}/x")[:2] == (0, "refused")

    look()
    for turn in range(1, 4):
        before = session.fetch()["network"]
        assert (before["traffic"]["requests"], before["traffic"]["denied"]) == (4 * turn, 2 * turn)
        upgrade(server)
        assert session.fetch()["network"] == before
        look()
    arrived = [path for path, headers in outside.arrived if headers["Host"].startswith("other.")]
    assert arrived == []
    # A list that is changed afterwards is in force at once.
    allow = session.fetch()["network"]["allow"] + [f"other.test:{outside.http}"]
    changed = server.request("PATCH", session.path, json={"network": {"allow": allow}})
    assert changed.status_code == 200, changed.text
    assert asked(session, f"http://other.test:{outside.http}/x")[0] == 200
    upgrade(server)
    assert asked(session, f"http://other.test:{outside.http}/x")[0] == 200
    assert server.request("PATCH", session.path, json={"network": {"allow": []}}).status_code == 200
    assert asked(session, f"http://other.test:{outside.http}/x")[1] == "not_allowed"


def test_secrets_are_put_in_and_stay_unseen(
    server: Server, session: Session, outside: Outside
) -> None:
    url = f"https://api.test:{outside.https}/v1/echo"
    headers = {"Authorization": "Bearer mine"}
    session.execute("kept = requests.Session()")
    for _ in range(3):
        outside.arrived.clear()
        # Also by a client that keeps its connection, which TLS ends here.
        kept = session.value(f"kept.get({url!r}, timeout=60).text")
        status, _, echo = asked(session, url, headers=headers)
        assert status == 200
        for said in (kept, echo):
            assert "Authorization: Bearer " + "*" * len(VALUE) in said
            assert VALUE not in said
        assert [seen["Authorization"] for _, seen in outside.arrived] == ["Bearer " + VALUE] * 2
        upgrade(server)
    # Neither a value nor the key of the certificates is in what the server writes.
    written = [path.read_bytes() for path in server.state_dir.rglob("*") if path.is_file()]
    for text in [server.output().encode(), *written]:
        assert VALUE.encode() not in text
        assert b"PRIVATE KEY" not in text
    assert [line["secret"] for line in egress_lines(server, session) if line["secret"]] == ["tracker"] * 6


def test_packages_are_installed_before_and_afterwards(
    server: Server, session: Session, index: PackageIndex
) -> None:
    assert names(install(session, "tiny")["installed"]) == {"tiny": "1.0", "helper": "1.0"}
    upgrade(server)
    assert names(install(session, "tiny")["present"]) == {"tiny": "1.0"}
    assert names(install(session, "moving==1.0")["installed"]) == {"moving": "1.0"}
    upgrade(server)
    assert "Successfully installed" in session.execute("%pip install later")["stdout"]
    values = "__import__('tiny').VERSION, __import__('moving').VERSION, __import__('later').VERSION"
    assert session.value(values) == "('1.0', '1.0', '2.0')"
    # A fresh interpreter, and one of another language, are led there, too.
    assert session.post("restart").status_code == 200
    assert "Successfully installed" in session.execute("%pip install spare")["stdout"]
    led = session.execute("echo $HTTPS_PROXY $TRACKER_TOKEN", language="bash")
    assert led["stdout"].startswith("http://127.0.0.1:3128 cellkeep-placeholder-tracker-"), led


def test_a_program_that_reads_no_network_waits_for_the_session(
    server: Server, place: Place, session: Session, outside: Outside
) -> None:
    without = server.create()
    with place.older(5):
        sent = Asked(server)
        why = "it has a network, and the other program takes over none such"
        assert sent.wait("waiting")["for"] == [f"{session.info['id']} ({why})"]
        assert asked(session, f"http://index.test:{outside.http}/x")[0] == 200
        assert session.delete() == 204
        sent.wait_until_served()
    assert without.value("1") == "1"
    without.delete()


def test_after_a_failed_exec_the_network_goes_on(
    mode: str, place: Place, outside: Outside, index: PackageIndex, folder: Path
) -> None:
    with serve(mode, outside, index, folder) as server:
        session = server.create(network=network(outside, index))
        session.execute(ASK)
        assert asked(session, f"https://api.test:{outside.https}/v1/echo")[0] == 200
        before = traffic(session)
        place.fail_after_the_check()
        try:
            Asked(server).wait("failed")
        finally:
            place.put_program()
        server.attach()
        assert traffic(session) == before
        echo = asked(session, f"https://api.test:{outside.https}/v1/echo")
        assert "Bearer " + "*" * len(VALUE) in echo[2]
        assert asked(session, f"http://other.test:{outside.http}/x")[1] == "not_allowed"
        upgrade(server)
        assert asked(session, f"https://api.test:{outside.https}/v1/echo")[0] == 200


class Configuration:
    """The file that a server reads when it starts, and each program that takes over."""

    def __init__(self, mode: str, outside: Outside, folder: Path) -> None:
        self.mode, self.path = mode, folder / "cellkeep.toml"
        self.secrets = secrets_of(mode, outside, folder)
        self.common = [
            'egress_permit_address = ["127.0.0.1"]',
            f"egress_ca = {json.dumps(str(outside.certificate))}",
            "egress_resolve = " + json.dumps([f"{name}.test=127.0.0.1" for name in ("index", "api")]),
        ]

    def write(self, allow: list[str], secrets: bool) -> None:
        lines = [f"allow_egress = {json.dumps(allow)}", *self.common] if allow else []
        lines += [f"secrets = {json.dumps(str(self.secrets))}"] if secrets else []
        self.path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        give_to(self.mode, self.path)


def test_what_the_operator_takes_away_is_gone_with_the_next_program(
    mode: str, place: Place, outside: Outside, folder: Path
) -> None:
    configuration = Configuration(mode, outside, folder)
    hosts = [f"{name}.test:{outside.https}" for name in ("index", "api")]
    configuration.write(hosts, secrets=True)
    with ModeServer(mode, *LEAN, *BARE, "--config", str(configuration.path)) as server:
        asking = {"mode": "allowlist", "allow": hosts, "secrets": ["tracker"]}
        session = server.create(network=asking)
        session.execute(ASK)
        ident = session.info["id"]
        assert asked(session, f"https://index.test:{outside.https}/x")[0] == 200
        assert asked(session, f"https://api.test:{outside.https}/v1/echo")[0] == 200

        secrets_of(mode, outside, folder, VALUE + "-2")
        upgrade(server)
        outside.arrived.clear()
        assert asked(session, f"https://api.test:{outside.https}/v1/echo")[0] == 200
        assert [seen["Authorization"] for _, seen in outside.arrived] == [f"Bearer {VALUE}-2"]

        configuration.write(hosts[1:], secrets=False)
        upgrade(server)
        said = [line["message"] for line in news(server, "session") if ident in line["message"]]
        gone = f"session {ident}: this server does not allow it any more: "
        assert said == [gone + hosts[0], gone + "the secret tracker"]
        shown = session.fetch()["network"]
        assert (shown["allow"], shown["secrets"]) == (hosts[1:], [])
        assert asked(session, f"https://index.test:{outside.https}/x")[1] == "refused"
        # Without the secret its host is one as others, with a certificate of its own.
        echo = asked(session, f"https://api.test:{outside.https}/v1/echo", headers={"Authorization": "mine"})
        assert echo[0] == 200 and "Authorization: mine" in echo[2]

        configuration.write([], secrets=False)
        upgrade(server)
        said = [line["message"] for line in news(server, "session") if ident in line["message"]]
        assert said[2:] == [f"session {ident} goes on without its network: this server gives sessions no network"]
        assert session.fetch()["network"]["mode"] == "none"
        assert asked(session, f"https://api.test:{outside.https}/v1/echo")[1] == "refused"
        assert session.value("1 + 1") == "2"
