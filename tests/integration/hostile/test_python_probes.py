# SPDX-License-Identifier: Apache-2.0
"""What an attacker's Python finds in a session: nothing of the host, of the server, of the keys.

One case per question. Each is a program that prints one line; outside the same program must print
something else, the positive control. A control runs as root on the host: it may only look, or name
what does not exist.
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacker import Attacker, call_number, probe_program, python_outside

# A try that prints the errno's name, and libc by its numbers.
HELPERS = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def name_of(error):
    return errno.errorcode.get(error.errno, str(error)) if isinstance(error, OSError) else repr(error)
def attempt(call):
    try:
        call()
        return 'ok'
    except (OSError, OverflowError) as error:
        return name_of(error)
def said(result):
    return 'ok' if result >= 0 else errno.errorcode[ctypes.get_errno()]
def in_child(call):
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write_end, str(call()).encode())
        os._exit(0)
    os.close(write_end)
    word = os.read(read_end, 100).decode()
    os.close(read_end)
    os.waitpid(pid, 0)
    return word
"""

# question: (program, what it prints inside, what it prints outside; !X is anything but X)
CASES: dict[str, tuple[str, str, str]] = {
    "socket families": (
        "import socket\n"
        "print(sorted({f for f in range(1, 46) for t in (1, 2, 5)\n"
        "    if attempt(lambda: socket.socket(f, t).close()) == 'ok'}))",
        "[1, 2, 10]",
        "![1, 2, 10]",
    ),
    "socket families in a pair": (
        "import socket\n"
        "print([attempt(lambda: [s.close() for s in socket.socketpair(f)]) for f in (1, 2, 16)])",
        "['ok', 'EPERM', 'EPERM']",
        "!['ok', 'EPERM', 'EPERM']",
    ),
    "raw and packet sockets": (
        "import socket\n"
        "print([attempt(lambda: socket.socket(*what).close())\n"
        "    for what in ((2, 3, 1), (2, 3, 255), (10, 3, 58), (17, 3, 0), (1, 3, 0))])",
        "['EPERM', 'EPERM', 'EPERM', 'EPERM', 'EPERM']",
        "['ok', 'ok', 'ok', 'ok', 'ok']",
    ),
    "a thread is behind the same filter": (
        "import threading\nwords = []\n"
        "thread = threading.Thread(target=lambda: words.append(said(libc.unshare(0x04000000))))\n"
        "thread.start(); thread.join(); print(words)",
        "['EPERM']",
        "['ok']",
    ),
    "a program from a memfd is behind the same wall": (
        "import subprocess\n"
        "memory = os.memfd_create('program', 0)\n"
        "os.write(memory, open(PROBE, 'rb').read())\n"
        "print(subprocess.run([f'/proc/self/fd/{memory}', 'unshare', '0x04000000'],\n"
        "    pass_fds=[memory], capture_output=True, text=True).stdout.strip())",
        "EPERM",
        "ok",
    ),
    "a program without a file name is not started": (
        "memory = os.memfd_create('program', 0)\n"
        "os.write(memory, open(PROBE, 'rb').read())\n"
        "read_end, write_end = os.pipe()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os.dup2(write_end, 1)\n"
        "    words = (ctypes.c_char_p * 4)(b'probe', b'unshare', b'0x04000000', None)\n"
        "    libc.syscall(EXECVEAT, memory, b'', words, (ctypes.c_char_p * 1)(None), 0x1000)\n"
        "    os.write(1, said(-1).encode())\n"
        "    os._exit(1)\n"
        "os.close(write_end); os.waitpid(pid, 0); print(os.read(read_end, 100).decode().strip())",
        "ENOSYS",
        "ok",
    ),
    "ptrace by ctypes": (
        "print(in_child(lambda: said(libc.ptrace(0, 0, 0, 0))))",
        "EPERM",
        "ok",
    ),
    "the parent cannot be traced": (
        "print(in_child(lambda: said(libc.ptrace(0x4206, os.getppid(), 0, 0))))",
        "EPERM",
        "ok",
    ),
    "keyctl by ctypes": (
        "print(said(libc.syscall(KEYCTL, 0, -3, 0, 0, 0)))",
        "EPERM",
        "ok",
    ),
    "its memory cannot be read by another of its processes": (
        "print(in_child(lambda: attempt(lambda: open(f'/proc/{os.getppid()}/mem', 'rb+'))))",
        "EROFS",
        "ok",
    ),
    "only its own processes are there": (
        "pids = [int(p) for p in os.listdir('/proc') if p.isdigit()]\n"
        "print(1 in pids, os.getpid() in pids,\n"
        "    all(os.stat(f'/proc/{p}').st_uid == os.getuid() for p in pids))",
        "False True True",
        "!False True True",
    ),
    "no process answers a signal but its own": (
        "me = ({int(p) for p in os.listdir('/proc') if p.isdigit()} | {1}) - {BYSTANDER}\n"
        "print([p for p in (*range(2, 6000), BYSTANDER)\n"
        "    if p not in me and attempt(lambda: os.kill(p, 0)) == 'ok'])",
        "[]",
        "![]",
    ),
    "a process group or session of others is not there": (
        "print(attempt(lambda: os.killpg(BYSTANDER, 0)), attempt(lambda: os.getsid(BYSTANDER)))",
        "ESRCH ESRCH",
        "ok ok",
    ),
    "typing into a terminal by its own input": (
        "import fcntl\n"
        "print([attempt(lambda: fcntl.ioctl(0, n, b'x')) for n in (0x5412, 0x541C)])",
        "['EPERM', 'EPERM']",
        "!['EPERM', 'EPERM']",
    ),
    "no terminal can be had": (
        "print(attempt(os.openpty), attempt(lambda: open('/dev/tty')), os.isatty(0))",
        "ENOENT ENOENT False",
        "!ENOENT ENOENT False",
    ),
    "its working directory is inside": (
        "print(os.getcwd(), os.path.realpath('/proc/self/cwd'), os.readlink('/proc/self/root'))",
        "/workspace /workspace /",
        "/tmp /tmp /",
    ),
    "no descriptor leads to a directory": (
        "import stat\n"
        "print([attempt(lambda: os.stat(f'/proc/self/fd/{fd}/..')) for fd in\n"
        "    sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1]\n"
        "    if attempt(lambda: os.stat(f'/proc/self/fd/{fd}/..')) not in ('ENOTDIR', 'ENOENT')])",
        "[]",
        "['ok']",
    ),
    "two processes of it share no group with the host": (
        "print(os.getresuid(), os.getresgid(), os.getgroups() in ([], [1000], [65534]))",
        "(1000, 1000, 1000) (1000, 1000, 1000) True",
        "!(1000, 1000, 1000) (1000, 1000, 1000) True",
    ),
    "capabilities": (
        "status = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().splitlines())\n"
        "print({int(status['Cap' + s], 16) for s in ('Inh', 'Prm', 'Eff', 'Bnd', 'Amb')},\n"
        "    status['NoNewPrivs'], status['Seccomp'])",
        "{0} 1 2",
        "!{0} 1 2",
    ),
    "groups are denied for good": (
        "print(open('/proc/self/setgroups').read().strip())",
        "deny",
        "allow",
    ),
    "one user is mapped": (
        "print(*[(len(l), l[0].split()[0], l[0].split()[2]) for l in\n"
        "    (open(f'/proc/self/{n}_map').read().splitlines() for n in ('uid', 'gid'))])",
        "(1, '1000', '1') (1, '1000', '1')",
        "!(1, '1000', '1') (1, '1000', '1')",
    ),
    "a process cannot write to its own files in /proc": (
        "print([attempt(lambda: open(f'/proc/self/{n}', 'w')) for n in\n"
        "    ('oom_score_adj', 'coredump_filter', 'timerslack_ns', 'mem', 'comm', 'clear_refs')])",
        "['EROFS', 'EROFS', 'EROFS', 'EROFS', 'EROFS', 'EROFS']",
        "!['EROFS', 'EROFS', 'EROFS', 'EROFS', 'EROFS', 'EROFS']",
    ),
    "limits that would tell or fill": (
        "import resource as r\n"
        "print(r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_RTPRIO),\n"
        "    r.getrlimit(r.RLIMIT_MSGQUEUE)[1] < 1 << 20, r.getrlimit(r.RLIMIT_NOFILE)[1] <= 1 << 16)",
        "(0, 0) (0, 0) True True",
        "!(0, 0) (0, 0) True True",
    ),
    "the host's name": (
        "import socket\nprint(socket.gethostname())",
        "cellkeep",
        "!cellkeep",
    ),
    "only five devices, each of the right kind": (
        "print({n: (os.major(d), os.minor(d)) for n in sorted(os.listdir('/dev'))\n"
        "    if (d := os.lstat('/dev/' + n).st_rdev)})",
        "{'full': (1, 7), 'null': (1, 3), 'random': (1, 8), 'urandom': (1, 9), 'zero': (1, 5)}",
        "!{'full': (1, 7), 'null': (1, 3), 'random': (1, 8), 'urandom': (1, 9), 'zero': (1, 5)}",
    ),
    "no socket of the host in any directory": (
        "import subprocess\n"
        "print(subprocess.run(['find', TOP, '-path', '/proc', '-prune', '-o', '-type', 's', '-print'],\n"
        "    capture_output=True, text=True).stdout.split())",
        "[]",
        "![]",
    ),
    "nothing of /sys": (
        "print(attempt(lambda: os.listdir('/sys')))",
        "ENOENT",
        "ok",
    ),
    "the network is its own loopback": (
        "import socket\nprint([name for _, name in socket.if_nameindex()]\n"
        "    if attempt(socket.if_nameindex) == 'ok' else ['lo'],\n"
        "    sum(1 for _ in open('/proc/net/dev')) if os.path.exists('/proc/net/dev') else 3)",
        "['lo'] 3",
        "!['lo'] 3",
    ),
    "no foreign abstract names": (
        "print(len([l for l in open('/proc/net/unix') if '@' in l])\n"
        "    if os.path.exists('/proc/net/unix') else 0)",
        "0",
        "!0",
    ),
    "every name and address is out of reach": (
        "import socket\n"
        "def knock(family, address):\n"
        "    with socket.socket(family) as s:\n"
        "        s.settimeout(5)\n"
        "        return attempt(lambda: s.connect(address))\n"
        "print({knock(2, (a, p)) for a in ('1.1.1.1', '169.254.169.254', '10.0.0.1', '192.168.0.1',\n"
        "    '224.0.0.1', '255.255.255.255') for p in (22, 80)} <= {'ENETUNREACH', 'EACCES'},\n"
        "    {knock(10, (a, 80)) for a in ('fd00:ec2::254', '2001:db8::1', '::ffff:10.0.0.1')}\n"
        "        <= {'ENETUNREACH'}, knock(2, ('127.0.0.1', 22)), knock(10, ('::1', 22)))",
        "True True ECONNREFUSED ECONNREFUSED",
        "False False ECONNREFUSED ECONNREFUSED",
    ),
    "no interface can be configured": (
        # The interface does not exist: the control runs as root on the host and would change a real
        # one.
        "import fcntl, socket\n"
        "with socket.socket(2, 2) as s:\n"
        "    print([attempt(lambda: fcntl.ioctl(s, n, b'ck-nobody' + bytes(31))) for n in\n"
        "        (0x8914, 0x8916)])",
        "['EPERM', 'EPERM']",
        "['ENODEV', 'EINVAL']",
    ),
    "no watch of the whole file system": (
        "print(said(libc.fanotify_init(0, 0)), said(libc.name_to_handle_at(-100, b'/', 0, 0, 0)))",
        "EPERM EPERM",
        "!EPERM EPERM",
    ),
    "no system call changes the kernel's settings": (
        "print(said(libc.syscall(SYSLOG, 3, 0, 0)), said(libc.swapoff(b'/nothing')),\n"
        "    said(libc.sethostname(b'x', 1 << 20)))",
        "EPERM EPERM EPERM",
        "!EPERM EPERM EPERM",
    ),
}


