# SPDX-License-Identifier: Apache-2.0
"""Named principals on a real server: two agents and an observer beside the administrator."""

import hashlib
import json
import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
import websocket

from harness import LEAN, TOKEN, Server, binary

NAMES = ("alice", "bob", "eve")
TOKENS = {name: secrets.token_hex(32) for name in NAMES}
ROLES = {"alice": "agent", "bob": "agent", "eve": "observer"}


def principals() -> list[dict]:
    """Alice's token stands in the file, of the others only the digest."""
    entries = []
    for name in NAMES:
        entry = {"name": name, "role": ROLES[name]}
        if name == "alice":
            entry["token"] = TOKENS[name]
        else:
            entry["token_sha256"] = hashlib.sha256(TOKENS[name].encode()).hexdigest()
        entries.append(entry)
    return entries


def write_tokens(folder: Path, document: object, mode: int = 0o600) -> Path:
    path = folder / "tokens.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(document), encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = write_tokens(tmp_path_factory.mktemp("tokens"), {"principals": principals()})
    with Server(*LEAN, "--token-file", str(path), "--log-format", "text") as running:
        yield running
        said = running.output()
        assert not [name for name in NAMES if TOKENS[name] in said]


Ask = Callable[..., requests.Response]


@pytest.fixture
def ask(server: Server) -> Ask:
    def one(who: str, method: str, path: str, **more: object) -> requests.Response:
        token = TOKEN if who == "admin" else TOKENS[who]
        headers = {"Authorization": f"Bearer {token}"}
        return requests.request(method, server.url + path, headers=headers, timeout=120, **more)

    return one


@pytest.fixture
def owned(ask: Ask) -> Iterator[dict]:
    """A session of alice, with a file and an execution."""
    info = ask("alice", "POST", "/v1/sessions", json={}).json()
    path = "/v1/sessions/" + info["id"]
    run = ask("alice", "POST", path + "/executions", json={"code": "open('a','w').write('x'); 1"})
    yield {**info, "path": path, "run": run.json()["id"]}
    assert ask("admin", "DELETE", path).status_code in (204, 410)


def problem(response: requests.Response) -> tuple[int, str]:
    assert response.headers["Content-Type"] == "application/problem+json", response.text
    return response.status_code, response.json()["type"]


def anonymous(text: str, *names: str) -> str:
    for name in names:
        text = text.replace(name, "-")
    return text


def test_the_token_identifies_the_principal(server: Server, ask: Ask) -> None:
    for who in (*NAMES, "admin"):
        assert ask(who, "GET", "/api/me").json()["identity"]["name"] == who
    stranger = {"Authorization": "Bearer " + secrets.token_hex(32)}
    answer = requests.get(server.url + "/v1/sessions", headers=stranger, timeout=30)
    assert answer.status_code == 401


def test_a_session_is_its_owners(ask: Ask, owned: dict) -> None:
    assert owned["owner"] == "alice"
    listed = {
        who: owned["id"] in [s["id"] for s in ask(who, "GET", "/v1/sessions").json()["sessions"]]
        for who in ("alice", "bob", "eve", "admin")
    }
    assert listed == {"alice": True, "bob": False, "eve": True, "admin": True}


def test_another_agents_session_is_answered_as_none(ask: Ask, owned: dict) -> None:
    absent = "/v1/sessions/ses_" + 24 * "0"
    run = "/executions/" + owned["run"]
    for method, rest, more in (
        ("GET", "", {}),
        ("PATCH", "", {"json": {"metadata": {}}}),
        ("DELETE", "", {}),
        ("POST", "/interrupt", {}),
        ("POST", "/restart", {}),
        ("GET", "/executions", {}),
        ("POST", "/executions", {"json": {"code": "1"}}),
        ("GET", run, {}),
        ("GET", run + "/events", {}),
        ("POST", run + "/interrupt", {}),
        ("GET", "/files", {}),
        ("GET", "/files.tar.zst", {}),
        ("GET", "/files/a", {}),
        ("PUT", "/files/a", {"data": b"mine"}),
        ("DELETE", "/files/a", {}),
    ):
        theirs = ask("bob", method, owned["path"] + rest, **more)
        absent_answer = ask("bob", method, absent + rest, **more)
        assert theirs.status_code == 404, (method, rest, theirs.text)
        assert anonymous(theirs.text, owned["id"]) == anonymous(absent_answer.text, absent[13:])
    kernel = "/api/kernels/" + owned["kernel_id"]
    for method, path in (("GET", kernel), ("DELETE", kernel), ("POST", kernel + "/restart")):
        assert ask("bob", method, path).status_code == 404
    assert ask("bob", "GET", "/api/kernels").json() == []
    assert ask("alice", "GET", owned["path"] + "/files/a").text == "x"
    assert ask("alice", "GET", owned["path"]).json()["restarts"] == 0


