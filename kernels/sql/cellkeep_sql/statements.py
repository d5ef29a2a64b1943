# SPDX-License-Identifier: Apache-2.0
"""The statements of a cell, one after the other, each exactly once."""

import re
from typing import NamedTuple

import duckdb
from duckdb import ExpectedResultType, StatementType

from . import failures, files, scan, table
from .engine import ask

# Statements in which a table that there is none of may be the data file of that name: they read at
# once. A view would look for it again later.
_READING = {
    StatementType.SELECT,
    StatementType.EXPLAIN,
    StatementType.INSERT,
    StatementType.UPDATE,
    StatementType.DELETE,
    StatementType.MERGE_INTO,
    StatementType.CREATE,
    StatementType.COPY,
}
_CREATES_VIEW = re.compile(r"\b(view|macro|function)\b", re.IGNORECASE)
_RETURNS = re.compile(r"\breturning\b", re.IGNORECASE)
# Tables of one statement that may be files.
FILES_MAX = 32


class Statement(NamedTuple):
    text: str
    start: int  # code points from the cell's beginning
    type: StatementType
    expected: tuple

    @property
    def verb(self):
        if self.type == StatementType.TRANSACTION:
            return self.text.split(maxsplit=1)[0].strip(";").upper()
        return self.type.name.replace("_", " ")


def split(connection, cell):
    """The cell's statements. CodeError: it does not parse, and nothing of it has run."""
    try:
        found = connection.extract_statements(cell)
    except duckdb.Error as error:
        raise failures.code_error(error, failures.facts(error, cell), cell, 0) from None
    statements = []
    end = 0
    for one in found:
        start = cell.find(one.query, end)
        start = end if start < 0 else start
        end = start + len(one.query)
        statements.append(
            Statement(one.query, start, one.type, tuple(one.expected_result_type))
        )
    return statements


class Cell:
    """Runs the statements of a cell. say(text) and show(bundle) are its output on the way."""

    def __init__(self, connection, text, work, say, show):
        self._connection = connection
        self._text = text
        self._work = work
        self._say = say
        self._show = show

    def run(self):
        """The rows of the last statement as a MIME bundle, or None. CodeError."""
        last = None
        for statement in split(self._connection, self._text):
            self._work.check()
            if last is not None:
                self._show(last)
            last = self._run(statement)
        return last

    def _run(self, statement):
        views = []
        try:
            return self._answer(statement, self._rows(statement, views))
        except duckdb.InterruptException:
            self._work.check()
            raise
        except duckdb.Error as error:
            found = self._facts(error, statement)
            raise failures.code_error(error, found, self._text, statement.start) from None
        finally:
            for name in views:
                self._drop(name)

    def _rows(self, statement, views):
        """Runs it, with a view for each data file that it calls by its bare name."""
        while True:
            try:
                relation = self._connection.sql(statement.text)
                return None if relation is None else table.read(relation, self._work.check)
            except duckdb.CatalogException as error:
                missing = failures.facts(error, statement.text).missing
                if missing in views or not self._make_view(statement, missing, len(views)):
                    raise
                views.append(missing)

    def _make_view(self, statement, name, so_far):
        if name is None or statement.type not in _READING or so_far == FILES_MAX:
            return False
        if statement.type == StatementType.CREATE and _CREATES_VIEW.search(statement.text):
            return False
        candidates = files.called(name)
        if len(candidates) > 1:
            raise duckdb.CatalogException(
                f"{name} may be any of {', '.join(candidates)}. Write one of them in single quotes."
            )
        if not candidates:
            return False
        source = scan.quote_text(candidates[0])
        ask(self._connection, f"CREATE TEMP VIEW {scan.quote_name(name)} AS FROM {source}")
        return True

    def _drop(self, name):
        while True:
            try:
                ask(self._connection, f"DROP VIEW IF EXISTS temp.main.{scan.quote_name(name)}")
                return
            except duckdb.InterruptException:
                pass  # It was for the query.
            except duckdb.TransactionException:
                return  # The transaction that it was made in is aborted, and takes it along.

    def _facts(self, error, statement):
        """What the error says. A query's binder forgets where; EXPLAIN binds it again and knows."""
        found = failures.facts(error, statement.text)
        if statement.type == StatementType.LOAD:
            return found._replace(message=f"{found.message}\n{failures.EXTENSIONS}")
        if found.offset is not None or statement.type != StatementType.SELECT:
            return found
        prefix = "EXPLAIN "
        try:
            ask(self._connection, prefix + statement.text)
        except duckdb.Error as again:
            facts = failures.facts(again, prefix + statement.text)
            if type(again) is type(error) and facts.offset is not None:
                return found._replace(offset=max(0, facts.offset - len(prefix)))
        return found

    def _answer(self, statement, rows):
        """The bundle of its rows, or None when it has said in a line what it did."""
        if rows is None:
            self._say(f"{statement.verb}: done\n")
            return None
        if statement.type == StatementType.EXPLAIN:
            plans = rows.first.column(rows.first.num_columns - 1).to_pylist()
            return {"text/plain": "\n".join(map(str, plans))}
        if ExpectedResultType.CHANGED_ROWS in statement.expected and rows.names == ["Count"]:
            if not _RETURNS.search(statement.text):
                changed = rows.first.column(0).to_pylist()
                self._say(_changed(statement.verb, changed))
                return None
        if rows.names == ["Success"] and not rows.count and statement.type != StatementType.SELECT:
            self._say(f"{statement.verb}: done\n")
            return None
        return table.bundle(rows, self._rendering())

    def _rendering(self):
        """Another connection, so that a transaction of the user's is not touched."""
        other = self._connection.cursor()
        ((zone,),) = ask(self._connection, "SELECT current_setting('TimeZone')")
        ask(other, "SET TimeZone = ?", [zone])
        return other


def _changed(verb, counts):
    if not counts:
        return f"{verb}: done\n"
    return f"{verb}: {counts[0]:,} row{'' if counts[0] == 1 else 's'}\n"
