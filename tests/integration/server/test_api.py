# SPDX-License-Identifier: Apache-2.0
"""The session API: create, execute, interrupt, restart, files, one-shot runs."""

import base64
import threading

from harness import Server, Session


def test_a_session_says_what_it_is(server: Server, session: Session) -> None:
    info = session.info
    assert info["id"].startswith("ses_") and len(info["id"]) == 28
    assert info["language"] == "python"
    assert info["state"] == "idle"
    assert info["death"] is None
    assert info["limits"]["memory_mb"] == 512
    assert info["network"] == {"mode": "none"}
    assert info["environment"]["digest"].startswith("sha256:")
    assert {control["name"] for control in info["isolation"]["controls"]} >= {
        "seccomp",
        "landlock",
        "network_namespace",
        "memory_limit",
    }
    assert session.fetch()["id"] == info["id"]
    listed = server.get("/v1/sessions").json()["sessions"]
    assert info["id"] in [entry["id"] for entry in listed]


def test_the_result_output_and_error_of_a_run(session: Session) -> None:
    done = session.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
    assert done["status"] == "ok"
    assert done["stdout"] == "out\n"
    assert done["stderr"] == "err\n"
    assert done["result"]["text/plain"] == "42"
    assert done["error"] is None
    assert done["exit_code"] == 0
    assert done["metrics"]["wall_ms"] > 0
    failed = session.execute("x = 1\ny = x / 0")
    assert failed["status"] == "error"
    assert failed["error"]["name"] == "ZeroDivisionError"
    assert failed["error"]["line"] == 2
    assert failed["exit_code"] == 1
    assert any("ZeroDivisionError" in line for line in failed["error"]["traceback"])
    assert not any("\x1b" in line for line in failed["error"]["traceback"])
    wrong = session.execute("def f(:\n  pass")
    assert wrong["status"] == "error"
    assert wrong["error"]["kind"] == "syntax"
    assert wrong["error"]["line"] == 1


def test_variables_persist_over_a_thousand_executions(session: Session) -> None:
    assert session.execute("total = 0")["status"] == "ok"
    for number in range(1000):
        assert session.execute(f"total += {number}")["status"] == "ok"
    last = session.execute("total")
    assert last["result"]["text/plain"] == str(sum(range(1000)))
    assert last["execution_count"] == 1002


def test_a_figure_is_a_png_without_any_setup(session: Session) -> None:
    done = session.execute("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()")
    assert done["status"] == "ok", done
    pictures = [entry["data"]["image/png"] for entry in done["displays"]]
    assert len(pictures) == 1
    assert base64.b64decode(pictures[0]).startswith(b"\x89PNG\r\n")


def test_input_reads_the_given_stdin_line_by_line(session: Session) -> None:
    done = session.execute("a = input('first? ')\nb = input()\na + '|' + b", stdin="one\ntwo\n")
    assert done["status"] == "ok", done
    assert done["result"]["text/plain"] == "'one|two'"
    ended = session.execute("input()", stdin="")
    assert ended["status"] == "error"
    assert ended["error"]["name"] in ("EOFError", "StdinNotImplementedError")


def test_interrupt_stops_the_code_and_keeps_the_variables(
    server: Server, session: Session, attach: object
) -> None:
    session.execute("kept = 5")
    watcher = attach(session)
    answers: list[dict] = []
    runner = threading.Thread(
        target=lambda: answers.append(
            Session(server, session.info).execute("print('begun', flush=True)\nwhile True: pass")
        )
    )
    runner.start()
    assert watcher.wait_for_output("stream")["content"]["text"] == "begun\n"
    assert session.post("interrupt").status_code == 204
    runner.join(30)
    assert answers and answers[0]["status"] == "interrupted", answers
    assert answers[0]["state"] == "kept"
    assert session.value("kept") == "5"


def test_interrupting_an_idle_session_does_not_disturb_it(session: Session) -> None:
    session.execute("kept = 6")
    for _ in range(3):
        assert session.post("interrupt").status_code == 204
    assert session.value("kept") == "6"


def test_a_restart_keeps_the_files_and_not_the_variables(session: Session) -> None:
    session.execute("gone = 1\nopen('kept.txt', 'w').write('still here')")
    restarted = session.post("restart")
    assert restarted.status_code == 200, restarted.text
    assert restarted.json()["restarts"] == 1
    assert session.value("open('kept.txt').read()") == "'still here'"
    again = session.execute("gone")
    assert again["error"]["name"] == "NameError"
    assert session.value("1") == "1"


def test_files_go_in_and_out(server: Server, session: Session) -> None:
    path = session.path + "/files/data/in.bin"
    payload = bytes(range(256)) * 1000
    put = server.request("PUT", path, data=payload)
    assert put.status_code in (200, 201, 204), put.text
    assert session.value("len(open('data/in.bin', 'rb').read())") == "256000"
    got = server.get(path)
    assert got.status_code == 200 and got.content == payload
    part = server.request("GET", path, headers={"Range": "bytes=256-511"})
    assert part.status_code == 206 and part.content == bytes(range(256))
    session.execute("open('out.csv', 'w').write('a,b\\n1,2\\n')")
    names = [entry["path"] for entry in server.get(session.path + "/files").json()["entries"]]
    assert "out.csv" in names
    assert server.get(session.path + "/files/out.csv").text == "a,b\n1,2\n"
    assert server.request("DELETE", path).status_code == 204
    assert server.get(path).status_code == 404


def test_files_given_with_a_session_are_there_before_its_first_run(server: Server) -> None:
    session = server.create(
        files=[
            {"path": "a.txt", "text": "text"},
            {"path": "b/c.bin", "base64": base64.b64encode(b"\x00\xff").decode()},
        ],
        env={"GREETING": "hello"},
        metadata={"task": "T-17"},
    )
    assert session.value("open('a.txt').read()") == "'text'"
    assert session.value("open('b/c.bin', 'rb').read()") == r"b'\x00\xff'"
    assert session.value("__import__('os').environ['GREETING']") == "'hello'"
    assert session.fetch()["metadata"] == {"task": "T-17"}
    assert session.delete() == 204


def test_a_one_shot_run_leaves_no_session(server: Server) -> None:
    before = len(server.get("/v1/sessions").json()["sessions"])
    done = server.post(
        "/v1/executions",
        {"code": "print(open('x').read())", "files": [{"path": "x", "text": "y"}]},
    )
    assert done.status_code == 200, done.text
    assert done.json()["stdout"] == "y\n"
    assert len(server.get("/v1/sessions").json()["sessions"]) == before


def test_an_idempotency_key_runs_once(session: Session) -> None:
    session.execute("n = 0")
    first = session.execute("n += 1\nn", idempotency_key="step-1")
    second = session.execute("n += 1\nn", idempotency_key="step-1")
    assert first["id"] == second["id"]
    assert session.value("n") == "1"


def test_an_execution_can_be_fetched_again(server: Server, session: Session) -> None:
    done = session.execute("'again'")
    fetched = server.get(f"{session.path}/executions/{done['id']}")
    assert fetched.status_code == 200
    assert fetched.json()["result"] == done["result"]


def test_deleting_a_session_twice(server: Server) -> None:
    session = server.create()
    assert session.delete() == 204
    assert session.delete() == 410
    assert server.get(session.path).status_code == 410


def test_two_sessions_do_not_share_anything(server: Server, session: Session) -> None:
    other = server.create()
    session.execute("x = 'mine'\nopen('mine.txt', 'w').close()")
    assert other.execute("x")["error"]["name"] == "NameError"
    assert other.value("__import__('os').path.exists('mine.txt')") == "False"
    assert other.delete() == 204
