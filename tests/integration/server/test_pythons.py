# SPDX-License-Identifier: Apache-2.0
"""Sessions of environments that bring their own Python. Each CPython that this machine has is tried; its
packages come from the public index."""

import json
import time
from collections.abc import Iterator

import pytest
from branches import branch
from checkpoints import checkpoint, roll_back
from harness import Client, Server, Session, wait_for, wait_until
from interpreters import VARIABLE, Interpreter, found
from wheels import Environments

INTERPRETERS = found()
INSIDE = "/opt/cellkeep/interpreter"
PUBLIC_INDEX = ""
IS_WARM = "'IPython.core.completer' in __import__('sys').modules"  # the kernel's zygotes import it


def name_of(interpreter: Interpreter) -> str:
    return f"py3{interpreter.minor}"


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    return Environments(tmp_path_factory.mktemp("pythons"), PUBLIC_INDEX)


@pytest.fixture(scope="module")
def server(environments: Environments) -> Iterator[Server]:
    running = Server("--log-format", "text")
    running.environment = environments.variables
    with running:
        yield running


@pytest.fixture(scope="module", params=INTERPRETERS, ids=name_of)
def interpreter(
    request: pytest.FixtureRequest, server: Server, environments: Environments
) -> Iterator[Interpreter]:
    one: Interpreter = request.param
    environments.requirements.write_text("rich==13.9.4\n", encoding="utf-8")
    before = time.monotonic()
    made = environments.run(
        *("create", name_of(one), "--requirements", str(environments.requirements), "--python", one.program)
    )
    assert made.returncode == 0, made.stderr
    print(f"{one.version}: made in {time.monotonic() - before:.1f} s")
    kernel = f"python3-{name_of(one)}"
    wait_until(lambda: kernel in server.get("/api/kernelspecs").json()["kernelspecs"], 120, "it is offered")
    yield one


def create(server: Server, interpreter: Interpreter, **fields: object) -> Session:
    return server.create(environment=name_of(interpreter), **fields)


@pytest.fixture(scope="module")
def session(server: Server, interpreter: Interpreter) -> Iterator[Session]:
    made = create(server, interpreter)
    yield made
    assert made.delete() == 204


def test_this_machine_has_interpreters() -> None:
    """Says which, or is skipped where all tests of this file are."""
    if not INTERPRETERS:
        pytest.skip(f"there is no CPython 3.9 to 3.14 but Debian's 3.11; {VARIABLE} may name some")
    print("tried:", ", ".join(f"{one.version} ({one.program})" for one in INTERPRETERS))
    assert len({one.minor for one in INTERPRETERS}) == len(INTERPRETERS)


@pytest.mark.timeout(1200)
def test_a_session_has_the_python_that_was_named(
    interpreter: Interpreter, session: Session, environments: Environments
) -> None:
    shown = json.loads(environments.run("show", name_of(interpreter), "--json").stdout)
    assert shown["python"] == interpreter.version
    assert {"ipython", "debugpy", "rich"} <= set(shown["packages"])
    assert interpreter.version in environments.run("list").stdout
    inside = f"/opt/cellkeep/environments/{name_of(interpreter)}"
    look = "import sys, platform; platform.python_version(), sys.prefix, sys.base_prefix, sys.executable"
    wanted = (interpreter.version, inside, INSIDE, f"{inside}/bin/python")
    assert eval(session.value(look)) == wanted
    assert session.value("import rich; rich.__name__") == "'rich'"
    # Not where it is on this machine.
    assert session.value(f"__import__('os').path.exists({interpreter.program!r})") == "False"
    assert session.value("[p for p in sys.path if p and not p.startswith(('/opt/cellkeep/', '/workspace'))]") == "[]"
    for path in (f"{INSIDE}/lib/python3.{interpreter.minor}/os.py", f"{INSIDE}/new"):
        assert session.execute(f"open({path!r}, 'a')")["error"]["name"] in ("OSError", "PermissionError")
    run = "import subprocess; subprocess.run(['python', '-c', 'import sys, ssl, rich; print(sys.version_info[1])'], capture_output=True, text=True).stdout"
    assert session.value(run) == repr(f"{interpreter.minor}\n")


@pytest.mark.timeout(1200)
def test_the_kernelspec_names_the_version(interpreter: Interpreter, server: Server) -> None:
    spec = server.get(f"/api/kernelspecs/python3-{name_of(interpreter)}").json()["spec"]
    assert spec["display_name"] == f"Python {interpreter.version} (Cellkeep, {name_of(interpreter)})"
    assert spec["language"] == "python"


@pytest.mark.timeout(1200)
def test_results_errors_and_input(session: Session) -> None:
    done = session.execute("x = 6\nprint('out')\nimport sys; print('err', file=sys.stderr)\nx * 7")
    assert (done["status"], done["stdout"], done["stderr"]) == ("ok", "out\n", "err\n")
    assert done["result"]["text/plain"] == "42"
    assert session.value("_ + 1") == "43"
    shown = session.execute("from IPython.display import HTML, display; display(HTML('<b>b</b>'))")
    assert shown["displays"][0]["data"]["text/html"] == "<b>b</b>", shown
    failed = session.execute("def f():\n    return 1 / 0\n\nf()")
    assert failed["status"] == "error"
    assert (failed["error"]["name"], failed["error"]["line"]) == ("ZeroDivisionError", 2)
    syntax = session.execute("a b")
    assert (syntax["error"]["name"], syntax["error"]["line"]) == ("SyntaxError", 1)
    answered = session.execute("a = input('first? ')\na + input()", stdin="one\ntwo\n")
    assert answered["result"]["text/plain"] == "'onetwo'"
    assert session.execute("!echo shell")["stdout"] == "shell\n"
    assert session.execute("%%bash\necho script")["stdout"] == "script\n"
    assert session.value("import asyncio; await asyncio.sleep(0, 'slept')") == "'slept'"