# The control of a question about addresses runs where all of them are this machine's own: it
# connects to no other machine.
ROUTED = (
    "ip link set lo up && ip route add local default dev lo && "
    'ip -6 route add local default dev lo && exec "$@"'
)
BEFORE = {"every name and address is out of reach": ("unshare", "--net", "sh", "-c", ROUTED, "sh")}


def with_constants(code: str, probe: str, bystander: int, top: str) -> str:
    constants = {
        "PROBE": probe,
        "BYSTANDER": bystander,
        "TOP": top,
        "EXECVEAT": int(call_number("execveat")),
        "KEYCTL": int(call_number("keyctl")),
        "SYSLOG": int(call_number("syslog")),
    }
    lines = [f"{name} = {value!r}\n" for name, value in constants.items()]
    return HELPERS + "".join(lines) + code


@pytest.fixture(scope="module")
def bystander() -> Iterator[int]:
    """A process of the host's with a process session of its own."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process.pid
        process.stdin.close()


@pytest.fixture
def folder_with_a_socket(tmp_path: Path) -> Iterator[Path]:
    """And an abstract name besides."""
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        named.bind(str(tmp_path / "socket"))
        abstract.bind(f"\0cellkeep-probes-{os.getpid()}")
        yield tmp_path


def check(printed: str, expected: str) -> None:
    if expected.startswith("!"):
        assert printed != expected[1:]
    else:
        assert printed == expected


@pytest.mark.parametrize("question", CASES)
def test_inside_the_answer_is_the_walls(
    attacker: Attacker, bystander: int, question: str
) -> None:
    code, inside, _ = CASES[question]
    check(attacker.python(with_constants(code, "/workspace/probe", bystander, "/")), inside)


@pytest.mark.skipif(os.geteuid() != 0, reason="the controls need root")
@pytest.mark.parametrize("question", CASES)
def test_outside_the_answer_is_the_hosts(
    question: str, bystander: int, folder_with_a_socket: Path
) -> None:
    code, _, outside = CASES[question]
    program = with_constants(code, probe_program(), bystander, str(folder_with_a_socket))
    # What a guest must not have; the question leaves the last descriptor out, listdir's own inside.
    folders = [os.open("/", os.O_RDONLY) for _ in range(2)]
    printed = python_outside(program, *BEFORE.get(question, ()), pass_fds=folders)
    for folder in folders:
        os.close(folder)
    assert "Traceback" not in printed
    check(printed, outside)


def test_pid_1_outlives_every_signal(victim: Attacker) -> None:
    # kill(2) answers that it was sent; the kernel drops what a pid 1 has no handler for.
    victim.python("import os\nfor number in range(1, 65):\n    os.kill(1, number)")
    assert victim.is_well()
    # Only pid 1 can start the next interpreter.
    assert victim.session.post("restart").status_code == 200
    assert victim.is_well()


def test_after_all_of_it_the_session_and_the_server_are_well(attacker: Attacker) -> None:
    assert attacker.is_well()
    assert attacker.session.fetch()["restarts"] == 0
    assert attacker.server.get("/healthz").json()["status"] == "ok"
