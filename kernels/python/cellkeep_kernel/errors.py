# SPDX-License-Identifier: Apache-2.0
"""Says of an exception what kind it is and where in the submitted code it arose."""

import errno
import linecache
import os

from .cells import dropped_lines

# How far back an error is followed to the one that it was raised from.
CHAIN_MAX = 8
# Where a session can write, and what is left there when it is full.
DISKS = ("/workspace", "/tmp", "/dev/shm")
FULL_BYTES = 64 * 1024


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
    # CPython before 3.11 has no columns.
    positions = list(getattr(frame.f_code, "co_positions", tuple)())
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


def _system_error(error):
    """{"errno"} of the system call that failed, and of a full disk which one: {"full", "inodes"}."""
    for _ in range(CHAIN_MAX):
        if error is None:
            return {}
        if isinstance(error, OSError) and isinstance(error.errno, int):
            break
        error = error.__cause__ or error.__context__
    else:
        return {}
    found = {"errno": error.errno}
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        found.update(_full_disk(error.filename))
    return found


def _full_disk(name):
    for path in DISKS:
        try:
            state = os.statvfs(path)
        except OSError:
            continue
        if state.f_files and not state.f_favail:
            return {"full": path, "inodes": True}
        if state.f_bavail * state.f_frsize < FULL_BYTES:
            return {"full": path, "inodes": False}
    if isinstance(name, str):
        # It is full no longer, but the error says where it happened.
        name = os.path.abspath(name)
        for path in DISKS:
            if name.startswith(path + "/"):
                return {"full": path, "inodes": False}
    return {}


def describe(error, file_name, line_offset):
    """{"kind", "line", "column"}; line and column are 1-based in the submitted code, or None.

    And what _system_error says, if a system call failed.
    """
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
    return {"kind": _kind(error), "line": line, "column": column, **_system_error(error)}
