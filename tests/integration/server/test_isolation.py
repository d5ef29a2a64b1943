# SPDX-License-Identifier: Apache-2.0
"""What code in a session can see and reach, asked from inside. Each probe has a positive control."""

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from harness import Server, Session
from modes import prefix_of, states_of

pytestmark = pytest.mark.both_modes


@pytest.fixture(scope="module")
def inside(server: Server) -> Session:
    return server.create()


def attempt(session: Session, statement: str) -> str:
    """The errno's name that the statement fails with, or 'worked'."""
    code = (
        "import errno, os, socket\n"
        f"try:\n    {statement}\n    outcome = 'worked'\n"
        "except OSError as error:\n"
        "    outcome = errno.errorcode.get(error.errno, str(error))\n"
        "print(outcome)"
    )
    result = session.execute(code)
    assert result["status"] == "ok", result
    return result["stdout"].strip()


# What an ordinary user without a cgroup of their own gives up (SECURITY.md, section 10).
WITHOUT_CGROUPS = {
    "memory_limit": ("degraded", "RLIMIT_DATA"),
    "process_limit": ("degraded", "RLIMIT_NPROC"),
    "cpu_limit": ("absent", ""),
    "cpu_accounting": ("absent", ""),
    "freeze": ("absent", ""),
}


