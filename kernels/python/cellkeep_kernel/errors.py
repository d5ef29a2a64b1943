# SPDX-License-Identifier: Apache-2.0
"""Says of an exception what kind it is and where in the submitted code it arose."""

import linecache

from .cells import dropped_lines


def _kind(error):
    if isinstance(error, SyntaxError):
        return "syntax"
    if isinstance(error, ImportError):
        return "import"
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, KeyboardInterrupt):
        return "interrupt"
    return "runtime"


def _column(frame, last_instruction, file_name, line):
    """1-based column in code points of the instruction, or None."""
    positions = list(frame.f_code.co_positions())
    index = last_instruction // 2
    if not 0 <= index < len(positions):
        return None
    start_line, _end_line, offset, _end_offset = positions[index]
    if offset is None or start_line != line:
        return None
    text = linecache.getline(file_name, line).encode("utf-8")
    return len(text[:offset].decode("utf-8", "ignore")) + 1


def _innermost(traceback, file_name):
    found = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file_name:
            found = traceback
        traceback = traceback.tb_next
    return found


def removed_lines(code):
    """How many leading lines of the submitted code are not compiled."""
    return dropped_lines(code.splitlines())


def describe(error, file_name, line_offset):
    """{"kind", "line", "column"}; line and column are 1-based in the submitted code, or None."""
    line = column = None
    if isinstance(error, SyntaxError) and error.filename == file_name:
        line, column = error.lineno, error.offset
    else:
        place = _innermost(error.__traceback__, file_name)
        if place is not None:
            line = place.tb_lineno
            column = _column(place.tb_frame, place.tb_lasti, file_name, line)
    if line is not None:
        line += line_offset
    if column is not None and column < 1:
        column = None
    return {"kind": _kind(error), "line": line, "column": column}
