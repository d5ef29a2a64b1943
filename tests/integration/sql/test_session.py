# SPDX-License-Identifier: Apache-2.0
"""SQL in sandboxed sessions of a real server."""

import json
from pathlib import Path

import pytest
from harness import LEAN, Server, Session

ROOT = Path(__file__).parents[3]
TABLE = "application/vnd.cellkeep.table+json"
TRIES = 5
ENDLESS = "SELECT count(*) FROM range(10_000_000_000_000) r(a) WHERE a % 7 = 9"


@pytest.fixture(scope="module")
def server():
    with Server(*LEAN) as server:
        yield server


@pytest.fixture
def sql(server):
    session = server.create(language="sql")
    yield session
    session.delete()


def rows(session: Session, code: str) -> list:
    answer = session.execute(code)
    assert answer["status"] == "ok", answer
    return answer["result"][TABLE]["rows"]


def test_a_file_is_asked_and_a_table_lives_on(server: Server) -> None:
    files = [{"path": "sales.csv", "text": "day,amount\n2024-01-01,3\n2024-01-02,4\n"}]
    session = server.create(language="sql", files=files)
    answer = session.execute("CREATE TABLE t AS FROM sales; SELECT sum(amount) AS total FROM t")
    assert (answer["status"], answer["stdout"]) == ("ok", "CREATE: 2 rows\n")
    assert answer["result"]["text/plain"] == "total\n─────\n    7\n(1 row)"
    assert "<td>7</td>" in answer["result"]["text/html"]
    assert rows(session, "SELECT max(day) FROM t") == [["2024-01-02"]]
    answer = session.execute("COPY t TO 'out.parquet'")
    assert [artifact["path"] for artifact in answer["artifacts"]] == ["out.parquet"]
    session.delete()


@pytest.mark.parametrize(
    "code, kind, line, column",
    [
        ("SELECT 1;\n  SELEKT 2", "syntax", 2, 3),
        ("SELECT 'ä', nope FROM range(3)", "runtime", 1, 13),
        ("FROM missing", "runtime", 1, 6),
        ("SELECT CAST('x' AS INTEGER)", "runtime", 1, 8),
    ],
)
def test_errors_say_where(sql: Session, code: str, kind: str, line: int, column: int) -> None:
    answer = sql.execute(code)
    assert answer["status"] == "error"
    error = answer["error"]
    assert (error["kind"], error["line"], error["column"]) == (kind, line, column)


def test_a_deadline_ends_the_query_and_keeps_the_tables(sql: Session) -> None:
    # DuckDB's threads have 900 ms to stop (kInterruptGraceMax), which may be too few of a busy machine's.
    for _ in range(TRIES):
        sql.execute("CREATE OR REPLACE TABLE t AS SELECT 5 AS a")
        answer = sql.execute(ENDLESS, timeout_ms=1500)
        assert answer["status"] == "timeout"
        if answer["state"] == "kept":
            break
    assert answer["state"] == "kept"
    assert rows(sql, "FROM t") == [[5]]


def test_a_restart_keeps_files_and_nothing_else(sql: Session) -> None:
    sql.execute("CREATE TABLE t AS SELECT 5 AS a; COPY t TO 'kept.parquet'")
    assert sql.post("restart").status_code == 200
    assert "does not exist" in sql.execute("FROM t")["error"]["message"]
    assert rows(sql, "FROM 'kept.parquet'") == [[5]]


def test_limits_are_the_sessions(server: Server) -> None:
    session = server.create(language="sql", limits={"memory_mb": 400, "cpu_cores": 1})
    settings = "SELECT current_setting('memory_limit'), current_setting('threads')"
    assert rows(session, settings) == [["200.0 MiB", 1]]
    answer = session.execute("SELECT len(list(range)) FROM range(100_000_000)")
    assert answer["status"] == "oom" and answer["error"]["kind"] == "oom", answer
    assert rows(session, "SELECT 1") == [[1]]
    session.delete()


@pytest.mark.parametrize("code", ["INSTALL httpfs", "LOAD httpfs", "FROM 'https://example.org/a.csv'"])
def test_nothing_is_fetched(sql: Session, code: str) -> None:
    assert "not installed or loaded in a session" in sql.execute(code)["error"]["message"]


def test_files_are_handed_over_to_python_and_back(server: Server) -> None:
    python = server.create()
    made = python.execute(
        "import pandas as pd, decimal\n"
        "pd.DataFrame({'name': ['ä', None], 'n': [1, 2**60], 'day': pd.to_datetime(['2024-01-01', '2024-01-02'])})"
        ".to_parquet('frame.parquet')"
    )
    assert made["status"] == "ok", made
    session = server.create(language="sql")
    hand_over(python, session, "frame.parquet")
    assert rows(session, "SELECT name, n, CAST(day AS DATE) FROM 'frame.parquet' ORDER BY n") == [
        ["ä", 1, "2024-01-01"],
        [None, str(2**60), "2024-01-02"],
    ]
    session.execute("COPY (SELECT n + 1 AS n, 1.10::DECIMAL(4, 2) AS d FROM 'frame.parquet') TO 'back.parquet'")
    hand_over(session, python, "back.parquet")
    assert python.value("int(pd.read_parquet('back.parquet').n.max()) - 2**60") == "1"
    for one in (python, session):
        one.delete()


def hand_over(one: Session, other: Session, path: str) -> None:
    """What languages of one session do without any of this."""
    found = one.server.get(f"{one.path}/files/{path}")
    assert found.status_code == 200
    put = other.server.request("PUT", f"{other.path}/files/{path}", data=found.content)
    assert put.status_code in (200, 201, 204), put.text


def test_the_notebook_runs(sql: Session) -> None:
    notebook = json.loads((ROOT / "notebooks/sql.ipynb").read_text(encoding="utf-8"))
    codes = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    answers = [sql.execute(code) for code in codes]
    assert [answer["status"] for answer in answers] == ["ok"] * len(codes), answers
    assert answers[-1]["result"][TABLE]["rows"] == [[2000, "26325.00"]]
