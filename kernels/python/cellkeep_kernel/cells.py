# SPDX-License-Identifier: Apache-2.0
"""The file names that cells are compiled under.

A name is made from the cell's text alone, by a hash that front ends know (debugInfo's hashMethod), so
that a breakpoint set in a cell finds the code, also when the cell ran before the debugger was started.
The files exist only for cells that a debugger has asked for (dumpCell).
"""

import os
import shutil
import tempfile

SUFFIX = ".py"


class CellFiles:
    def __init__(self, hash_bytes):
        """hash_bytes: bytes to an integer."""
        self._hash = hash_bytes
        self.prefix = None

    def begin(self):
        """In the session's own process, before its first cell."""
        # Once: user code may change TMPDIR, and front ends keep the prefix.
        folder = os.path.join(tempfile.gettempdir(), f"cellkeep_{os.getpid()}")
        self.prefix = folder + os.sep

    def name_of(self, code):
        return f"{self.prefix}{self._hash(code.encode('utf-8', 'replace'))}{SUFFIX}"

    def write(self, code):
        """Make the file of a cell. Returns its name."""
        name = self.name_of(code)
        os.makedirs(self.prefix, mode=0o700, exist_ok=True)
        with open(name, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(code)
        return name

    def remove(self):
        shutil.rmtree(self.prefix, ignore_errors=True)


def dropped_lines(lines):
    """How many leading lines of a cell have to go before IPython can read it.

    IPython itself drops all blank ones, and then every line number it tells is wrong by that many. Only
    a cell magic has to come first.
    """
    for number, line in enumerate(lines):
        if line.strip():
            return number if line.startswith("%%") else 0
    return 0


def drop_lines(lines):
    """In place of IPython's leading_empty_lines."""
    return lines[dropped_lines(lines) :]
