# SPDX-License-Identifier: Apache-2.0
"""The protocol's own clients for JavaScript: the present one, its predecessor, and the inspector's command line."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from conftest import NODE, PACKAGES
from harness import LEAN, TOKEN, Server, binary, image_directory, wait_until

DRIVE = Path(__file__).with_name("drive.mjs")
# The predecessor knows no 2026-07-28.
CLIENTS = (("client", "modern"), ("client", "legacy"), ("sdk", "legacy"))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text", "--mcp-fixtures") as running:
        yield running


@pytest.fixture(params=CLIENTS, ids="-".join)
def client(request: pytest.FixtureRequest) -> dict:
    return {"client": request.param[0], "revision": request.param[1], "session": "-".join(request.param)}


def start(job: dict) -> subprocess.Popen:
    command = [NODE, DRIVE, PACKAGES, json.dumps(job)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def drive(job: dict) -> dict:
    program = start(job)
    said, log = program.communicate(timeout=150)
    assert program.returncode == 0, log[-3000:]
    return json.loads(said.splitlines()[-1])


def over_http(server: Server, job: dict) -> dict:
    return {**job, "url": f"{server.url}/mcp", "token": TOKEN}


def over_stdio(job: dict, *arguments: str) -> dict:
    return {**job, "command": binary(), "args": ["mcp", *arguments]}


def check_tour(found: dict, client: dict) -> None:
    assert "run_code" in found["tools"] and found["result"] == "42"
    assert found["failed"] == [True, "ZeroDivisionError"]
    assert found["read"] == "from here"
    assert {"analyse_csv", "explain_failure"} <= set(found["prompts"])
    assert found["templates"] >= 3 and found["completed"] == ["a b.txt"]
    # The present client tells its program the newer code in both eras.
    assert found["missing"] == (-32602 if client["client"] == "client" else -32002)


def test_a_tour_over_http(server: Server, client: dict) -> None:
    check_tour(drive(over_http(server, {**client, "task": "tour"})), client)


def test_a_tour_over_stdio(client: dict) -> None:
    check_tour(drive(over_stdio({**client, "task": "tour"})), client)


def test_a_tour_over_stdio_of_a_server_that_runs(server: Server, client: dict) -> None:
    job = over_stdio({**client, "task": "tour"}, "--server", str(server.state_dir))
    check_tour(drive(job), client)


def test_changes_are_heard_over_http(server: Server, client: dict) -> None:
    assert drive(over_http(server, {**client, "task": "watch"})) == {"heard": True}


def test_changes_are_heard_over_stdio(client: dict) -> None:
    assert drive(over_stdio({**client, "task": "watch"})) == {"heard": True}


def test_changes_are_heard_through_a_server_that_runs(server: Server, client: dict) -> None:
    job = over_stdio({**client, "task": "watch"}, "--server", str(server.state_dir))
    assert drive(job) == {"heard": True}


@pytest.mark.parametrize("stdio", [False, True])
def test_a_client_is_asked(server: Server, client: dict, stdio: bool) -> None:
    job = {**client, "task": "ask"}
    job = over_stdio(job, "--server", str(server.state_dir)) if stdio else over_http(server, job)
    answer = drive(job)
    assert len(answer["asked"]) == 1 and "ada" in answer["said"]


def test_fifty_clients_at_once(server: Server, client: dict) -> None:
    assert drive(over_http(server, {**client, "task": "many", "clients": 50})) == {"right": True}


def running(server: Server, name: str) -> list[dict]:
    sessions = server.get("/v1/sessions").json()["sessions"]
    (session,) = [each for each in sessions if each["metadata"].get("mcp_session") == name]
    executions = server.get(f"/v1/sessions/{session['id']}/executions").json()["executions"]
    return [each for each in executions if each["phase"] != "finished"]


def test_a_client_that_is_killed_leaves_its_session(server: Server, client: dict) -> None:
    """Before 2026-07-28 a connection that breaks ends nothing; since then its run is interrupted."""
    program = start(over_http(server, {**client, "task": "hang", "session": f"killed-{client['session']}"}))
    assert json.loads(program.stdout.readline()) == {"runs": True}
    program.kill()
    program.communicate(timeout=30)
    name = f"killed-{client['session']}"
    if client["revision"] == "modern":
        wait_until(lambda: running(server, name) == [], 30, "the run is interrupted")
    else:
        assert len(running(server, name)) == 1
    after = drive(over_http(server, {**client, "task": "tour", "session": f"after-{client['session']}"}))
    check_tour(after, client)


def test_a_server_that_is_killed_ends_the_call(client: dict) -> None:
    with Server(*LEAN, "--log-format", "text") as killed:
        program = start(over_http(killed, {**client, "task": "hang"}))
        assert json.loads(program.stdout.readline()) == {"runs": True}
        killed.process.kill()
        killed.process.wait()
        said, log = program.communicate(timeout=90)
        killed.log.close()
        killed.start()  # which takes away what the other left
        assert program.returncode == 0, log[-3000:]
        assert json.loads(said.splitlines()[-1])["ended"] != "with an answer"


def test_a_program_that_is_killed_ends_the_call(client: dict) -> None:
    program = start(over_stdio({**client, "task": "hang"}))
    assert json.loads(program.stdout.readline()) == {"runs": True}
    mine = [each for each in psutil.Process(program.pid).children() if "mcp" in each.cmdline()]
    children = mine[0].children(recursive=True)
    mine[0].kill()
    said, log = program.communicate(timeout=60)
    assert program.returncode == 0, log[-3000:]
    assert json.loads(said.splitlines()[-1])["ended"] != "with an answer"
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


INSPECTOR = PACKAGES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"


def inspect(tmp_path: Path, *arguments: str) -> dict:
    command = [NODE, INSPECTOR, "--cli", "--connect-timeout", "60000", *arguments]
    home = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110, env=home)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    return json.loads(ended.stdout)


def test_the_inspector_over_http(server: Server, tmp_path: Path) -> None:
    where = ["--server-url", f"{server.url}/mcp", "--transport", "http"]
    where += ["--header", f"Authorization: Bearer {TOKEN}", "--method"]
    tools = inspect(tmp_path, *where, "tools/list")["tools"]
    assert "run_code" in {tool["name"] for tool in tools}
    call = ["tools/call", "--tool-name", "run_code", "--tool-arg", "code=6*7", "session=inspector"]
    assert inspect(tmp_path, *where, *call)["structuredContent"]["result"] == "42"


def test_the_inspector_over_stdio(tmp_path: Path) -> None:
    # It starts programs with a few variables of its own only.
    call = ["-e", f"CELLKEEP_IMAGE_DIR={image_directory()}"]
    call += ["--method", "tools/call", "--tool-name", "run_code", "--tool-arg", "code=6*7"]
    answer = inspect(tmp_path, *call, "--", binary(), "mcp")
    assert answer["structuredContent"]["result"] == "42"
