# SPDX-License-Identifier: Apache-2.0
"""Sessions and executions through the client, against the real server."""

import threading
from pathlib import Path

import pytest
from harness import LEAN, TOKEN, Server

from cellkeep import (
    CellkeepError,
    Client,
    Conflict,
    ExecutionFailed,
    Invalid,
    LimitReached,
    NotFound,
    Result,
    Session,
    Unauthorized,
)


def test_the_readme_s_first_lines(server: Server, tmp_path: Path) -> None:
    with Session() as s:
        s.run("import matplotlib.pyplot as plt; plt.plot([1, 4, 9]); plt.title('squares')")
        r = s.run("plt.plot([1, 4, 9]); plt.show(); 6 * 7")
        assert r.ok and r.text == "42"
        saved = r.images[0].save(tmp_path / "p.png")
        assert saved.read_bytes().startswith(b"\x89PNG\r\n")
        session_id = s.id
    with Client() as client, pytest.raises(NotFound):
        client.session(session_id)


def test_variables_live_on_and_text_is_what_a_reader_sees(session: Session) -> None:
    session.run("x = 6", check=True)
    result = session.run("import sys; print('seen'); print('odd', file=sys.stderr); x * 7")
    assert result.text == "seen\n42"
    assert (result.stdout, result.stderr) == ("seen\n", "odd\n")
    assert result.execution_count == 2
    assert result.metrics.wall_ms > 0
    assert session.run("import pandas; pandas.DataFrame({'a': [1]})").html is not None


def test_a_failing_program_is_a_result_and_an_exception_only_when_asked(session: Session) -> None:
    failed = session.run("d = {}\nd['missing']")
    assert failed.status == "error" and not failed.ok
    assert failed.error is not None
    assert (failed.error.name, failed.error.line) == ("KeyError", 2)
    assert "KeyError" in failed.report()
    with pytest.raises(ExecutionFailed, match="ZeroDivisionError") as raised:
        session.run("1 / 0", check=True)
    assert raised.value.result.status == "error"
    late = session.run("while True: pass", timeout=0.5)
    assert late.status == "timeout"
    assert late.error is not None and late.error.kind == "wall_timeout"


def test_stdin_files_and_metadata_go_in(client: Client) -> None:
    files = {"a.txt": "text", "b.bin": b"\x00\xff"}
    with client.create(files=files, metadata={"task": "T-1"}, env={"G": "hello"}) as session:
        assert session.info.metadata == {"task": "T-1"}
        assert session.run("input() + open('a.txt').read()", stdin="x\n").text == "'xtext'"
        assert session.run("__import__('os').environ['G']").text == "'hello'"
        result = session.run("open('c.txt').read()", files={"c.txt": "late"})
        assert result.text == "'late'"


def test_sessions_are_listed_attached_and_restarted(client: Client, session: Session) -> None:
    assert session.id in [info.id for info in client.sessions()]
    again = client.session(session.info.kernel_id)
    assert again.id == session.id
    session.run("gone = 1; open('kept.txt', 'w').write('kept')")
    assert session.restart().restarts == 1
    assert session.run("gone").status == "error"
    assert session.run("open('kept.txt').read()").text == "'kept'"
    assert session.refresh().executions >= 3


def test_an_interrupt_from_another_thread_stops_the_code(session: Session) -> None:
    begun = threading.Event()
    results = []
    runner = threading.Thread(
        target=lambda: results.append(
            session.run(
                "kept = 5\nprint('begun', flush=True)\nwhile True: pass",
                on_stdout=lambda text: begun.set(),
            )
        )
    )
    runner.start()
    assert begun.wait(60)
    session.interrupt()
    runner.join(60)
    assert results and results[0].status == "interrupted"
    assert session.run("kept").text == "5"


def test_refusals_carry_the_problem_document(client: Client, session: Session) -> None:
    with pytest.raises(Invalid) as raised:
        client.create(limits={"memory_mb": 1}, metadata={})
    assert raised.value.errors[0].pointer == "/limits/memory_mb"
    assert raised.value.document["status"] == 422
    with pytest.raises(NotFound) as missing:
        session.execution("exe_000000000000000000000000")
    assert missing.value.kind == "unknown-execution"
    with pytest.raises(Unauthorized), Client(client.target.url, "wrong") as stranger:
        list(stranger.sessions())


