# SPDX-License-Identifier: Apache-2.0
"""Sessions of named environments, by the session API and by kernels' names; the environments are made
by `cellkeep env` of wheels of this machine."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LEAN, Server, Session, binary, wait_until
from modes import ModeServer
from test_mcp import told
from wheels import Environments, make_wheel, serve_index

WHO = "import sys, alpha; ' '.join((alpha.VERSION, sys.prefix, sys.executable))"
# What a package brings as a program, and what Python runs whenever it starts with the package.
FILES = {
    "{about}/entry_points.txt": "[console_scripts]\nalpha-say = alpha:say\n",
    "alpha/__init__.py": "VERSION = '1.0'\n\n\ndef say():\n    print('alpha says')\n",
    "started.pth": "import sys; sys.started = True\n",
}


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environments]:
    folder = tmp_path_factory.mktemp("named")
    index = folder / "index"
    index.mkdir()
    make_wheel(index, "alpha", "1.0", files=FILES)
    make_wheel(index, "alpha", "2.0")
    make_wheel(index, "alpha", "3.0")
    make_wheel(index, "beta", "1.0")
    with serve_index(index) as address:
        made = Environments(folder, address)
        for name, requirement in (("one", "alpha==1.0"), ("two", "alpha==2.0"), ("bad", "beta")):
            answer = made.create(name, requirement)
            assert answer.returncode == 0, answer.stderr
        yield made


@pytest.fixture(scope="module")
def damaged(environments: Environments) -> None:
    """A file of the environment `bad` is another than when it was made."""
    [module] = (environments.store / "images").glob("*/tree/environment/lib/*/*/beta/__init__.py")
    module.chmod(0o644)
    module.write_text("VERSION = 'changed'\n", encoding="utf-8")


@pytest.fixture(scope="module")
def server(mode: str, environments: Environments, damaged: None) -> Iterator[Server]:
    running = ModeServer(mode, "--log-format", "text")
    running.environment = environments.variables
    with running:
        yield running


def create(server: Server, **fields: object) -> Session:
    answer = server.post("/v1/sessions", fields)
    assert answer.status_code == 201, answer.text
    return Session(server, answer.json())


@pytest.fixture(scope="module")
def one(server: Server) -> Iterator[Session]:
    session = create(server, environment="one")
    yield session
    session.delete()


def test_a_session_has_the_packages_of_its_environment(
    server: Server, one: Session, environments: Environments
) -> None:
    inside = "/opt/cellkeep/environments/one"
    assert one.value(WHO) == repr(f"1.0 {inside} {inside}/bin/python")
    two = create(server, environment="two")
    assert two.value("__import__('alpha').VERSION") == "'2.0'"
    two.delete()
    plain = server.create()
    assert plain.execute("import alpha")["status"] == "error"
    plain.delete()
    shown = json.loads(environments.run("show", "one", "--json").stdout)
    assert one.info["environment"] == {"name": "one", "digest": shown["digest"]}
    assert one.info["language"] == "python"


def test_the_default_environment_is_behind_it(one: Session) -> None:
    assert one.value("__import__('pandas').DataFrame({'a': [1]}).sum().a.item()") == "1"
    assert one.value("__import__('sys').started") == "True"
    picture = one.execute("import matplotlib.pyplot as p; p.plot([1, 2]); None")
    assert picture["status"] == "ok", picture


def test_its_sessions_are_forks_of_a_zygote_of_its_own(server: Server, one: Session) -> None:
    look = "'pandas' in (s := __import__('sys')).modules, __import__('alpha').VERSION, s.started"

    def is_warm() -> bool:
        session = create(server, environment="one")
        found = session.value(look)
        session.delete()
        return found == "(True, '1.0', True)"

    wait_until(is_warm, 60, "sessions of the environment are warm")
    siblings = [create(server, environment="one") for _ in range(2)]
    assert len({each.value("__import__('random').random()") for each in siblings}) == 2
    assert siblings[0].execute("import alpha; alpha.VERSION = 'mine'")["status"] == "ok"
    assert siblings[1].value("__import__('alpha').VERSION") == "'1.0'"
    assert siblings[0].post("restart").status_code == 200
    assert siblings[0].value(look) == "(True, '1.0', True)"
    for each in siblings:
        assert each.delete() == 204


def test_one_that_is_made_while_the_server_runs_is_offered(
    server: Server, environments: Environments
) -> None:
    unknown = server.post("/v1/sessions", {"environment": "later"})
    assert unknown.status_code == 422
    assert unknown.json()["errors"][0]["pointer"] == "/environment"
    made = environments.create("later", "alpha==3.0")
    assert made.returncode == 0, made.stderr
    wait_until(lambda: "python3-later" in server.get("/api/kernelspecs").json()["kernelspecs"], 60, "it is offered")
    first, second = (create(server, **named) for named in ({"environment": "later"}, {"language": "python3-later"}))
    for each in (first, second):
        assert each.value("__import__('alpha').VERSION") == "'3.0'"
        assert each.delete() == 204
    kept = environments.run("remove", "later")
    assert kept.returncode != 0
    assert "in use" in kept.stderr


def test_its_programs_come_first_in_all_languages(one: Session) -> None:
    run = "import subprocess; subprocess.run({}, capture_output=True, text=True).stdout"
    assert one.value(run.format(["alpha-say"])) == repr("alpha says\n")
    code = ["python", "-c", "import alpha; print(alpha.VERSION)"]
    assert one.value(run.format(code)) == repr("1.0\n")
    shell = one.execute("alpha-say", language="bash")
    assert shell["stdout"] == "alpha says\n", shell


def test_nobody_changes_it(server: Server, one: Session) -> None:
    inside = "/opt/cellkeep/environments/one"
    for path in (f"{inside}/lib/python3.11/site-packages/alpha/__init__.py", f"{inside}/new"):
        refused = one.execute(f"open({path!r}, 'a')")["error"]["name"]
        assert refused in ("OSError", "PermissionError")
    assert one.execute("open('/workspace/new', 'w').close()")["status"] == "ok"
    # Others of this server's are not to be seen.
    assert one.value("__import__('os').listdir('/opt/cellkeep/environments')") == "['one']"
    control = next(c for c in one.info["isolation"]["controls"] if c["name"] == "private_image")
    assert one.info["environment"]["digest"] in control["mechanism"]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"environment": "three"}, "/environment"),
        ({"environment": "Not A Name"}, "/environment"),
        ({"environment": 1}, "/environment"),
        ({"environment": "bad"}, "/environment"),
        ({"environment": "one", "language": "bash"}, "/environment"),
        ({"environment": "two", "language": "python3-one"}, "/environment"),
        ({"language": "python3-three"}, "/language"),
        ({"language": "python3-bad"}, "/language"),
    ],
)
def test_an_unknown_environment_is_refused(server: Server, fields: dict, pointer: str) -> None:
    answer = server.post("/v1/sessions", fields)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["type"] == "/problems/invalid-request"
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_a_damaged_environment_is_named_at_the_start(
    server: Server, environments: Environments
) -> None:
    assert "python3-bad is not offered" in server.output()
    reason = server.post("/v1/sessions", {"environment": "bad"}).text
    assert "damaged" in reason and "env remove bad" in reason
    shown = json.loads(environments.run("show", "bad", "--json").stdout)
    assert shown["damaged"]


def test_an_environment_in_use_is_not_removed(environments: Environments, one: Session) -> None:
    refused = environments.run("remove", "one")
    assert refused.returncode == 1 and "in use" in refused.stderr
    assert one.value("__import__('alpha').VERSION") == "'1.0'"


def test_one_of_the_same_files_is_not_removed_either(
    server: Server, environments: Environments, one: Session
) -> None:
    assert environments.create("twin", "alpha==1.0").returncode == 0
    wait_until(lambda: "python3-twin" in server.get("/api/kernelspecs").json()["kernelspecs"], 60, "it is offered")
    twin = create(server, environment="twin")
    assert twin.info["environment"]["digest"] == one.info["environment"]["digest"]
    for name in ("twin", "one"):
        refused = environments.run("remove", name)
        assert refused.returncode == 1 and f"the environment {name} is in use" in refused.stderr
    assert twin.value("__import__('alpha').VERSION") == "'1.0'"
    assert twin.delete() == 204
    # Without sessions the server still offers it.
    assert environments.run("remove", "twin").returncode == 1
    fresh = create(server, environment="twin")
    assert fresh.value("__import__('alpha').VERSION") == "'1.0'"
    assert fresh.delete() == 204


def test_an_environment_is_removed_when_no_server_has_it(
    environments: Environments, tmp_path: Path
) -> None:
    own = Environments(tmp_path, environments.index)
    for name in ("left", "right"):
        assert own.create(name, "alpha==1.0").returncode == 0
    running = Server(*LEAN, "--prespawn-count", "0")
    running.environment = own.variables
    with running as server:
        session = create(server, environment="left")
        assert "in use" in own.run("remove", "left").stderr
        assert session.delete() == 204
    assert own.run("remove", "left").returncode == 0
    assert own.run("remove", "right").returncode == 0
    assert os.listdir(own.store / "images") == ["lock"] or not list((own.store / "images").glob("environment-*"))


def test_sessions_live_on_when_their_environments_zygote_gives_way(
    environments: Environments, tmp_path: Path
) -> None:
    """Four environments have one at a time (kWarmEnvironmentsMax)."""
    own = Environments(tmp_path, environments.index)
    names = ["spring", "summer", "autumn", "winter", "spare"]
    for name in names:
        assert own.create(name, "alpha==1.0").returncode == 0
    running = Server(*LEAN, "--prespawn-count", "0")
    running.environment = own.variables
    with running as server:
        made = {name: [create(server, environment=name) for _ in range(2)] for name in names}
        for name, siblings in made.items():
            # Forks of one zygote have its seed.
            assert len({one.value("hash('cellkeep')") for one in siblings}) == 1, name
            for one in siblings:
                assert one.execute(f"kept = {name!r}")["status"] == "ok"
        again = create(server, environment="spring")  # another makes room for its zygote
        assert again.value("hash('cellkeep')") != made["spring"][0].value("hash('cellkeep')")
        for name, siblings in made.items():
            assert [one.value("kept") for one in siblings] == [repr(name)] * 2
        for one in [again, *(one for siblings in made.values() for one in siblings)]:
            assert one.delete() == 204


def test_a_kernels_name_is_a_way_to_it(server: Server) -> None:
    specs = server.get("/api/kernelspecs").json()["kernelspecs"]
    assert {"python3", "python3-one", "python3-two"} <= set(specs)
    assert "python3-bad" not in specs
    assert specs["python3-one"]["spec"]["language"] == "python"
    assert "python3-one" in server.get("/").json()["languages"]
    kernel = server.post("/api/kernels", {"name": "python3-one"}).json()
    assert kernel["name"] == "python3-one"
    assert server.post("/api/kernels", {"name": "python3-three"}).status_code == 501
    sessions = server.get("/v1/sessions").json()["sessions"]
    session = Session(server, next(one for one in sessions if one["kernel_id"] == kernel["id"]))
    assert session.info["environment"]["name"] == "one"
    assert session.value("__import__('alpha').VERSION") == "'1.0'"
    assert server.get(f"/api/kernels/{kernel['id']}").json()["name"] == "python3-one"
    for name, status in (("python3-one", 201), ("python3", 201), ("python3-two", 400), ("bash", 400)):
        path = f"{session.info['id']}/{name}.ipynb"
        document = {"path": path, "type": "notebook", "kernel": {"name": name}}
        assert server.post("/api/sessions", document).status_code == status, name
    session.delete()
    by_language = create(server, language="python3-two")
    assert by_language.info["language"] == "python"
    assert by_language.info["environment"]["name"] == "two"
    by_language.delete()


def newest(server: Server) -> Session:
    sessions = server.get("/v1/sessions").json()["sessions"]
    return Session(server, max(sessions, key=lambda session: session["created_at"]))


def test_agents_and_programs_for_e2b_name_the_kernel(server: Server) -> None:
    ran = told(server, "run_code", code=WHO, session="named", language="python3-two")
    assert ran["result"].startswith("'2.0 /opt/cellkeep/environments/two "), ran
    for language in ("python3-two", "python"):  # the same interpreter
        more = told(server, "run_code", code="alpha.VERSION", session="named", language=language)
        assert more["result"] == "'2.0'", more
    other = told(server, "run_code", code="1", session="named", language="python3-one")
    assert "environment" in json.dumps(other)
    told(server, "close_session", session="named")
    for template in ("python3-one", "one", "one:v2"):
        made = server.post("/sandboxes", {"templateID": template})
        assert made.status_code == 201, made.text
        session = newest(server)
        assert session.info["environment"]["name"] == "one"
        assert session.value("__import__('alpha').VERSION") == "'1.0'"
        session.delete()
    for template in ("python3-three", "three", "default"):
        assert server.post("/sandboxes", {"templateID": template}).status_code == 404


def test_an_answer_without_a_session_comes_from_the_environment(server: Server) -> None:
    for environment, version in (("one", "1.0"), ("two", "2.0")):
        body = {"code": "import alpha; alpha.VERSION", "environment": environment}
        answer = server.post("/v1/executions", body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["text/plain"] == repr(version)


def test_a_program_runs_in_it(server: Server, environments: Environments, tmp_path: Path) -> None:
    program = tmp_path / "say.py"
    program.write_text("import alpha\nprint(alpha.VERSION)\n", encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [binary(), "run", str(program), *arguments],
            env={**os.environ, **environments.variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    of_server = run("--server", str(server.state_dir), "--environment", "two")
    assert (of_server.returncode, of_server.stdout) == (0, "2.0\n"), of_server.stderr
    own = run("--environment", "one")
    assert (own.returncode, own.stdout) == (0, "1.0\n"), own.stderr
    refused = run("--server", str(server.state_dir), "--environment", "three")
    assert refused.returncode == 1 and "three is not offered" in refused.stderr
    assert run("--server", str(server.state_dir)).returncode == 1  # the default has no alpha