def owns_its_cgroup(mode: str) -> bool:
    """Whether that mode's user may make cgroups beneath the test's own v2 one."""
    own = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    name = next((line[3:] for line in own if line.startswith("0::")), None)
    roots = [Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")]
    root = next((one for one in roots if (one / "cgroup.controllers").exists()), None)
    if name is None or root is None:
        return False
    test = [*prefix_of(mode), "test", "-w", str(root / name.lstrip("/"))]
    return subprocess.run(test, cwd="/").returncode == 0


def test_the_report_says_what_the_mode_gives_up(mode: str, inside: Session) -> None:
    rows = {row["name"]: row for row in inside.info["isolation"]["controls"]}
    expected = {}
    if mode == "ordinary_user":
        if not owns_its_cgroup(mode):
            expected |= WITHOUT_CGROUPS
        # The user that this suite makes up has no home for an image.
        if prefix_of(mode) or rows["private_image"]["state"] != "applied":
            expected["private_image"] = ("absent", "")
    missing = states_of(inside.info["isolation"])
    assert {name: (state, rows[name]["mechanism"]) for name, state in missing.items()} == expected
    assert inside.info["isolation"]["complete"] == (not expected)
    for name in expected:
        assert rows[name]["detail"] and rows[name]["fix"], rows[name]


def test_the_guest_is_who_the_mode_says(mode: str, server: Server, inside: Session) -> None:
    # Seen from the host: as root a user of each session's own, as an ordinary user that user.
    def users(of: Session) -> set[int]:
        host = {int(Path(f"/proc/{pid}").stat().st_uid) for pid in guests_of(server, of)}
        assert len(host) == 1, host
        return host

    other = server.create()
    own = os.stat(f"/proc/{server.process.pid}").st_uid
    if mode == "root":
        assert own == 0 and 0 not in users(inside) | users(other)
        assert users(inside).isdisjoint(users(other))
    else:
        assert own != 0 and users(inside) == users(other) == {own}
    assert other.delete() == 204


def guests_of(server: Server, session: Session) -> list[int]:
    """The session's processes but pid 1, which only root may look into."""
    own = session.info["id"].encode()
    found = []
    for process in server.children():
        try:
            if own in Path(f"/proc/{process.pid}/environ").read_bytes():
                found.append(process.pid)
        except OSError:
            continue  # it belongs to pid 1, or has ended
    return found


def test_it_is_not_root_and_cannot_become_root(inside: Session) -> None:
    uids = inside.value("__import__('os').getresuid() + __import__('os').getresgid()")
    assert "0" not in uids.strip("()").split(", ")
    assert inside.value("__import__('os').getgroups()") in ("[]", str([int(uids.split(", ")[3])]))
    assert attempt(inside, "os.setuid(0)") == "EPERM"
    assert attempt(inside, "os.setgroups([0])") == "EPERM"
    assert attempt(inside, "os.getuid()") == "worked"


def test_it_has_no_capability_and_cannot_gain_any(inside: Session) -> None:
    status = inside.execute("print(open('/proc/self/status').read())")["stdout"]
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"


def test_it_has_no_network(inside: Session) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    reached = threading.Event()

    def accept() -> None:
        try:
            listener.accept()
            reached.set()
        except OSError:
            return  # Closed below.

    threading.Thread(target=accept, daemon=True).start()
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        assert reached.wait(5)  # The control: from outside it is reachable.
    connect = f"socket.create_connection(('127.0.0.1', {port}), timeout=3)"
    assert attempt(inside, connect) != "worked"
    assert attempt(inside, "socket.create_connection(('1.1.1.1', 53), timeout=3)") != "worked"
    assert attempt(inside, "socket.getaddrinfo('example.org', 80)") != "worked"
    names = inside.execute("print(open('/proc/net/dev').read())")
    if names["status"] == "ok":
        interfaces = [line.split(":")[0].strip() for line in names["stdout"].splitlines()[2:]]
        assert set(interfaces) <= {"lo"}
    listener.close()


def test_the_root_is_read_only_and_the_workspace_is_not(inside: Session) -> None:
    for path in ("/x", "/etc/x", "/usr/x", "/opt/x", "/dev/x", "/proc/x"):
        assert attempt(inside, f"open('{path}', 'w')") in ("EROFS", "EACCES", "ENOENT", "EPERM")
    for path in ("x", "/workspace/y", "/tmp/z"):
        assert attempt(inside, f"open('{path}', 'w')") == "worked"
    assert inside.value("__import__('os').getcwd()") == "'/workspace'"


@pytest.mark.parametrize("path", ["/root", "/var/log", "/sys/fs/cgroup", "/boot", "/etc/shadow"])
def test_the_host_is_not_there(inside: Session, path: str) -> None:
    assert attempt(inside, f"os.listdir('{path}') or os.stat('/nothing')") != "worked"
    assert attempt(inside, f"open('{path}')") != "worked"


def test_no_file_of_the_host_says_who_runs_the_server(server: Server, inside: Session) -> None:
    state = str(server.state_dir)
    assert attempt(inside, f"os.stat({state!r})") == "ENOENT"
    assert attempt(inside, f"open({inside.info['connection_file']!r})") == "ENOENT"
    mounts = inside.execute("print(open('/proc/self/mountinfo').read())")["stdout"]
    assert state not in mounts


def test_its_environment_is_minimal(inside: Session) -> None:
    names = set(eval(inside.value("sorted(__import__('os').environ)")))
    assert "CELLKEEP_TOKEN" not in names
    assert {name for name in names if "TOKEN" in name or "KEY" in name or "SSH" in name} == set()
    assert len(names) < 25, names
    assert inside.value("__import__('os').environ['HOME']").strip("'").startswith(
        ("/workspace", "/tmp", "/home")
    )


def test_proc_shows_only_its_own_processes(inside: Session) -> None:
    pids = eval(inside.value("[int(p) for p in __import__('os').listdir('/proc') if p.isdigit()]"))
    assert len(pids) <= 5
    assert int(inside.value("__import__('os').getpid()")) in pids
    assert max(pids) < 1000
    assert attempt(inside, "os.kill(1, 9)") != "worked" or inside.value("1") == "1"


@pytest.mark.parametrize(
    "call",
    [
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "libc.unshare(0x10000000)",
        "libc.ptrace(16, 1, 0, 0)",
        "libc.syscall(321, 5, 0, 0)",  # bpf
        "libc.syscall(250, 0, 0, 0)",  # keyctl
        "libc.syscall(425, 1, 0)",  # io_uring_setup
        "libc.chroot(b'/tmp')",
        "libc.setns(0, 0)",
        "libc.sethostname(b'x', 1)",
        "libc.swapon(b'/tmp/x', 0)",
        "libc.reboot(0)",
    ],
)
def test_system_calls_it_has_no_use_for_are_refused(inside: Session, call: str) -> None:
    result = inside.execute(
        f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n{call}, ctypes.get_errno()"
    )
    assert result["status"] == "ok", result
    outcome, number = eval(result["result"]["text/plain"])
    assert outcome == -1
    assert number in (1, 13, 38), number  # EPERM, EACCES, ENOSYS
    assert inside.value("libc.getpid() == __import__('os').getpid()") == "True"


def test_it_cannot_hold_more_descriptors_or_memory_than_it_may(inside: Session) -> None:
    limits = inside.value(
        "__import__('resource').getrlimit(__import__('resource').RLIMIT_CORE)"
    )
    assert limits == "(0, 0)"


def test_sessions_cannot_reach_one_another(server: Server, inside: Session) -> None:
    other = server.create()
    inside.execute(
        "import socket\nlistener = socket.socket(socket.AF_UNIX)\n"
        "try:\n    listener.bind('\\0between'); listener.listen()\n"
        "except OSError: pass"
    )
    connect = "socket.socket(socket.AF_UNIX).connect('\\0between')"
    assert attempt(other, connect) != "worked"
    assert attempt(other, "os.stat('/tmp/z')") == "ENOENT"
    assert other.delete() == 204
