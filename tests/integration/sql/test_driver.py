# SPDX-License-Identifier: Apache-2.0
"""The SQL driver alone: statements, errors, files, interrupts."""

import os

import pytest


def test_tables_live_on_from_cell_to_cell(sql):
    assert sql.said("CREATE TABLE t (a INTEGER, b VARCHAR)") == "CREATE: done\n"
    assert sql.said("INSERT INTO t VALUES (1, 'x'), (2, NULL)") == "INSERT: 2 rows\n"
    assert sql.rows("FROM t ORDER BY a") == [[1, "x"], [2, None]]


def test_every_statement_of_a_cell_shows_what_it_gave(sql):
    done, events = sql.run("SELECT 1; CREATE TABLE t AS FROM range(3); FROM t; SELECT 2 AS two")
    assert done["status"] == "ok"
    assert [event["event"] for event in events] == ["display", "stdout", "display", "result"]
    assert events[1]["text"] == "CREATE: 3 rows\n"
    assert events[3]["data"]["text/plain"] == "two\n───\n  2\n(1 row)"


@pytest.mark.parametrize(
    "statement, said",
    [
        ("INSERT INTO t SELECT * FROM range(5, 1005)", "INSERT: 1,000 rows\n"),
        ("UPDATE t SET a = a + 1 WHERE a = 1", "UPDATE: 1 row\n"),
        ("DELETE FROM t WHERE a = 99", "DELETE: 0 rows\n"),
        ("MERGE INTO t USING (SELECT 1 AS a) u USING (a) WHEN MATCHED THEN DELETE", "MERGE INTO: 1 row\n"),
        ("TRUNCATE t", "DELETE: 3 rows\n"),
        ("COPY t TO 't.csv'", "COPY: 3 rows\n"),
        ("DROP TABLE t", "DROP: done\n"),
        ("ALTER TABLE t ADD COLUMN b INTEGER", "ALTER: done\n"),
        ("SET VARIABLE x = 3", "SET: done\n"),
        ("BEGIN; ROLLBACK", "BEGIN: done\nROLLBACK: done\n"),
        ("-- nothing but a comment", ""),
        (" \n;;", ""),
    ],
)
def test_statements_without_rows_say_what_they_did(sql, statement, said):
    sql.said("CREATE TABLE t AS SELECT range AS a FROM range(3)")
    assert sql.said(statement) == said


def test_rows_of_a_changing_statement_are_a_table(sql):
    sql.said("CREATE TABLE t (a INTEGER)")
    assert sql.rows("INSERT INTO t VALUES (7) RETURNING a AS Count") == [[7]]
    assert sql.rows("FROM t") == [[7]]


def test_a_statement_runs_once(sql):
    sql.said("CREATE SEQUENCE s")
    assert sql.rows("SELECT nextval('s') FROM range(3)") == [[1], [2], [3]]
    assert sql.value("nextval('s')") == 4


def test_the_plan_is_text(sql):
    plan = sql.text("EXPLAIN SELECT 42")
    assert "\n" in plan and "\\n" not in plan


@pytest.mark.parametrize(
    "code, name, kind, line, column, message",
    [
        ("SELEKT 1", "ParserException", "syntax", 1, 1, "SELEKT"),
        ("SELECT 1;\n\n  SELEKT 2", "ParserException", "syntax", 3, 3, "SELEKT"),
        ("SELECT 'ä', 'open", "ParserException", "syntax", 1, 13, "unterminated"),
        ("SELECT '🐱',\n  'ü', nope FROM range(3)", "BinderException", "runtime", 2, 8, "nope"),
        ("SELECT 1;\r\nSELECT * FROM missing", "CatalogException", "runtime", 2, 15, "missing"),
        ("-- ä\nINSERT INTO missing VALUES (1)", "CatalogException", "runtime", 2, 13, "missing"),
        ("SELECT 1;\n SELECT CAST('x' AS INTEGER)", "ConversionException", "runtime", 2, 9, "INT32"),
        ("SELECT no_such_function(1)", "CatalogException", "runtime", 1, 8, "no_such_function"),
        ("FROM 'missing.parquet'", "IOException", "runtime", 1, 6, "missing.parquet"),
        ("SELECT error('boo')", "InvalidInputException", "runtime", None, None, "boo"),
        ("SELECT $1", "InvalidInputException", "runtime", None, None, "parameters"),
        ("ROLLBACK", "TransactionException", "runtime", None, None, "no transaction"),
        ("CREATE TABLE t (a INTEGER); CREATE TABLE t (a INTEGER)", "CatalogException", "runtime", 1, 42, "exists"),
    ],
)
def test_errors_say_where(sql, code, name, kind, line, column, message):
    done = sql.error(code)
    assert (done["name"], done["kind"]) == (name, kind), done
    assert (done.get("line"), done.get("column")) == (line, column), done
    assert message in done["message"]
    assert "LINE" not in done["message"] and "{" not in done["message"]
    if line is not None:
        written, caret = done["traceback"][-2:]
        assert written == code.split("\n")[line - 1].rstrip("\r") and caret == " " * (column - 1) + "^"


