# SPDX-License-Identifier: Apache-2.0
"""Secrets by reference: the real header reaches the bound host, and never the session."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LEAN, Server, Session
from modes import ModeServer, give_to
from outside import Outside

pytestmark = pytest.mark.both_modes

VALUE = "r3al-v4lue-of-the-operator"


@pytest.fixture(scope="module")
def server(mode: str, outside: Outside, folder: Path) -> Iterator[Server]:
    token = folder / "token"
    token.write_text(VALUE + "\n", encoding="utf-8")
    token.chmod(0o600)
    secrets = folder / "secrets.json"
    tracker = {
        "name": "tracker",
        "host": f"api.test:{outside.https}",
        "prefix": "Bearer ",
        "value_file": "token",
        "path": "/v1/",
        "methods": ["GET"],
    }
    secrets.write_text(json.dumps({"secrets": [tracker]}), encoding="utf-8")
    secrets.chmod(0o600)
    give_to(mode, token, secrets)
    with ModeServer(mode, *LEAN, *outside.arguments(), "--secrets", str(secrets)) as running:
        yield running


@pytest.fixture
def session(server: Server, outside: Outside) -> Iterator[Session]:
    network = {
        "mode": "allowlist",
        "allow": [f"{name}.test:{outside.https}" for name in ("api", "other")],
        "secrets": ["tracker"],
    }
    created = server.create(network=network)
    yield created
    assert created.delete() in (204, 404, 410)


def test_the_real_value_reaches_the_bound_host_and_never_the_session(
    server: Server, session: Session, outside: Outside
) -> None:
    result = session.execute(
        f"""
import os, requests, subprocess
placeholder = os.environ["TRACKER_TOKEN"]
answer = requests.get("https://api.test:{outside.https}/v1/echo",
                      headers={{"Authorization": "Bearer " + placeholder}}, timeout=60)
print(placeholder, answer.status_code)
print(answer.text)
print(open("/proc/self/environ").read())
done = subprocess.run(["curl", "-sS", "--max-time", "60", "-H", "Authorization: Bearer x",
                       "https://api.test:{outside.https}/v1/echo"], capture_output=True, text=True)
print(done.stdout, done.stderr)
"""
    )
    assert result["status"] == "ok", result
    said = result["stdout"]
    assert said.startswith("cellkeep-placeholder-tracker-")
    assert " 200\n" in said
    assert VALUE not in json.dumps(result)
    assert "Authorization: Bearer " + "*" * len(VALUE) in said  # the server's echo of it
    arrived = [headers for path, headers in outside.arrived if path == "/v1/echo"]
    assert [headers["Authorization"] for headers in arrived] == ["Bearer " + VALUE] * 2
    assert VALUE not in server.output()
    info = session.fetch()
    assert info["network"]["secrets"] == [
        {
            "name": "tracker",
            "variable": "TRACKER_TOKEN",
            "host": f"api.test:{outside.https}",
            "header": "Authorization",
        }
    ]
    assert VALUE not in json.dumps(info)


def test_other_hosts_paths_and_methods_get_no_value(session: Session, outside: Outside) -> None:
    before = len(outside.arrived)
    result = session.execute(
        f"""
import os, requests
api, other = ("https://%s.test:{outside.https}" % name for name in ("api", "other"))
headers = {{"Authorization": "Bearer " + os.environ["TRACKER_TOKEN"]}}
for method, url in (("GET", other + "/v1/echo"), ("GET", api + "/admin"),
                    ("POST", api + "/v1/x")):
    answer = requests.request(method, url, headers=headers, timeout=60)
    print(answer.status_code, answer.headers.get("X-Cellkeep-Deny", ""))
"""
    )
    assert result["stdout"].splitlines() == ["200 ", "403 secret_scope", "403 secret_scope"]
    arrived = outside.arrived[before:]
    assert len(arrived) == 1
    assert arrived[0][1]["Authorization"].startswith("Bearer cellkeep-placeholder-")


def test_a_secret_must_be_offered_and_its_host_allowed(server: Server, outside: Outside) -> None:
    for network, status in (
        ({"mode": "allowlist", "allow": [], "secrets": ["tracker"]}, 422),
        ({"mode": "allowlist", "allow": [], "secrets": ["other"]}, 403),
        ({"mode": "allowlist", "secrets": ["tracker", "tracker"]}, 422),
        ({"mode": "allowlist", "secrets": "tracker"}, 422),
    ):
        refused = server.post("/v1/sessions", {"network": network})
        assert refused.status_code == status, refused.text
        assert VALUE not in refused.text


def test_a_secrets_file_that_others_can_read_refuses_the_server(mode: str, folder: Path) -> None:
    secrets = folder / "readable.json"
    secrets.write_text('{"secrets": []}', encoding="utf-8")
    secrets.chmod(0o644)
    give_to(mode, secrets)
    with pytest.raises(AssertionError, match="chmod 600"):
        ModeServer(mode, *LEAN, "--allow-egress", "a.test", "--secrets", str(secrets)).start()
