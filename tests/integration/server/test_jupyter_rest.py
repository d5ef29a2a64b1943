# SPDX-License-Identifier: Apache-2.0
"""The Jupyter Server REST API of a live server, asked as its clients ask.

The requests are those of jupyter_server's gateway client, of @jupyterlab/services and of agent
frameworks; the answers are checked as those clients check them.
"""

import json
import os
import struct
import subprocess
import uuid
import zlib
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest
import requests

from harness import LEAN, TOKEN, Server, wait_until

# What jupyter_server's gateway client parses last_activity with.
GATEWAY_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
STATES = {"starting", "idle", "busy", "restarting", "dead"}
LAB_PYTHON = Path(__file__).parents[3] / "build/environments/lab/bin/python"
NO_KERNEL = "/api/kernels/" + str(uuid.UUID(int=0))


def raw(server: Server, method: str, path: str, **more: object) -> requests.Response:
    """Without the harness's session: no header of ours unless given."""
    return requests.request(method, server.url + path, timeout=120, **more)


def check_kernel(model: dict) -> dict:
    assert uuid.UUID(model["id"])
    assert model["name"] == "python3"
    assert model["execution_state"] in STATES
    assert int(model["connections"]) >= 0
    seen = datetime.strptime(model["last_activity"], GATEWAY_TIME).replace(tzinfo=timezone.utc)
    assert abs((datetime.now(tz=timezone.utc) - seen).total_seconds()) < 3600
    return model


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    options = ["--allowed-envs", "TZ", "--kernel-memory-mb", "300", "--max-sessions", "4"]
    with Server(*LEAN, "--log-format", "text", *options) as running:
        yield running


@pytest.fixture(autouse=True)
def no_kernels_left(server: Server) -> Iterator[None]:
    yield
    for model in server.get("/api/kernels").json():
        assert server.request("DELETE", "/api/kernels/" + model["id"]).status_code == 204
    assert server.get("/api/sessions").json() == []


def run(server: Server, kernel_id: str, code: str) -> dict:
    """Code in a kernel, by the session API: the two know the same kernels."""
    response = server.post(f"/v1/sessions/{kernel_id}/executions", {"code": code})
    assert response.status_code == 200, response.text
    return response.json()


def test_the_version_is_open_and_the_rest_is_not(server: Server) -> None:
    assert raw(server, "GET", "/api").json()["version"].count(".") == 2
    for path in ("/api/status", "/api/kernels", "/api/sessions", "/api/me", "/api/kernelspecs"):
        refused = raw(server, "GET", path)
        assert refused.status_code == 401
        assert {"message", "reason"} <= refused.json().keys()
    for header in (f"token {TOKEN}", f"Token {TOKEN}", f"Bearer {TOKEN}", f"bearer  {TOKEN}"):
        answer = raw(server, "GET", "/api/kernels", headers={"Authorization": header})
        assert answer.status_code == 200


def test_kernelspecs_as_a_gateway_client_reads_them(server: Server) -> None:
    listing = server.get("/api/kernelspecs").json()
    assert listing["default"] == "python3"
    for name, model in listing["kernelspecs"].items():
        assert model["name"] == name
        spec = model["spec"]
        assert {"argv", "display_name", "language", "interrupt_mode", "env", "metadata"} <= set(spec)
        assert server.get(f"/api/kernelspecs/{name}").json() == model
        # As the client asks with KERNEL_USERNAME set.
        assert server.get(f"/api/kernelspecs?user=ada/{name}").json() == model
        assert server.get("/api/kernelspecs?user=ada").json() == listing
    assert listing["kernelspecs"]["python3"]["spec"]["display_name"] == "Python 3 (Cellkeep)"
    assert server.get("/api/kernelspecs/python").json()["name"] == "python3"
    assert server.get("/api/kernelspecs/nosuch").status_code == 404


def test_logos_are_real_pictures(server: Server) -> None:
    resources = server.get("/api/kernelspecs/python3").json()["resources"]
    picture = raw(server, "GET", resources["logo-64x64"])
    assert picture.headers["Content-Type"] == "image/png"
    assert picture.content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture.content[16:24]) == (64, 64)
    length = struct.unpack(">I", picture.content[33:37])[0]
    assert zlib.crc32(picture.content[37 : 41 + length]) == struct.unpack(
        ">I", picture.content[41 + length : 45 + length]
    )[0]
    assert raw(server, "GET", resources["logo-svg"]).text.count("<svg") == 1
    assert raw(server, "GET", "/kernelspecs/python3/kernel.json").status_code == 404


