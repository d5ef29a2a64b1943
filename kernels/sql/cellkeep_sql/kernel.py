# SPDX-License-Identifier: Apache-2.0
"""The driver: requests in, DuckDB's answers out."""

import os
import re

import cellkeep_driver
import duckdb

from . import assist, engine
from .running import Work
from .statements import Cell

_SURROGATE = re.compile("[\ud800-\udfff]")


def _text(code):
    """DuckDB does not take a lone surrogate as text."""
    return _SURROGATE.sub("\ufffd", code)


class SqlDriver(cellkeep_driver.Driver):
    interrupts_raise = False
    version = duckdb.__version__
    banner = f"DuckDB {duckdb.__version__}. Files of the workspace are tables: FROM 'sales.csv'"

    def __init__(self):
        self._connection = engine.connect(os.environ)

    def execute(self, code):
        work = Work(self._connection, self)
        cell = Cell(self._connection, _text(code), work, self.stdout, self.display)
        return work.run(cell.run)

    def complete(self, code, cursor):
        return assist.complete(self._for_questions(), _text(code), cursor)

    def inspect(self, code, cursor, detail):
        return assist.inspect(self._for_questions(), _text(code), cursor)

    def is_complete(self, code):
        return assist.is_complete(self._connection, _text(code))

    def _for_questions(self):
        """The connection that knows the temporary tables, or, while its transaction is aborted, another."""
        try:
            engine.ask(self._connection, "SELECT 1")
            return self._connection
        except duckdb.TransactionException:
            return self._connection.cursor()

    def adopt(self, env, directory):
        super().adopt(env, directory)
        engine.set_time_zone(self._connection, env)

    def end(self):
        self._connection.close()