@pytest.mark.timeout(1200)
def test_deadlines_and_interrupts_leave_the_state(session: Session) -> None:
    assert session.execute("kept = 'kept'")["status"] == "ok"
    late = session.execute("while True: pass", timeout_ms=1000)
    assert (late["status"], late["error"]["kind"]) == ("timeout", "wall_timeout")
    assert late["state"] == "kept", late
    assert session.value("kept") == "'kept'"
    events = session.events("import time\nprint('begun')\ntime.sleep(120)")
    wait_for(events, "stdout")
    assert session.post("interrupt").status_code == 204
    assert "interrupted" in json.dumps(wait_for(events, "finished"))
    assert session.value("kept") == "'kept'"


@pytest.mark.timeout(1200)
def test_completion_and_inspection(session: Session) -> None:
    session.execute("import collections\n\ndef described():\n    'What it does.'")
    client = Client(session)
    try:
        completed = client.kernel.complete("collections.Ordered", reply=True, timeout=60)["content"]
        assert any(match.endswith("OrderedDict") for match in completed["matches"]), completed
        inspected = client.kernel.inspect("described", reply=True, timeout=60)["content"]
        assert inspected["found"] and "What it does." in inspected["data"]["text/plain"]
        info = client.kernel.kernel_info(reply=True, timeout=60)["content"]
        assert info["language_info"]["version"].split(".")[:2] == session.value(
            "import platform; platform.python_version()"
        ).strip("'").split(".")[:2]
    finally:
        client.close()


@pytest.mark.timeout(1200)
def test_files_and_a_restart(session: Session) -> None:
    made = session.execute("open('made.csv', 'w').write('a,b\\n1,2\\n')")
    assert [one["path"] for one in made["artifacts"]] == ["made.csv"], made
    assert session.server.get(session.path + "/files/made.csv").text == "a,b\n1,2\n"
    session.execute("gone = 1")
    assert session.post("restart").status_code == 200
    assert session.execute("gone")["error"]["name"] == "NameError"
    assert session.value("open('made.csv').read()") == repr("a,b\n1,2\n")


@pytest.mark.timeout(1200)
def test_its_sessions_are_forks_of_a_zygote(server: Server, interpreter: Interpreter, session: Session) -> None:
    def is_warm() -> bool:
        one = create(server, interpreter)
        warm = one.value(IS_WARM)
        one.delete()
        return warm == "True"

    wait_until(is_warm, 120, "sessions of the environment are warm")
    siblings = [create(server, interpreter) for _ in range(2)]
    assert len({each.value("__import__('random').random()") for each in siblings}) == 2
    assert len({each.value("__import__('os').getpid(), __import__('uuid').uuid4()") for each in siblings}) == 2
    assert siblings[0].execute("import rich; rich.mine = 1")["status"] == "ok"
    assert siblings[1].value("import rich; hasattr(rich, 'mine')") == "False"
    for each in siblings:
        assert each.delete() == 204


@pytest.mark.timeout(1200)
def test_it_goes_back_to_a_checkpoint_and_branches(server: Server, interpreter: Interpreter) -> None:
    session = create(server, interpreter, checkpoints={"branches": True})
    session.execute("import random, os\nvalues = [1, 2]\nopen('f', 'w').write('before')\nrandom.seed(5)")
    made = checkpoint(session)
    session.execute("values.append(3); open('f', 'w').write('after')")
    other = branch(session)
    roll_back(session, made)
    assert session.value("values, open('f').read()") == "([1, 2], 'before')"
    assert other.value("values, open('f').read()") == "([1, 2, 3], 'after')"
    other.execute("values.clear()")
    assert session.value("import asyncio; await asyncio.sleep(0, 'goes on')") == "'goes on'"
    # Threads of this Python cannot go on in a copy: the refusal says so, and they can be given up.
    session.execute(
        "import threading\nstop = threading.Event()\nthread = threading.Thread(target=stop.wait)\nthread.start()"
    )
    refused = session.server.post(session.path + "/checkpoints", {})
    assert refused.status_code == 409, refused.text
    assert (refused.json()["reason"], refused.json()["count"]) == ("threads", 1)
    assert '"drop"' in refused.json()["detail"] and '"carry"' not in refused.json()["detail"]
    dropped = checkpoint(session, on_threads="drop")
    assert dropped["lost"] == [{"what": "threads", "count": 1}]
    assert session.execute("stop.set(); thread.join()")["status"] == "ok"
    for each in (other, session):
        assert each.delete() == 204


@pytest.mark.timeout(1200)
def test_an_environment_is_its_files(interpreter: Interpreter, environments: Environments) -> None:
    """Two of the same are one image; and it has no tests, no bytecode of other places."""
    twice = f"{name_of(interpreter)}-too"
    made = environments.run(
        *("create", twice, "--requirements", str(environments.requirements), "--python", interpreter.program)
    )
    first = json.loads(environments.run("show", name_of(interpreter), "--json").stdout)
    # What CPython 3.9 and 3.10 compile depends on what else their process has compiled.
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip() == first["digest"] or interpreter.minor < 11, made.stderr
    print(f"{interpreter.version}: {first['bytes'] >> 20} MiB, {len(first['packages'])} packages")
    [folder] = (environments.store / "images").glob(f"*{first['digest'].removeprefix('sha256:')}/tree")
    library = folder / f"interpreter/lib/python3.{interpreter.minor}"
    assert (library / "os.py").is_file() and not (library / "test").exists()
    assert list((library / "__pycache__").glob("os.*.pyc"))
