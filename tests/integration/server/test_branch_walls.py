# SPDX-License-Identifier: Apache-2.0
"""The walls between a session and its branches, and those that they do without (SECURITY.md, section 18)."""

from collections.abc import Iterator

import pytest

from branches import ask_branches, branch, create, items
from checkpoints import PATIENCE_SECONDS, checkpoint, run
from harness import Server, Session, wait_until
from modes import has

pytestmark = pytest.mark.both_modes


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    created = create(server)
    yield created
    assert created.delete() in (204, 404, 410)

# What a process sees of others, by the names that it gives them.
OTHERS = """
import os
def others(name):
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if open(f'/proc/{pid}/comm').read().strip() == name:
                found.append(int(pid))
        except OSError:
            pass
    return found
def call_myself(name):
    __import__('ctypes').CDLL(None).prctl(15, name.encode())
"""


def test_a_branch_sees_neither_its_parent_nor_its_siblings(session: Session) -> None:
    run(session, OTHERS + "call_myself('parent')")
    one, other = (session.server.adopt(item["session"]) for item in items(session, count=2))
    try:
        run(one, "call_myself('one'); import socket; s = socket.socket(); s.bind(('127.0.0.1', 5555)); s.listen()")
        run(one, "a = socket.socket(socket.AF_UNIX); a.bind('\\0name'); a.listen(); open('/tmp/t', 'w').close()")
        run(other, "call_myself('other')")
        assert one.value("others('one') == [os.getpid()]") == "True"  # it would see them
        for name in ("parent", "other"):
            assert one.value(f"others('{name}')") == "[]"
        assert other.value("others('parent'), others('one')") == "([], [])"
        # Nothing of its network, its memory shared by name, or its files.
        run(other, "import socket; s = socket.socket(); s.bind(('127.0.0.1', 5555))")
        for socket in ("socket.AF_UNIX, '\\0name'", "socket.AF_INET, ('127.0.0.1', 5555)"):
            family, address = socket.split(", ", 1)
            for asker in (session, other):
                refused = asker.execute(f"import socket; socket.socket({family}).connect({address})")
                assert refused["error"]["name"] == "ConnectionRefusedError", refused
        assert other.value("os.path.exists('/tmp/t')") == "False"
        assert session.value("os.path.exists('/tmp/t')") == "False"
        # All signals that it can send reach its own.
        run(one, "import signal, subprocess; child = subprocess.Popen(['sleep', '1000'])")
        run(one, "os.kill(-1, signal.SIGTERM)")
        assert one.value("child.wait()") == "-15"
        assert other.value("1 + 1") == "2" and session.value("1 + 1") == "2"
    finally:
        one.delete()
        other.delete()


def test_a_branch_has_no_capability_and_the_whole_filter(session: Session) -> None:
    other = branch(session)
    try:
        look = (
            "print([line for line in open('/proc/self/status')"
            " if line.startswith(('Cap', 'Seccomp', 'NoNewPrivs', 'Uid', 'Gid'))])"
        )
        assert run(other, look)["stdout"] == run(session, look)["stdout"]
        assert "CapBnd:\\t0000000000000000" in run(other, look)["stdout"]
        code = "import ctypes; c = ctypes.CDLL(None, use_errno=True); print({}, ctypes.get_errno())"
        for call in ("c.unshare(0x10000000)", "c.setns(0, 0)", "c.mount(b'a', b'/tmp', b'tmpfs', 0, None)"):
            assert run(other, code.format(call))["stdout"] == "-1 1\n", call
        # Neither can it write where its parent cannot.
        for path in ("/etc/x", "/x", "/proc/self/oom_score_adj"):
            assert other.execute(f"open('{path}', 'w')")["status"] in ("error", "denied")
        run(other, "open('/tmp/x', 'w').close(); open('/dev/shm/x', 'w').close(); open('x', 'w').close()")
    finally:
        other.delete()


def test_what_was_open_is_the_branchs_own(session: Session) -> None:
    run(
        session,
        "import mmap, os\n"
        "f = open('data', 'w+b'); f.write(b'p' * 8192); f.flush()\n"
        "m = mmap.mmap(f.fileno(), 8192); gone = open('gone', 'w+b'); os.unlink('gone')\n"
        "d = os.open('.', os.O_RDONLY); t = open('/tmp/t', 'w+b')\n",
    )
    other = branch(session)
    try:
        run(other, "m[0:3] = b'mmm'; os.pwrite(f.fileno(), b'bbb', 4096); gone.write(b'x'); gone.flush()")
        run(other, "os.close(os.open('by-directory', os.O_CREAT | os.O_RDWR, dir_fd=d)); t.write(b'x'); t.flush()")
        assert other.value("bytes(m[0:4]), os.pread(f.fileno(), 4, 4096), os.listdir()") == (
            "(b'mmmp', b'bbbp', ['by-directory', 'data'])"
        )
        assert session.value("bytes(m[0:4]), os.pread(f.fileno(), 4, 4096), os.listdir()") == (
            "(b'pppp', b'pppp', ['data'])"
        )
        assert session.value("os.fstat(gone.fileno()).st_size, os.fstat(t.fileno()).st_size") == "(0, 0)"
    finally:
        other.delete()


