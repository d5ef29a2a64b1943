# SPDX-License-Identifier: Apache-2.0
"""A host that lacks something: `withhold.py WORD … -- COMMAND …` runs the command without it.

`CALL=ERRNO` is a system call that answers so, `CALL=ERRNO/INDEX&BITS` one with all of these bits in
that argument, `CALL=ERRNO/INDEX:VALUE` one with that argument; `cover=PATH` puts an empty directory
over a path, in a mount namespace of the command's. Whatever the command starts lives in the same
host. It takes root.
"""

import ctypes
import errno
import os
import subprocess
import sys

ALLOW = 0x7FFF0000
MASKED_EQUAL = 7
NO_NEW_PRIVILEGES = 3  # SCMP_FLTATR_CTL_NNP


class Comparison(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    ]


def refuse_calls(words: list[str]) -> None:
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ALLOW))
    # Root needs none, and what is found inside a session would be this one.
    assert library.seccomp_attr_set(context, NO_NEW_PRIVILEGES, 0) == 0
    for word in words:
        call, _, answer = word.partition("=")
        name, _, argument = answer.partition("/")
        compared = []
        if ":" in argument:
            index, _, value = argument.partition(":")
            compared = [Comparison(int(index), MASKED_EQUAL, 0xFFFFFFFF, int(value, 0))]
        elif argument:
            index, _, bits = argument.partition("&")
            compared = [Comparison(int(index), MASKED_EQUAL, int(bits, 0), int(bits, 0))]
        number = library.seccomp_syscall_resolve_name(call.encode())
        assert number >= 0, call
        refuse = 0x00050000 | getattr(errno, name)
        rows = (Comparison * len(compared))(*compared)
        added = library.seccomp_rule_add_array(context, refuse, number, len(compared), rows)
        assert added == 0, word
    assert library.seccomp_load(context) == 0


def cover(paths: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(0x00020000) == 0
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for path in paths:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", path], check=True)


def main() -> None:
    end = sys.argv.index("--")
    words, command = sys.argv[1:end], sys.argv[end + 1 :]
    covered = [word[6:] for word in words if word.startswith("cover=")]
    if covered:
        cover(covered)
    calls = [word for word in words if not word.startswith("cover=")]
    if calls:
        refuse_calls(calls)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
