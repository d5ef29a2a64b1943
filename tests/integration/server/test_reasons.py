# SPDX-License-Identifier: Apache-2.0
"""Every limit ends in its own reason: in the answer, with the numbers, and in the server's log."""

import ast

import pytest

from harness import Server, Session, wait_until
from modes import has

pytestmark = pytest.mark.both_modes

FILL = "with open('{}', 'wb') as f:\n    while True: f.write(bytes(1 << 20)); f.flush()"
MANY_FILES = "import os\nos.chdir('{}')\nfor n in range(10**6): open(str(n), 'x').close()"
CALL = (
    "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "if libc.{} == -1:\n    n = ctypes.get_errno(); raise OSError(n, os.strerror(n))"
)


@pytest.mark.parametrize(
    ("code", "status", "kind", "words"),
    [
        (FILL.format("/workspace/big"), "disk_full", "disk_full", ["/workspace", "16 MB"]),
        (FILL.format("/tmp/big"), "disk_full", "disk_full", ["/tmp is full", "100 MB"]),
        (FILL.format("/dev/shm/big"), "disk_full", "disk_full", ["/dev/shm", "64 MB"]),
        (MANY_FILES.format("/workspace"), "disk_full", "disk_full", ["another file", "20000"]),
        (MANY_FILES.format("/tmp"), "disk_full", "disk_full", ["another file", "10000"]),
        ("k = [open('/dev/null') for _ in range(2000)]", "error", "too_many_open_files", ["1024"]),
        ("open('f', 'wb').truncate(5 << 30)", "error", "file_too_large", ["4096 MB"]),
        (
            "import threading\ngo = threading.Event()\ntry:\n"
            "    while True: threading.Thread(target=go.wait).start()\nfinally: go.set()",
            "error",
            "too_many_processes",
            ["32"],
        ),
        ("raise MemoryError", "oom", "oom", ["512 MB", "memory_mb"]),
        ("x = bytearray(1 << 50)", "oom", "oom", ["512 MB", "memory_mb"]),
        (CALL.format("unshare(0x10000000)"), "denied", "forbidden", ["unshare"]),
        (CALL.format("ptrace(0, 0, 0, 0)"), "denied", "forbidden", ["ptrace"]),
    ],
)
def test_a_limit_is_the_reason(
    server: Server, code: str, status: str, kind: str, words: list[str]
) -> None:
    session = server.create(limits={"disk_mb": 16, "processes": 32})
    result = session.execute(code)
    assert (result["status"], result["error"]["kind"]) == (status, kind), result
    said = result["error"]["message"] + " " + result["error"]["hint"]
    assert all(word in said for word in words), said
    assert result["error"]["hint"].endswith(".")
    assert result["state"] == "kept"
    check_logged(server, session, result)
    assert session.delete() == 204


def logged(server: Server, session: Session) -> str:
    lines = server.output().splitlines()
    return "\n".join(line for line in lines if " limit " in line and session.info["id"] in line)


def check_logged(server: Server, session: Session, result: dict) -> None:
    reason = f'reason="{result["error"]["kind"]}"'
    wait_until(lambda: reason in logged(server, session), 10, "a line in the log")
    assert result["id"] in logged(server, session)


@pytest.mark.parametrize(
    ("code", "limits", "status", "kind", "words"),
    [
        (
            "import time\ntime.sleep(1000)",
            {"wall_ms": 500},
            "timeout",
            "wall_timeout",
            ["0.5 s"],
        ),
        ("while True: pass", {"cpu_ms": 500}, "timeout", "cpu_timeout", ["0.5 s"]),
        (
            "blocks = []\nwhile True: blocks.append(bytearray(b'x') * (8 << 20))",
            {"memory_mb": 256},
            "oom",
            "oom",
            ["256 MB", "memory_mb"],
        ),
    ],
)
def test_a_limit_that_cuts_is_the_reason(
    server: Server, code: str, limits: dict, status: str, kind: str, words: list[str]
) -> None:
    session = server.create(limits={"wall_ms": 100_000, "cpu_ms": 100_000, **limits})
    if kind == "cpu_timeout" and not has(session, "cpu_accounting"):
        # What is not counted has no end of its own: the deadline ends it.
        assert session.delete() == 204
        session = server.create(limits={**limits, "wall_ms": 2_000})
        kind, words = "wall_timeout", ["2 s"]
    result = session.execute(code)
    assert (result["status"], result["error"]["kind"]) == (status, kind), result
    said = result["error"]["message"] + " " + result["error"]["hint"]
    assert all(word in said for word in words), said
    check_logged(server, session, result)
    assert session.delete() == 204


def test_however_little_memory_is_left_the_reason_is_told(server: Server) -> None:
    """Where nothing but RLIMIT_DATA bounds it, the interpreter lives on, and its report needs memory, too."""
    block = 8 << 20
    for left in range(0, block, 200 << 10):
        session = server.create(limits={"memory_mb": 256})
        if has(session, "memory_limit"):
            assert session.delete() == 204
            pytest.skip("a cgroup bounds it, and ends the interpreter")
        result = session.execute(
            f"before = bytearray({left})\nblocks = []\nwhile True: blocks.append(bytearray(b'x') * {block})"
        )
        assert (result["status"], result["error"]["kind"]) == ("oom", "oom"), (left, result)
        again = session.execute(f"while True: blocks.append(bytearray(b'x') * {block})")
        assert (again["status"], again["error"]["kind"]) == ("oom", "oom"), (left, again)
        assert session.value("len(blocks) > 20") == "True"
        assert session.delete() == 204


def test_a_flood_of_bytes_is_cut(server: Server) -> None:
    # The bound of a run without a budget is that of the unit tests: reaching it takes its time.
    session = server.create(limits={"total_output_bytes": 2_000_000, "wall_ms": 100_000})
    result = session.execute("text = 'x' * (1 << 18)\nwhile True: print(text)")
    assert (result["status"], result["error"]["kind"]) == ("output_limit", "output_limit"), result
    assert "total_output_bytes" in result["error"]["message"]
    check_logged(server, session, result)
    assert session.delete() == 204


@pytest.mark.both_modes(False)
def test_a_flood_of_messages_is_cut(server: Server) -> None:
    session = server.create(limits={"wall_ms": 300_000, "cpu_ms": 300_000})
    # display(1) sends the same, and takes twice as long to make it.
    code = "publish = get_ipython().display_pub.publish\nwhile True: publish({'text/plain': '1'})"
    result = session.execute(code)
    assert (result["status"], result["error"]["kind"]) == ("output_limit", "output_limit"), result
    assert "messages" in result["error"]["message"]
    check_logged(server, session, result)
    assert session.delete() == 204


def test_a_session_has_the_variables_that_were_asked_for_and_its_own(server: Server) -> None:
    session = server.create(env={"TZ": "UTC", "MY_NAME": "value with spaces=and signs"})
    names = session.value("sorted(__import__('os').environ)")
    plain = server.create()
    own = set(ast.literal_eval(plain.value("sorted(__import__('os').environ)")))
    assert set(ast.literal_eval(names)) == own | {"TZ", "MY_NAME"}
    assert session.value("__import__('os').environ['MY_NAME']") == "'value with spaces=and signs'"
    # Nothing of the server's: no token, no path, no variable of the user who started it.
    seen = plain.value("dict(__import__('os').environ)")
    assert "TOKEN" not in seen and "t0ken" not in seen
    assert session.delete() == 204 and plain.delete() == 204
