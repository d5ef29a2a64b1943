# SPDX-License-Identifier: Apache-2.0
"""SQL on DuckDB, as the contract suite asks it."""

from language import (
    KEPT,
    UNICODE,
    Asked,
    Completeness,
    Fails,
    Language,
    Shown,
    Unsupported,
)

NO_STREAMS = Unsupported("what a query finds is its result, it writes to no stream")
NO_END = Unsupported("a query cannot end its process")
TABLE = "application/vnd.cellkeep.table+json"

LANGUAGE = Language(
    name="sql",
    title="SQL",
    define=("CREATE TABLE answer AS SELECT 41 AS n", "CREATE MACRO add_one(n) AS n + 1"),
    use="SELECT add_one(n) AS n FROM answer",
    streams=NO_STREAMS,
    result=Shown("SELECT 6 * 7 AS n", {"text/plain": "42"}),
    rich=Shown("SELECT 6 * 7 AS n", {"text/html": "<table", TABLE: "42"}),
    error=Fails(
        "SELECT 1;\nSELECT n,\n  nothing FROM answer", "runtime", "BinderException", "nothing", 3, 3
    ),
    syntax=Fails("SELECT 1\nFRUM answer", "syntax", "ParserException", "answer", 2, 6),
    unicode=f"SELECT '{UNICODE}' AS \"été\"",
    lines=Unsupported("of long results the first rows are shown, with the number of all"),
    megabyte="SELECT repeat('Q', 1000) AS v FROM range({count} // 1000)",
    endless="SELECT sum(a.range % 7) FROM range(1000000000000000) AS a",
    says_begun=False,
    after_timeout=KEPT,
    after_interrupt=KEPT,
    hoard="SELECT list(a.range || repeat('Q', 1000)) FROM range(1000000) AS a",
    after_hoard=KEPT,
    write="COPY (SELECT 'hello' AS word) TO 'out.csv'",
    read="FROM 'in.csv'",
    stdin=Unsupported("a query asks for no input"),
    variable=Unsupported("a query does not see the environment"),
    completion=Asked("SELECT * FROM ans", "SELECT * FROM answer"),
    completeness=Completeness(
        complete=("SELECT 1", "SELECT 1;"),
        incomplete=("SELECT 'text", "SELECT (1", "SELECT 1 FROM"),
        invalid=("SELEKT 1",),
    ),
    inspection=Asked("answer", "INTEGER"),
    exits=NO_END,
    killed=NO_END,
)