def test_a_spent_budget_says_which_and_how_much(client: Client) -> None:
    with client.create(limits={"executions": 2}) as session:
        session.run("1")
        session.run("2")
        with pytest.raises(LimitReached) as raised:
            session.run("3")
    assert raised.value.status == 429
    assert raised.value.budget == "executions"
    assert (raised.value.used, raised.value.limit) == (2, 2)


def test_one_key_is_one_run(session: Session) -> None:
    session.run("count = 0")
    first = session.run("count += 1; count", idempotency_key="step")
    again = session.run("count += 1; count", idempotency_key="step")
    assert first.id == again.id and again.text == "1"
    assert session.run("count").text == "1"


def test_a_run_without_a_session_and_a_server_by_its_socket(tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("s") / "ck.sock"
    with Server(*LEAN, "--listen", f"unix:{path}"):
        with Client(f"unix:{path}", TOKEN) as client:
            result = client.run("input()", stdin="by the socket\n")
            assert result.text == "'by the socket'"
            assert list(client.sessions()) == []


def test_an_update_lowers_limits_and_merges_metadata(client: Client) -> None:
    with client.create(metadata={"task": "T-1", "old": "x"}) as session:
        info = session.update(limits={"wall_ms": 2000}, metadata={"old": None, "new": "y"})
        assert info.limits["wall_ms"] == 2000
        assert info.metadata == {"task": "T-1", "new": "y"}
        with pytest.raises(Invalid):
            session.update(limits={"wall_ms": 3000})
        with pytest.raises(Conflict):
            session.update(network=["example.org:443"])
        assert [one.id for one in client.sessions(metadata={"new": "y"})] == [session.id]


def test_a_session_goes_back_to_a_checkpoint(session: Session) -> None:
    session.run("x = 'before'; open('data.txt', 'w').write(x)")
    made = session.checkpoint("start")
    assert session.checkpoint().unchanged
    session.run("x = 'after'; open('data.txt', 'w').write(x)")
    assert [(one.path, one.change) for one in session.diff(made)] == [("data.txt", "modified")]
    back = session.rollback(made)
    assert back.failed_count == 0
    assert session.run("print(x, open('data.txt').read())").stdout == "before before\n"
    assert [one.id for one in session.checkpoints()] == [made.id, back.left_as]
    session.delete_checkpoint(made)
    with pytest.raises(CellkeepError) as gone:
        session.rollback(made)
    assert "deleted" in str(gone.value)


def test_a_session_is_branched(client: Client) -> None:
    with client.create(branches=True) as session:
        check_branches(session)


def check_branches(session: Session) -> None:
    session.run("x = 'before'; open('data.txt', 'w').write(x)")
    with session.branch(label="try") as other:
        assert other.info.branch_of is not None
        assert (other.info.branch_of["session"], other.info.branch_of["label"]) == (session.id, "try")
        other.run("x = 'branch'; open('data.txt', 'w').write(x)")
        assert session.run("print(x, open('data.txt').read())").stdout == "before before\n"
        assert other.run("print(x, open('data.txt').read())").stdout == "branch branch\n"
    made = session.checkpoint("start")
    session.run("x = 'after'")
    answers = session.try_all(
        ["x + '!'", {"code": "1 / 0", "timeout": 10}, "open('data.txt', 'w').write('lost')"], made
    )
    assert all(isinstance(one, Result) for one in answers)
    assert [one.status for one in answers if isinstance(one, Result)] == ["ok", "error", "ok"]
    assert isinstance(answers[0], Result) and answers[0].text == "'before!'"
    assert session.run("print(x, open('data.txt').read())").stdout == "after before\n"
    assert session.try_all([]) == []
    with pytest.raises(CellkeepError):
        session.branch("ckp_0f1e2d3c4b5a69788796a5b4")
