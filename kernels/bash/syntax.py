# SPDX-License-Identifier: Apache-2.0
"""Whether code is bash, as bash itself says without running it."""

import os
import re
import subprocess

BASH = "/usr/bin/bash"
# Simple commands without quotes, expansions or operators: nothing in them can be wrong.
PLAIN = re.compile(r"[A-Za-z0-9_./:@%+, =-]*\n?")
RESERVED = re.compile(
    r"\b(if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|in|coproc)\b"
)
ERROR = re.compile(r"^[^\n]*?line (\d+): (.*)$")
UNFINISHED = ("unexpected end of file", "unexpected EOF while looking for")
OPEN_DOCUMENT = "delimited by end-of-file"


class Finding:
    """status as in Jupyter's is_complete; what is wrong, and in which line."""

    def __init__(self, status, message="", line=None):
        self.status = status
        self.message = message
        self.line = line


def check(code):
    if PLAIN.fullmatch(code) and not RESERVED.search(code):
        return Finding("complete")
    cell = os.memfd_create("cell")
    try:
        os.pwrite(cell, code.encode("utf-8", "replace"), 0)
        # extglob: what a shell with it takes, which is nearly all that one without it takes.
        checked = subprocess.run(
            [BASH, "--norc", "-O", "extglob", "-n", f"/proc/self/fd/{cell}"],
            pass_fds=(cell,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(cell)
    return judge(code, checked.returncode, checked.stderr.decode("utf-8", "replace"))


def judge(code, status, stderr):
    """What bash -n has said of code."""
    first = stderr.split("\n", 1)[0]
    match = ERROR.match(first)
    message = match[2] if match else first.partition(": ")[2]
    line = int(match[1]) if match else None
    if line is not None:
        # bash reports an end that came too soon on the line after the last one.
        line = max(1, min(line, code.rstrip("\n").count("\n") + 1))
    if status != 0:
        unfinished = any(text in stderr for text in UNFINISHED)
        return Finding("incomplete" if unfinished else "invalid", message, line)
    if OPEN_DOCUMENT in stderr or ends_with_backslash(code):
        return Finding("incomplete")
    return Finding("complete")


def ends_with_backslash(code):
    last = code.removesuffix("\n")
    return (len(last) - len(last.rstrip("\\"))) % 2 == 1
