# SPDX-License-Identifier: Apache-2.0
"""What was run, for history_request and %history: IPython's manager over a database in memory.

No thread saves it. In a session, whose temporary directory is its own, each cell is also appended to a
file there, so that a fresh interpreter of the same session still knows what the ones before it ran.
"""

import json
import os
import re
import tempfile
from datetime import datetime

from IPython.core.history import HistoryManager

from .versions import kept_outputs

# The file is cut to its newest half when it has grown past this.
FILE_BYTES_MAX = 8 << 20


def _is_row(row):
    """User code may write to the file: [session, line, source, raw source, output or None]."""
    return (
        isinstance(row, list)
        and len(row) == 5
        and all(type(number) is int and 0 < number < 2**31 for number in row[:2])
        and all(isinstance(text, str) for text in row[2:4])
        and isinstance(row[4], (str, type(None)))
    )


class SessionHistory(HistoryManager):
    """Makes its database when the history is first read. Until then a cell's row waits in IPython's
    caches (db_input_cache, db_output_cache), and a session whose history is never read has no
    database."""

    # Traits in the base class, which every cell sets. They have no observers.
    _i00 = _i = _ii = _iii = ""

    def __init__(self, shell):
        self.file_name = None  # where each cell is appended to
        self._database = None
        self._earlier = {}  # rows of interpreters before this one, by session and line
        # How many bytes may be written until the length of the file is checked.
        self._may_be_left = -1
        super().__init__(shell=shell, parent=shell, hist_file=":memory:", db_log_output=True)
        # IPython does not store `exit`; the line numbers of what follows would then be wrong.
        self._exit_re = re.compile(r"(?!)")

    def begin(self):
        """The session's own history, in its own process."""
        if "CELLKEEP_SESSION_ID" in os.environ:
            self.file_name = os.path.join(tempfile.gettempdir(), ".cellkeep_history")
        self.dir_hist[:] = [os.getcwd()]
        self._earlier = self._read_rows()
        self.new_session()

    def forget_cells(self):
        """Forgets the cells that were run since begin()."""
        self.input_hist_parsed[:] = [""]
        self.input_hist_raw[:] = [""]
        self.db_input_cache, self.db_output_cache = [], []
        self._i00 = self._i = self._ii = self._iii = ""
        self._may_be_left = -1
        for results in (self.output_hist, self.output_hist_reprs, *kept_outputs(self)):
            results.clear()

    @property
    def db(self):
        if self._database is None:
            super().init_db()
            self._fill(self._database)
        return self._database

    @db.setter
    def db(self, database):
        self._database = database

    def init_db(self):
        pass  # See db.

    def close(self):
        if self._database is not None:
            super().close()

    def new_session(self, conn=None):
        if conn is not None or self._database is not None:
            super().new_session(conn)
            return
        self._started = datetime.now().isoformat(" ")
        self.session_number = max((session for session, _line in self._earlier), default=0) + 1

    def _fill(self, database):
        rows = self._earlier.values()
        sessions = sorted({session for session, _line in self._earlier})
        with database:
            database.executemany(
                "INSERT INTO sessions VALUES (?, ?, NULL, NULL, '')",
                [*((session, None) for session in sessions), (self.session_number, self._started)],
            )
            database.executemany("INSERT INTO history VALUES (?, ?, ?, ?)", [row[:4] for row in rows])
            database.executemany(
                "INSERT INTO output_history VALUES (?, ?, ?)",
                [(row[0], row[1], row[4]) for row in rows if row[4] is not None],
            )
        self._earlier = {}

    def _read_rows(self):
        rows = {}
        for line in self._read_lines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue  # The user's own doing, or the last line of an interpreter that was killed.
            if _is_row(row):
                rows[row[0], row[1]] = row
        return rows

    def _read_lines(self):
        if self.file_name is None:
            return []
        try:
            with open(self.file_name, "rb", opener=_open_private) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - FILE_BYTES_MAX))
                return file.read(FILE_BYTES_MAX).splitlines()
        except OSError:
            return []  # There is none yet, or the user has taken it away.

    def keep(self, line_number):
        """After a cell that was stored: writes its row to the file."""
        if self.file_name is None:
            return
        row = [
            self.session_number,
            line_number,
            self.input_hist_parsed[-1],
            self.input_hist_raw[-1],
            self.output_hist_reprs.get(line_number),
        ]
        data = json.dumps(row).encode("ascii") + b"\n"
        try:
            # After every cell, so without the five system calls that a file object makes on its own.
            file = _open_private(self.file_name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                self._may_be_left -= os.write(file, data)
                if self._may_be_left < 0:
                    self._may_be_left = FILE_BYTES_MAX - os.fstat(file).st_size
            finally:
                os.close(file)
            if self._may_be_left < 0:
                self._cut()
        except OSError:
            pass  # A full or read-only directory costs the history of this cell, not the cell.

    def _cut(self):
        lines = self._read_lines()
        kept, size = [], 0
        for line in reversed(lines):
            size += len(line) + 1
            if size > FILE_BYTES_MAX // 2:
                break
            kept.append(line)
        with open(self.file_name, "wb", opener=_open_private) as file:
            file.writelines(line + b"\n" for line in reversed(kept))


def _open_private(path, flags):
    # The user may put a symbolic link or a fifo in its place. That harms only this session, but it
    # must not make the kernel wait.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