def test_a_long_line_is_shown_around_the_error(sql):
    done = sql.error("SELECT '" + "x" * 5000 + "', nope")
    assert done["column"] == 5012
    written, caret = done["traceback"][-2:]
    assert len(written) <= 120 and written[len(caret) - 1 :] == "nope"


def test_what_does_not_parse_has_not_begun(sql):
    sql.error("CREATE TABLE t (a INTEGER); SELEKT")
    assert "does not exist" in sql.error("FROM t")["message"]


def test_what_ran_before_an_error_counts(sql):
    done, events = sql.run("CREATE TABLE t AS SELECT 5 AS a; SELECT a FROM t; SELECT nope")
    assert done["status"] == "error"
    assert [event["event"] for event in events] == ["stdout", "display"]
    assert sql.rows("FROM t") == [[5]]


@pytest.mark.parametrize("long", ["a" * 200_000, "1" * 60_000 + "a" * 60_000, '"' * 200_000, "'" + "f" * 200_000])
@pytest.mark.timeout(100)  # a search that is quadratic in the text takes minutes
def test_a_cell_of_much_text_is_completed(sql, long):
    for code in (long, long + ".", long + " coal", f"SELECT {long}' coal"):
        sql.ask("complete", code=code, cursor=len(code))
        sql.ask("inspect", code=code, cursor=len(code), detail=0)


def test_names_are_completed_behind_much_text(sql):
    sql.run('CREATE TABLE trees AS SELECT 1 AS leaves; CREATE TABLE "big trees" AS SELECT 1 AS roots')
    text = "SELECT '" + "f" * 60_000 + "', "
    for code, match in (("coal", "coalesce"), ("trees.le", "leaves"), ('"big trees".ro', "roots")):
        assert sql.ask("complete", code=text + code, cursor=len(text + code))["matches"] == [match]
    for code in ("a" * 300, "a" * 1000, "a" * 300 + ".le", "a" * 1000 + ".le"):
        assert sql.ask("complete", code=code, cursor=len(code))["matches"] == []


def test_an_aborted_transaction_is_rolled_back_by_who_began_it(sql):
    sql.said("CREATE TABLE t (a INTEGER)")
    assert sql.error("BEGIN; INSERT INTO t VALUES (1); SELECT CAST('x' AS INTEGER)")
    assert "aborted" in sql.error("FROM t")["message"]
    assert sql.ask("complete", code="SELECT coal", cursor=11)["matches"] == ["coalesce"]
    sql.said("ROLLBACK")
    assert sql.rows("FROM t") == []


@pytest.mark.parametrize(
    "code",
    [
        "INSTALL httpfs",
        "INSTALL spatial FROM community",
        "FORCE INSTALL excel",
        "LOAD httpfs",
        "FROM 's3://bucket/file.parquet'",
        "FROM 'https://example.org/file.csv'",
        "SELECT * FROM read_xlsx('a.xlsx')",
        "ATTACH 'a.sqlite' (TYPE sqlite)",
    ],
)
def test_extensions_are_refused_clearly(sql, code):
    done = sql.error(code)
    assert "not installed or loaded in a session" in done["message"], done
    assert "autoinstall" not in done["message"] and "INSTALL " not in done["message"]


def test_files_are_tables_by_their_names(sql, tmp_path):
    (tmp_path / "sales.csv").write_text("day,amount\n2024-01-01,3\n2024-01-02,4\n")
    (tmp_path / "we ird.json").write_text('[{"q": 1}]')
    sql.said("COPY (FROM 'sales.csv') TO 'copy.parquet'")
    for name in ("sales.csv", "copy.parquet"):
        assert sql.rows(f"SELECT sum(amount) FROM '{name}'") == [[7]]
        assert sql.rows(f"SELECT day FROM '{name}' LIMIT 1") == [["2024-01-01"]]
    assert sql.rows("FROM 'we ird.json'") == [[1]]


def test_a_bare_name_is_a_file_if_there_is_one_and_no_table(sql, tmp_path):
    (tmp_path / "sales.csv").write_text("a\n1\n")
    (tmp_path / "Costs.parquet.gz").write_text("not one")
    assert sql.rows("SELECT s.a FROM sales s JOIN SALES u USING (a)") == [[1]]
    assert sql.said("CREATE TABLE kept AS FROM sales") == "CREATE: 1 row\n"
    assert sql.rows("SHOW TABLES") == [["kept"]]
    sql.said("CREATE TABLE sales AS SELECT 9 AS a")
    assert sql.rows("FROM sales") == [[9]]
    assert "costs" in sql.error("FROM costs")["message"].lower()


