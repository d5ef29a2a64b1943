# SPDX-License-Identifier: Apache-2.0
"""What of the host is there for a session to look at: files, mounts, descriptors, variables."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacker import Attacker, python_outside
from harness import TOKEN, binary
from modes import ModeServer

LOOK = """
import errno, os
def attempt(call):
    try:
        call()
        return 'ok'
    except OSError as error:
        return errno.errorcode[error.errno]
path = {path!r}
print(attempt(lambda: os.stat(path)), attempt(lambda: os.listdir(path)),
    attempt(lambda: os.open(path, os.O_RDONLY | os.O_NONBLOCK)))
"""

# The control is that most of them are on the host.
HOST_PATHS = [
    *("/root", "/boot", "/run", "/var", "/srv", "/mnt", "/media", "/opt/lost"),
    *("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/machine-id", "/etc/sudoers", "/etc/fstab"),
    *("/etc/ssl/private", "/etc/environment", "/etc/apt", "/etc/systemd", "/etc/pam.d"),
    *("/sys/fs/cgroup", "/sys/firmware", "/sys/kernel/security", "/sys/devices/virtual/powercap"),
    *(f"/proc/{name}" for name in "kcore kallsyms keys kmsg timer_list sysrq-trigger".split()),
    *(f"/proc/{name}" for name in "acpi asound bus fs irq scsi sys mounts/.. modules".split()),
    *(f"/proc/{name}" for name in "cmdline config.gz iomem ioports vmallocinfo slabinfo".split()),
    *(f"/proc/{name}" for name in "cpuinfo meminfo stat loadavg uptime version swaps".split()),
    *(f"/proc/{name}" for name in "interrupts partitions diskstats locks key-users".split()),
    *(f"/proc/1/{name}" for name in "environ cmdline root cwd fd maps mem ns/net".split()),
    *(f"/dev/{name}" for name in "mem kmem kmsg port kvm fuse vsock vhost-net ptmx pts".split()),
    *(f"/dev/{name}" for name in "console tty tty0 loop-control mqueue hwrng rtc0 vda".split()),
    *(f"/dev/{name}" for name in "userfaultfd uinput snapshot btrfs-control net/tun".split()),
]


@pytest.mark.parametrize("path", HOST_PATHS)
def test_a_path_of_the_host_is_not_there(attacker: Attacker, path: str) -> None:
    printed = attacker.python(LOOK.format(path=path))
    assert set(printed.split()) <= {"ENOENT", "EACCES", "ENOTDIR"}, printed


def test_the_only_home_is_the_workspace(attacker: Attacker) -> None:
    code = "import os\nprint(os.listdir('/home'), os.readlink('/home/user'))"
    assert attacker.python(code) == "['user'] /workspace"
    assert os.path.isdir("/home")


def test_most_of_these_paths_are_on_the_host() -> None:
    assert sum(os.path.lexists(path) for path in HOST_PATHS) > len(HOST_PATHS) / 3


def test_nothing_of_the_server_is_there(attacker: Attacker) -> None:
    server = attacker.server
    for path in (
        server.state_dir,
        server.state_dir / "server.json",
        attacker.session.info["connection_file"],
        binary(),
        Path(__file__).parents[3] / "README.md",
        server.folder.name,
    ):
        assert os.path.exists(path)
        assert attacker.python(f"import os\nprint(os.path.exists({str(path)!r}))") == "False"


def test_the_environment_holds_exactly_what_is_documented(attacker: Attacker) -> None:
    code = (
        "import json, os\nof_proc = dict(e.split('=', 1) for e in\n"
        "    open('/proc/self/environ').read().split('\\0') if e)\n"
        "print(json.dumps([dict(os.environ), of_proc]))"
    )
    own, at_start = json.loads(attacker.python(code))
    assert {"HOME", "LANG", "PATH", "TMPDIR", "CELLKEEP_SESSION_ID"} <= set(at_start)
    for name, value in {**own, **at_start}.items():
        assert TOKEN not in value, name
        assert str(attacker.server.state_dir) not in value, name
        for word in ("TOKEN", "SECRET", "PASSWORD", "API_KEY", "SSH", "AWS_", "SUDO", "XDG_"):
            assert word not in name
    # Whatever the server's own environment holds, the guest has only what the server chose.
    of_the_server = {
        entry.split("=", 1)[0]
        for entry in Path(f"/proc/{attacker.server.process.pid}/environ").read_text().split("\0")
    }
    assert "CELLKEEP_TOKEN" in of_the_server  # the control: the test gave it one
    allowed = {"HOME", "LANG", "PATH", "USER", "LOGNAME", "TMPDIR"}
    assert set(at_start) & of_the_server <= allowed


def test_every_mount_is_as_the_wall_says(attacker: Attacker) -> None:
    code = "print(open('/proc/self/mountinfo').read())"
    private = {"/workspace", "/tmp", "/dev/shm"}
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")}
    for line in attacker.python(code).splitlines():
        before, after = line.split(" - ")
        target, options = before.split()[4:6]
        flags = set(options.split(","))
        assert "nosuid" in flags, line
        assert "nodev" in flags or target in devices, line
        assert ("rw" if target in private else "ro") in flags, line
        assert "shared:" not in before and "master:" not in before, line
        if target == "/dev/shm":
            assert "noexec" in flags
        if target == "/proc":
            assert "subset=pid" in after and "hidepid=" in after
        assert after.split()[0] not in ("sysfs", "cgroup", "cgroup2", "devpts", "debugfs", "bpf")
        assert str(attacker.server.state_dir) not in line
    outside = python_outside(code)
    assert any("nosuid" not in line.split()[5] for line in outside.splitlines())


DESCRIPTORS = """
import json, os, socket, stat
kinds = {}
for fd in sorted(int(name) for name in os.listdir('/proc/self/fd')):
    try:
        status = os.fstat(fd)
    except OSError:
        continue  # of listdir itself
    kind = oct(stat.S_IFMT(status.st_mode))
    if stat.S_ISSOCK(status.st_mode):
        s = socket.socket(fileno=os.dup(fd))
        family = s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN)
        try:
            s.getpeername()
            connected = True
        except OSError:
            connected = False
        try:
            s.connect(('127.0.0.1', 1)) if family != 1 else s.connect('\\0nobody')
            moved = 'moved'
        except OSError as error:
            moved = 'stays'
        kind = f'socket of family {family}, connected {connected}, {moved}'
        s.detach()
    kinds[fd] = kind + ' ' + os.readlink(f'/proc/self/fd/{fd}').split(':')[0]
