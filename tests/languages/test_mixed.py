# SPDX-License-Identifier: Apache-2.0
"""One session, several languages: they share the files and the limits, and nothing else."""

import threading
from collections.abc import Iterator

import pytest

from harness import LEAN, Server, Session, wait_for

LIMITS = {"memory_mb": 1024, "wall_ms": 100_000, "cpu_ms": 100_000}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LEAN, "--log-format", "text") as running:
        yield running


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = server.create(limits=LIMITS, env={"SHARED": "by all"})
    yield created
    assert created.delete() == 204


def ok(session: Session, language: str, code: str) -> dict:
    done = session.execute(code, language=language)
    assert done["status"] == "ok", done
    return done


def said(session: Session, language: str, code: str) -> str:
    done = ok(session, language, code)
    return (done["stdout"] + (done["result"] or {}).get("text/plain", "")).strip()


def test_a_table_goes_through_every_hand(session: Session) -> None:
    made = ok(
        session,
        "python",
        "import pandas as pd\n"
        "frame = pd.DataFrame({'day': [1, 1, 2], 'item': ['tea', 'ink', 'tea'], 'n': [3, 4, 5]})\n"
        "frame.to_csv('sales.csv', index=False)\nframe.to_parquet('sales.parquet')",
    )
    assert {each["path"] for each in made["artifacts"]} == {"sales.csv", "sales.parquet"}
    grepped = ok(session, "bash", "grep tea sales.csv | tee tea.csv")
    assert grepped["stdout"] == "1,tea,3\n2,tea,5\n"
    assert [each["path"] for each in grepped["artifacts"]] == ["tea.csv"]
    query = (
        "CREATE TABLE totals AS SELECT item, sum(n)::BIGINT AS total FROM 'sales.parquet' GROUP BY item;\n"
        "COPY totals TO 'totals.parquet';\nSELECT total FROM totals WHERE item = 'tea'"
    )
    assert "8" in said(session, "sql", query)
    back = "dict(pd.read_parquet('totals.parquet').sort_values('item').values.tolist())"
    assert said(session, "python", back) == "{'ink': 4, 'tea': 8}"
    # And the tables, variables and the data frame are all still there.
    assert "2" in said(session, "sql", "SELECT count(*) FROM totals")
    assert said(session, "python", "len(frame)") == "3"


def test_every_language_has_the_session_s_environment_and_files(session: Session) -> None:
    path = f"{session.path}/files/given.txt"
    assert session.server.request("PUT", path, data=b"given\n").status_code == 201
    assert said(session, "python", "import os; os.environ['SHARED']") == "'by all'"
    assert said(session, "bash", 'echo "$SHARED"; cat given.txt') == "by all\ngiven"


def test_languages_run_side_by_side_and_are_interrupted_one_by_one(session: Session) -> None:
    ok(session, "python", "kept = 41")
    ok(session, "bash", "kept=41")
    python = session.events("print('on', flush=True)\nwhile True: pass", language="python")
    bash = session.events("echo on\nwhile :; do :; done", language="bash")
    wait_for(python, "stdout")
    wait_for(bash, "stdout")
    body = {"language": "bash"}
    assert session.server.post(session.path + "/interrupt", body).status_code == 204
    done = wait_for(bash, "finished")["execution"]
    assert (done["status"], done["state"]) == ("interrupted", "kept"), done
    # Python runs on, and bash answers beside it.
    assert said(session, "bash", "echo $((kept + 1))") == "42"
    body = {"language": "python"}
    assert session.server.post(session.path + "/interrupt", body).status_code == 204
    done = wait_for(python, "finished")["execution"]
    assert (done["status"], done["state"]) == ("interrupted", "kept"), done
    assert said(session, "python", "kept + 1") == "42"


def test_one_language_starts_anew_and_the_others_go_on(session: Session) -> None:
    ok(session, "python", "kept = 41")
    ok(session, "bash", "kept=41; echo file > kept.txt")
    answer = session.server.post(session.path + "/restart", {"language": "bash"})
    assert answer.status_code == 200, answer.text
    assert said(session, "bash", 'echo "[$kept]"; cat kept.txt') == "[]\nfile"
    assert said(session, "python", "kept + 1") == "42"
    answer = session.server.post(session.path + "/restart", {"language": "python"})
    assert answer.status_code == 200, answer.text
    assert session.execute("kept")["error"]["name"] == "NameError"


def test_one_that_dies_takes_no_other_with_it(session: Session) -> None:
    ok(session, "python", "kept = 41")
    done = session.execute("kill -9 $$", language="bash")
    assert (done["status"], done["state"]) == ("dead", "lost"), done
    assert said(session, "bash", "echo back") == "back"
    assert said(session, "python", "kept + 1") == "42"


def test_the_session_s_memory_is_one_for_all(server: Server) -> None:
    session = server.create(limits={**LIMITS, "memory_mb": 256})
    ok(session, "bash", "kept=41")
    hoard = "blocks = []\nwhile True: blocks.append(bytearray(b'x') * (8 << 20))"
    done = session.execute(hoard)
    assert (done["status"], done["error"]["kind"]) == ("oom", "oom"), done
    assert said(session, "bash", "echo $((kept + 1))") == "42"
    assert session.delete() == 204


def test_executions_of_one_language_keep_their_order(session: Session) -> None:
    answers: list[str] = []
    ok(session, "bash", "n=0")

    def run() -> None:
        body = {"code": "n=$((n + 1)); echo $n", "language": "bash"}
        answers.append(session.server.post_apart(session.path + "/executions", body).json()["stdout"])

    threads = [threading.Thread(target=run) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == [f"{n}\n" for n in range(1, 6)]


@pytest.mark.parametrize("unknown", ["", "cobol", "Python", "../python", 7, None])
def test_a_language_that_is_not_offered_is_refused(session: Session, unknown: object) -> None:
    body = {"code": "1", "language": unknown}
    answer = session.server.post(session.path + "/executions", body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == "/language"
    for action in ("restart", "interrupt"):
        answer = session.server.post(f"{session.path}/{action}", {"language": unknown})
        assert 400 <= answer.status_code < 500, answer.text
