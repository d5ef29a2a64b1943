# SPDX-License-Identifier: Apache-2.0
"""What was run, for history_request and %history: IPython's manager over a database in memory.

No thread saves it. In a session, whose temporary directory is its own, each cell is also appended to a
file there, so that a fresh interpreter of the same session still knows what the ones before it ran.
"""

import json
import os
import re
import tempfile

from IPython.core.history import HistoryManager

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
    def __init__(self, shell):
        self._file_name = None
        super().__init__(shell=shell, parent=shell, hist_file=":memory:", db_log_output=True)
        # IPython does not store `exit`; the line numbers of what follows would then be wrong.
        self._exit_re = re.compile(r"(?!)")

    def begin(self):
        """The session's own history, in its own process: a database is not for two (sqlite3)."""
        if "CELLKEEP_SESSION_ID" in os.environ:
            self._file_name = os.path.join(tempfile.gettempdir(), ".cellkeep_history")
        self.dir_hist[:] = [os.getcwd()]
        self.db.close()
        self.init_db()
        self.new_session()

    def new_session(self, conn=None):
        conn = self.db if conn is None else conn
        if self._file_name is not None and conn.execute("SELECT 1 FROM sessions").fetchone() is None:
            self._load(conn)
        super().new_session(conn)

    def _load(self, conn):
        rows = {}
        for line in self._read_lines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue  # The user's own doing, or the last line of an interpreter that was killed.
            if _is_row(row):
                rows[row[0], row[1]] = row
        with conn:
            conn.executemany(
                "INSERT INTO sessions VALUES (?, NULL, NULL, NULL, '')",
                [(session,) for session in sorted({session for session, _line in rows})],
            )
            conn.executemany(
                "INSERT INTO history VALUES (?, ?, ?, ?)", [row[:4] for row in rows.values()]
            )
            conn.executemany(
                "INSERT INTO output_history VALUES (?, ?, ?)",
                [(row[0], row[1], row[4]) for row in rows.values() if row[4] is not None],
            )

    def _read_lines(self):
        try:
            with open(self._file_name, "rb", opener=_open_private) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - FILE_BYTES_MAX))
                return file.read(FILE_BYTES_MAX).splitlines()
        except OSError:
            return []  # There is none yet, or the user has taken it away.

    def keep(self, line_number):
        """After a cell that was stored: its row goes to the file."""
        if self._file_name is None:
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
            file = _open_private(self._file_name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                os.write(file, data)
                size = os.lseek(file, 0, os.SEEK_CUR)
            finally:
                os.close(file)
            if size > FILE_BYTES_MAX:
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
        with open(self._file_name, "wb", opener=_open_private) as file:
            file.writelines(line + b"\n" for line in reversed(kept))


def _open_private(path, flags):
    # A symbolic link or a fifo in its place is the user's joke on nobody but the user; it must not
    # make the kernel wait.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