def test_keys_cached_answers_and_history_are_each_agents_own(ask: Ask) -> None:
    def run(who: str, **fields: object) -> dict:
        answer = ask(who, "POST", "/v1/executions", json=fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    keyed = {"code": "1", "idempotency_key": "step-1"}
    first = run("alice", **keyed)
    assert run("alice", **keyed)["id"] == first["id"]
    assert run("bob", **keyed)["id"] != first["id"]
    cached = {"code": "2", "cache_ttl_s": 60}
    assert [run(who, **cached)["cached"] for who in ("alice", "bob", "alice")] == [
        False,
        False,
        True,
    ]
    path = "/v1/executions/" + first["id"]
    assert {who: ask(who, "GET", path).status_code for who in ("alice", "bob", "eve")} == {
        "alice": 200,
        "bob": 404,
        "eve": 200,
    }
    assert ask("bob", "GET", path + "/events").status_code == 404


def test_an_ended_session_is_history_for_its_owner_only(ask: Ask, owned: dict) -> None:
    run = owned["path"] + "/executions"
    of_admin = ask("admin", "POST", run, json={"code": "2"}).json()["id"]
    assert ask("alice", "DELETE", owned["path"]).status_code == 204
    for who, status in (("alice", 410), ("eve", 410), ("bob", 404)):
        assert ask(who, "GET", owned["path"]).status_code == status
    for who, status in (("alice", 200), ("eve", 200), ("bob", 404)):
        assert ask(who, "GET", f"{run}/{of_admin}").status_code == status
        assert ask(who, "GET", run).status_code == status


def test_an_observer_reads_everything_and_changes_nothing(ask: Ask, owned: dict) -> None:
    path = owned["path"]
    for rest in ("", "/executions", "/executions/" + owned["run"], "/files", "/files/a"):
        assert ask("eve", "GET", path + rest).status_code == 200
    assert ask("alice", "GET", path).json()["connection_file"]
    assert ask("eve", "GET", path).json()["connection_file"] is None
    for method, target in (
        ("POST", "/v1/sessions"),
        ("POST", "/v1/executions"),
        ("PATCH", path),
        ("DELETE", path),
        ("POST", path + "/interrupt"),
        ("POST", path + "/restart"),
        ("POST", path + "/executions"),
        ("PUT", path + "/files/a"),
        ("DELETE", path + "/files/a"),
    ):
        refused = problem(ask("eve", method, target, json={"code": "1"}))
        assert refused == (403, "/problems/read-only-role"), (method, target)
    for method, target in (
        ("POST", "/api/kernels"),
        ("DELETE", "/api/kernels/" + owned["kernel_id"]),
        ("POST", "/api/sessions"),
    ):
        answer = ask("eve", method, target, json={})
        assert answer.status_code == 403
        assert answer.json()["reason"] == "This role may only read"
    assert ask("alice", "GET", path + "/files/a").text == "x"


@pytest.mark.parametrize(
    ("who", "status"), [("alice", 101), ("admin", 101), ("bob", 404), ("eve", 403)]
)
def test_channels_are_for_who_may_run_code(
    server: Server, owned: dict, who: str, status: int
) -> None:
    token = TOKEN if who == "admin" else TOKENS[who]
    url = server.url.replace("http", "ws", 1) + f"/api/kernels/{owned['kernel_id']}/channels"
    try:
        socket = websocket.create_connection(
            url, timeout=60, header=[f"Authorization: token {token}"]
        )
    except websocket.WebSocketBadStatusException as refused:
        assert refused.status_code == status
    else:
        socket.close()
        assert status == 101


def start(arguments: list[str], state: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary(), "serve", "--listen", "127.0.0.1:0", "--state-dir", str(state), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda entries: entries[0].update(role="root"),
        lambda entries: entries[0].update(name="admin"),
        lambda entries: entries[0].update(name="Alice"),
        lambda entries: entries[0].update(token="short"),
        lambda entries: entries[0].update(scope="all"),
        lambda entries: entries[0].update(token_sha256=64 * "0"),
        lambda entries: entries[1].update(token_sha256="0"),
        lambda entries: entries[1].update(name="alice"),
        lambda entries: entries[1].update(token_sha256=entries[2]["token_sha256"]),
        lambda entries: entries.clear(),
    ],
)
def test_a_wrong_token_file_starts_nothing(
    tmp_path: Path, spoil: Callable[[list[dict]], None]
) -> None:
    entries = principals()
    spoil(entries)
    path = write_tokens(tmp_path, {"principals": entries})
    ended = start(["--token-file", str(path)], tmp_path / "state")
    assert ended.returncode == 1
    assert "/principals" in ended.stderr
    assert TOKENS["alice"] not in ended.stderr + ended.stdout


def test_a_token_file_that_others_can_read_starts_nothing(tmp_path: Path) -> None:
    path = write_tokens(tmp_path, {"principals": principals()}, 0o640)
    link = tmp_path / "link"
    for given, said in ((path, "chmod 600"), (link, str(link))):
        if given == link:
            path.chmod(0o600)
            link.symlink_to(path)
        ended = start(["--token-file", str(given)], tmp_path / "state")
        assert ended.returncode == 1
        assert said in ended.stderr