def test_the_life_of_a_kernel(server: Server) -> None:
    created = server.post("/api/kernels", {"name": "python3"})
    assert created.status_code == 201
    model = check_kernel(created.json())
    path = created.headers["Location"]
    assert path == "/api/kernels/" + model["id"]
    assert check_kernel(server.get(path).json())["id"] == model["id"]
    assert [each["id"] for each in server.get("/api/kernels?1700000000000").json()] == [model["id"]]
    assert run(server, model["id"], "x = 1")["status"] == "ok"
    assert server.post(path + "/interrupt").status_code == 204
    restarted = server.post(path + "/restart")
    assert restarted.status_code == 200
    assert check_kernel(restarted.json())["id"] == model["id"]
    assert run(server, model["id"], "x")["error"]["name"] == "NameError"
    assert server.request("DELETE", path).status_code == 204
    for method, action in (("GET", ""), ("DELETE", ""), ("POST", "/interrupt"), ("POST", "/restart")):
        assert server.request(method, path + action).status_code == 404


def test_requests_of_agent_frameworks(server: Server) -> None:
    # smolagents: no body, the token in the query, 201 or nothing.
    made = raw(server, "POST", f"/api/kernels?token={TOKEN}")
    assert made.status_code == 201
    # AutoGen: Authorization: token, a name, and DELETE.
    headers = {"Authorization": f"token {TOKEN}"}
    specs = raw(server, "GET", "/api/kernelspecs", headers=headers).json()["kernelspecs"]
    body = {"name": next(iter(specs))}
    kernel = raw(server, "POST", "/api/kernels", headers=headers, json=body)
    assert kernel.status_code == 201
    path = "/api/kernels/" + kernel.json()["id"]
    assert raw(server, "POST", path + "/restart", headers=headers).status_code == 200
    assert raw(server, "DELETE", path, headers=headers).status_code == 204
    # @jupyterlab/services: Content-Type without a body, X-XSRFToken, a cache-buster.
    headers |= {"Content-Type": "application/json", "X-XSRFToken": "x"}
    path = "/api/kernels/" + made.json()["id"]
    assert raw(server, "POST", path + "/interrupt?17", headers=headers).status_code == 204
    assert raw(server, "DELETE", path + "?17", headers=headers).status_code == 204


def test_variables_and_the_directory_of_a_kernel(server: Server) -> None:
    wish = str(uuid.uuid4())
    body = {
        "kernel_id": wish,
        "path": "project/notes.ipynb",
        "env": {"KERNEL_USERNAME": "ada", "TZ": "Asia/Tokyo", "PATH": "/evil", "SECRET": "s3cret"},
    }
    created = server.post("/api/kernels", body)
    assert created.status_code == 201, created.text
    assert created.json()["id"] == wish
    code = (
        "import os\n"
        "(os.getcwd(), os.environ.get('KERNEL_USERNAME'), os.environ.get('TZ'),"
        " 'SECRET' in os.environ, '/evil' in os.environ['PATH'])"
    )
    result = run(server, wish, code)
    assert result["result"]["text/plain"] == (
        "('/workspace/project', 'ada', 'Asia/Tokyo', False, False)"
    )
    log = server.output()
    assert "SECRET" in log
    assert "s3cret" not in log
    assert server.post("/api/kernels", {"kernel_id": wish}).status_code == 409
    # A gateway client's directory is one of its own host.
    created = server.post("/api/kernels", {"env": {"KERNEL_WORKING_DIR": "/home/ada"}})
    where = run(server, created.json()["id"], "import os; os.getcwd()")
    assert where["result"]["text/plain"] == "'/workspace'"


def test_the_kernels_of_everyone_and_their_profile(server: Server) -> None:
    by_api = server.create()
    by_jupyter = server.post("/api/kernels").json()["id"]
    assert [each["id"] for each in server.get("/api/kernels").json()] == [
        by_api.info["kernel_id"],
        by_jupyter,
    ]
    limits = server.get("/v1/sessions/" + by_jupyter).json()["limits"]
    assert limits["memory_mb"] == 300
    assert limits["wall_ms"] >= 3_600_000
    assert by_api.fetch()["limits"]["memory_mb"] == 512
    status = server.get("/api/status").json()
    assert status["kernels"] == 2
    datetime.strptime(status["started"], GATEWAY_TIME)
    datetime.strptime(status["last_activity"], GATEWAY_TIME)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400),
        ("[]", 400),
        ('{"name": 1}', 400),
        ('{"env": {"KERNEL_X": 1}}', 400),
        ('{"env": {"KERNEL_X": "a\\u0000b"}}', 400),
        ('{"path": "../../etc"}', 400),
        ('{"kernel_id": "../x"}', 400),
        ('{"name": "ir"}', 501),
    ],
)
def test_a_kernel_that_cannot_be(server: Server, body: str, status: int) -> None:
    refused = server.request("POST", "/api/kernels", data=body)
    assert refused.status_code == status
    assert refused.headers["Content-Type"] == "application/json"
    assert refused.json()["message"]
    assert refused.json()["reason"]
    assert server.get("/api/kernels").json() == []