@pytest.mark.parametrize(
    "code, why",
    [
        ("FROM several", "several.csv, several.json"),
        ("FROM none", "does not exist"),
        ("FROM other.one", "does not exist"),
        ("FROM sub", "does not exist"),
        ("CREATE VIEW v AS FROM one", "does not exist"),
        ("CREATE MACRO m() AS TABLE FROM one", "does not exist"),
        ("INSERT INTO one VALUES (2)", "one"),
        ("DROP TABLE one", "does not exist"),
    ],
)
def test_a_bare_name_is_no_file_otherwise(sql, tmp_path, code, why):
    for name in ("several.csv", "several.json", "one.csv"):
        (tmp_path / name).write_text("a\n1\n")
    (tmp_path / "sub").mkdir()
    assert why in sql.error(code)["message"]
    assert sql.rows("SHOW TABLES") == []
    assert (tmp_path / "one.csv").read_text() == "a\n1\n"


def test_an_interrupt_ends_a_query_and_nothing_else(own_sql):
    own_sql.said("CREATE TABLE t AS SELECT 1 AS a; CREATE TEMP TABLE u AS SELECT 2 AS a")
    for code in (
        "SELECT count(*) FROM range(10_000_000_000_000) r(a) WHERE a % 7 = 9",
        "FROM range(10_000_000_000_000) r(a) WHERE a % 7 = 9",
        "CREATE TABLE big AS FROM range(10_000_000_000_000) r(a) WHERE a % 7 = 9",
    ):
        identity = own_sql.start("execute", code=f"SELECT 0 AS begun; {code}; SELECT 3", silent=False)
        assert own_sql.event()["event"] == "display"
        own_sql.interrupt()
        done, events = own_sql.finish(identity)
        assert (done["status"], done["name"], events) == ("error", "KeyboardInterrupt", [])
    assert own_sql.rows("FROM t UNION ALL FROM u ORDER BY a") == [[1], [2]]


def test_an_interrupt_that_comes_too_early_ends_its_cell(own_sql):
    own_sql.interrupt()
    identity = own_sql.start("execute", code="FROM range(10_000_000_000_000) r(a) WHERE a % 7 = 9")
    done, _ = own_sql.finish(identity)
    assert done["name"] == "KeyboardInterrupt"
    assert own_sql.value("1") == 1


def test_an_interrupt_at_any_moment_of_a_cells_beginning_leaves_no_query_running(own_sql):
    for _ in range(200):
        identity = own_sql.start("execute", code="FROM range(10_000_000_000_000) r(a) WHERE a % 7 = 9")
        own_sql.interrupt()
        done, _ = own_sql.finish(identity)
        assert done["name"] == "KeyboardInterrupt"
        assert own_sql.value("1") == 1


def test_memory_and_threads_are_the_sessions(make):
    driver = make(CELLKEEP_MEMORY_BYTES=str(400 << 20), CELLKEEP_CPU_CORES="0.5")
    settings = dict(
        driver.rows("SELECT name, value FROM duckdb_settings() WHERE name IN ('memory_limit', 'threads')")
    )
    assert settings == {"memory_limit": "200.0 MiB", "threads": "1"}
    done = driver.error("SELECT len(list(range)) FROM range(100_000_000)")
    assert (done["name"], done["kind"]) == ("OutOfMemoryException", "memory")
    assert driver.value("1") == 1


@pytest.mark.parametrize("cores, most", [("nan", None), ("", 1), ("-3", 1), ("1e9", None), ("x", 1)])
def test_cores_that_are_none(make, cores, most):
    driver = make(CELLKEEP_CPU_CORES=cores, CELLKEEP_MEMORY_BYTES="-5")
    threads = int(driver.value("current_setting('threads')"))
    assert threads == (most or len(os.sched_getaffinity(0)))
    assert driver.value("current_setting('memory_limit')") == "256.0 MiB"


def test_few_threads_at_rest(own_sql):
    own_sql.rows("FROM range(1_000_000)")
    assert len(os.listdir(f"/proc/{own_sql.pid}/task")) <= 4


def test_the_time_zone_is_the_sessions(make):
    driver = make(TZ="Asia/Tokyo")
    moment = "TIMESTAMPTZ '2024-06-01 00:00:00+00'"
    assert driver.value(moment) == "2024-06-01 09:00:00+09"
    driver.said("SET TimeZone = 'America/New_York'")
    assert driver.value(moment) == "2024-05-31 20:00:00-04"
    assert driver.ask("adopt", env={"TZ": "Europe/Berlin"}, directory="")["status"] == "ok"
    assert make(TZ="No/Where").value(moment) == "2024-06-01 00:00:00+00"


def test_a_spare_works_in_its_new_directory(own_sql, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.csv").write_text("a\n5\n")
    own_sql.ask("adopt", env={"A": "b"}, directory=str(tmp_path / "sub"))
    assert own_sql.rows("FROM data") == [[5]]


def test_half_a_surrogate_pair_breaks_nothing(sql):
    assert sql.value("'\ud800'") == "\ufffd"
    assert sql.error("SELECT \ud800 1")["kind"] == "syntax"