print(json.dumps(kinds))
"""


def test_no_descriptor_is_of_a_network_a_directory_or_a_host_file(attacker: Attacker) -> None:
    kinds = json.loads(attacker.python(DESCRIPTORS))
    for kind in kinds.values():
        target = kind.split(" ")[-1]
        assert target in ("/dev/null", "pipe", "socket", "anon_inode") or target.startswith(
            ("/memfd", "/tmp/", "/dev/shm/")
        ), kinds
        if "socket" in kind:
            assert "family 1, connected True, stays" in kind
    assert "family 1, connected True, stays" in kinds["3"]
    # The control: given such descriptors, the same program names them.
    folder = os.open("/", os.O_RDONLY)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        seen = python_outside(DESCRIPTORS, pass_fds=[folder, listener.fileno()])
    assert "family 2" in seen and json.loads(seen)[str(folder)].endswith(" /")
    os.close(folder)


@pytest.fixture
def alone(mode: str) -> Iterator[Attacker]:
    """Its server makes no session besides, which would have descriptors, too."""
    with ModeServer(mode, "--no-zygotes", "--prespawn-count", "0") as running:
        yield Attacker(running)


def test_no_descriptor_can_be_had_over_the_link(alone: Attacker) -> None:
    # Nothing is sent to a guest with SCM_RIGHTS, and what a guest sends is not taken.
    attacker = alone
    before = len(os.listdir(f"/proc/{attacker.server.process.pid}/fd"))
    code = (
        "import array, os, socket\n"
        "link = socket.socket(fileno=os.dup(3))\n"
        "try:\n"
        "    print(link.recvmsg(0, 1000, socket.MSG_DONTWAIT | socket.MSG_PEEK)[1])\n"
        "except BlockingIOError:\n"
        "    print([])\n"
        "link.close()"
    )
    assert attacker.python(code) == "[]"
    assert len(os.listdir(f"/proc/{attacker.server.process.pid}/fd")) <= before + 2


def test_the_interpreter_is_not_the_servers_program(attacker: Attacker) -> None:
    inside = attacker.python("import os\ns = os.stat('/proc/self/exe')\nprint(s.st_ino, s.st_dev)")
    server = os.stat(f"/proc/{attacker.server.process.pid}/exe")
    assert inside.split()[0] != str(server.st_ino)
    # And no program of the server's is beside it.
    assert attacker.python("print(sorted(os.listdir('/opt/cellkeep/bin')))") == (
        "['cellkeep-kernel-driver', 'cellkeep-kernel-python']"
    )