def test_a_full_server_says_resource_limit(server: Server) -> None:
    for _ in range(4):
        assert server.post("/api/kernels").status_code == 201
    refused = server.post("/api/kernels")
    assert refused.status_code == 403
    assert refused.json()["reason"] == "Resource Limit"
    assert "4 sessions" in refused.json()["message"]


def test_documents_and_their_kernels(server: Server) -> None:
    wanted = {"path": "a/b.ipynb", "name": "b", "type": "notebook", "kernel": {"name": "python3"}}
    created = server.post("/api/sessions", wanted)
    assert created.status_code == 201
    model = created.json()
    assert created.headers["Location"] == "/api/sessions/" + model["id"]
    first = check_kernel(model["kernel"])["id"]
    assert model["notebook"] == {"path": "a/b.ipynb", "name": "b"}
    assert server.post("/api/sessions", wanted).json()["id"] == model["id"]
    path = "/api/sessions/" + model["id"]
    renamed = server.request("PATCH", path, json={"path": "c.ipynb", "name": "c"})
    assert renamed.status_code == 200
    assert (renamed.json()["path"], renamed.json()["kernel"]["id"]) == ("c.ipynb", first)
    changed = server.request("PATCH", path, json={"kernel": {"name": "python3"}}).json()
    second = changed["kernel"]["id"]
    assert second != first
    assert server.get("/api/kernels/" + first).status_code == 404
    missing = server.request("PATCH", path, json={"kernel": {"id": first}})
    assert missing.status_code == 400
    assert server.request("DELETE", path).status_code == 204
    assert server.get(path).status_code == 404
    assert server.get("/api/kernels/" + second).status_code == 404
    unknown = server.post("/api/sessions", {**wanted, "kernel": {"name": "ir"}})
    assert unknown.status_code == 501
    assert unknown.json()["short_message"] == "ir not found"
    assert server.post("/api/sessions", {"path": "x"}).status_code == 400


def test_what_is_not_offered_is_said_in_json(server: Server) -> None:
    assert server.get("/api/terminals").json() == []
    for method, path in (
        ("GET", "/api/terminals/1"),
        ("GET", "/api/settings"),
        ("GET", NO_KERNEL),
        ("POST", NO_KERNEL + "/restart"),
        ("GET", "/api/kernels/ses_1"),
    ):
        refused = server.request(method, path)
        assert refused.status_code == 404
        assert refused.json()["message"]
    assert server.get("/api/me").json()["identity"]["username"] == "admin"


def test_idle_kernels_are_culled_and_spares_are_ready() -> None:
    with Server(*LEAN, "--cull-idle-timeout", "1", "--prespawn-count", "1") as running:
        made = running.post("/api/kernels", {"env": {"KERNEL_MARK": "mine"}})
        assert made.status_code == 201
        path = "/api/kernels/" + made.json()["id"]
        wait_until(lambda: running.get(path).status_code == 404, 60, "the idle kernel culled")
        assert running.get("/api/sessions").json() == []


def test_a_default_kernel_that_does_not_exist_stops_the_start() -> None:
    server = Server(*LEAN, "--default-kernel-name", "ir")
    with pytest.raises(AssertionError, match="there is no kernel"):
        server.start()
    server.http.close()
    server.log.close()
    server.folder.cleanup()


@pytest.mark.parametrize("user", [None, "ada"])
def test_the_gateway_client_of_jupyter_server(server: Server, user: str | None) -> None:
    environment = {**os.environ, "KERNEL_LAUNCH_TIMEOUT": "60"}
    if user:
        environment["KERNEL_USERNAME"] = user
    script = Path(__file__).with_name("gateway_client.py")
    done = subprocess.run(
        [LAB_PYTHON, script, server.url, TOKEN],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "specs": ["bash", "cpp", "javascript", "python3", "sql", "typescript"],
        "spec": "Python 3 (Cellkeep)",
        "logo": "PNG",
        "no_logo": None,
        "no_spec": "KeyError",
        "started": ["python3", "idle", 0],
        "listed": [True],
        "alive": True,
        "left": [],
        "refused": [501, True],
    }