def test_a_session_is_over_its_branches(session: Session) -> None:
    """What is not promised, with its direction: the walls of a branch do not hold against those above."""
    run(session, OTHERS)
    other = branch(session)
    try:
        run(other, "call_myself('branch'); open('own', 'w').write('secret')")
        # It sees them …
        assert session.value("len(others('branch'))") == "1"
        # … and can end them; the branch goes on with a fresh interpreter, and its files.
        run(session, "os.kill(others('branch')[0], 9)")
        wait_until(lambda: other.fetch()["restarts"] == 1, PATIENCE_SECONDS, "restarted")
        wait_until(lambda: other.fetch()["state"] == "idle", PATIENCE_SECONDS, "idle")
        assert other.value("open('own').read()") == "'secret'"
        assert other.execute("others")["error"]["name"] == "NameError"
    finally:
        other.delete()


def test_limits_hold_for_each_and_all_are_counted(server: Server) -> None:
    parent = create(server, limits={"processes": 12, "memory_mb": 256})
    try:
        if not has(parent, "process_limit") or not has(parent, "memory_limit"):
            pytest.skip("this host gives this user no cgroup to limit a session with")
        run(parent, "data = bytearray(100 << 20); data[::4096] = b'x' * len(data[::4096])")
        made = checkpoint(parent, label="filled")
        one, other = (
            server.adopt(item["session"]) for item in items(parent, **{"from": made["id"], "count": 2})
        )
        try:
            # What it changes is charged to it, and to no other.
            run(one, "data[::4096] = b'y' * len(data[::4096]); more = bytearray(100 << 20)")
            dead = run(one, "print(len(data))") and one.execute(
                "more[::4096] = b'z' * len(more[::4096]); rest = bytearray(150 << 20); rest[::4096] = b'z' * len(rest[::4096])"
            )
            assert dead["status"] == "oom", dead
            forks = run(
                other,
                "import os\n"
                "started = 0\n"
                "try:\n"
                "    while True:\n"
                "        if os.fork() == 0:\n"
                "            while True: __import__('time').sleep(1000)\n"
                "        started += 1\n"
                "except OSError: pass\n"
                "print(started)",
            )
            assert 0 < int(forks["stdout"]) <= 12
            # The others notice nothing.
            assert parent.value("len(data), data[0]") == "(104857600, 120)"
            run(parent, "import subprocess; subprocess.run(['true'], check=True)")
            # What is left of the parent keeps its place, and what it is charged for.
            assert parent.delete() == 204
            assert other.value("data[4096]") == "120"
        finally:
            one.delete()
            other.delete()
    finally:
        parent.delete()


def test_code_that_does_not_leave_costs_no_one_else(session: Session) -> None:
    """The kernel's own half, broken: the fork of the copy stays, or lies, and there is no branch."""
    run(session, "import os; os.register_at_fork(before=lambda: None)")
    made = checkpoint(session)
    run(
        session,
        "import os, signal\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    if int(pid) not in (1, os.getpid()): os.kill(int(pid), signal.SIGSTOP)",
    )
    refused = ask_branches(session, **{"from": made["id"]})
    assert refused.status_code == 201
    (item,) = refused.json()["branches"]
    assert item["error"]["status"] in (409, 410, 504), item
    assert session.value("6 * 7") == "42"
    again = branch(session)
    assert again.value("6 * 7") == "42"
    again.delete()


def test_a_parent_that_branches_and_ends_leaves_nothing(server: Server) -> None:
    for _ in range(3):
        parent = create(server)
        run(parent, "x = 1")
        others = [server.adopt(item["session"]) for item in items(parent, count=2)]
        assert parent.delete() == 204
        assert [one.value("x") for one in others] == ["1", "1"]
        for one in others:
            assert one.delete() == 204
    # The places are free again: the harness looks for processes and cgroups at the end.
    session = create(server)
    assert session.value("1") == "1"
    session.delete()
