# SPDX-License-Identifier: Apache-2.0
"""Known ways out of a sandbox, each tried by a hostile program that came in through the file API.

One case per primitive. Inside it must be refused with exactly this answer; outside, as root on the
same kernel, the same attempt must get further, which shows that the door exists and that the
attempt finds it. `!X` is anything but X, `X|Y` either. What a kernel may not have is in MAYBE, with
how that is seen.
"""

import gzip
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from attacker import SIGSYS, Attacker, probe_outside

NAMESPACES = {
    "mnt": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
NEWTIME = 0x80
RAW, DGRAM, STREAM, SEQPACKET = 3, 2, 1, 5
NETLINK = {"route": 0, "sock_diag": 4, "xfrm": 6, "audit": 9, "netfilter": 12, "kobject": 15}
MAP_HUGETLB_PRIVATE = 0x40002
MSG_OOB = 1
S_IFCHR, S_IFBLK = 0o020000, 0o060000
TIOCSTI, TIOCSTI_HIGH, TIOCLINUX = 0x5412, 0x1_0000_5412, 0x541C
FICLONE, FIEMAP_RANGE = 0x40049409, 0x4020940D

Probe = tuple[object, ...]
CASES: dict[str, tuple[Probe, str, str]] = {
    # Namespaces: CVE-2022-0185, CVE-2018-18955 and everything a nested namespace opens.
    **{
        f"{call}_of_a_{name}_namespace": ((call, flag), "EPERM", "ok")
        for name, flag in NAMESPACES.items()
        for call in ("unshare", "clone")
    },
    "unshare_of_a_time_namespace": (("unshare", NEWTIME), "EPERM", "ok"),
    "setns": (("setns",), "EPERM", "ok"),
    "clone3_answers_that_it_is_not_there": (("syscall", "call:clone3", 0, 0), "ENOSYS", "EINVAL"),
    "uid_map_written": (("open", "/proc/self/uid_map", "w"), "EROFS", "ok"),
    "gid_map_written": (("open", "/proc/self/gid_map", "w"), "EROFS", "ok"),
    "setgroups_allowed_again": (("open", "/proc/self/setgroups", "w"), "EROFS", "ok"),
    # Mounts and the root: CVE-2022-0492, CVE-2022-0185.
    "mount": (("mount",), "EPERM", "ENOENT"),
    "umount": (("syscall", "call:umount2", 0, 0), "EPERM", "EFAULT"),
    "pivot_root": (("syscall", "call:pivot_root", 0, 0), "EPERM", "EFAULT"),
    "move_mount": (("syscall", "call:move_mount", -1, 0, -1, 0), "EPERM", "EFAULT"),
    "mount_setattr": (("syscall", "call:mount_setattr", -1, 0, 0, 0), "EPERM", "EINVAL"),
    "open_tree": (("open_tree",), "EPERM", "ok"),
    "fsopen_of_tmpfs": (("fsopen", "tmpfs"), "EPERM", "ok"),
    "fsopen_of_cgroup2": (("fsopen", "cgroup2"), "EPERM", "ok"),
    "fsconfig": (("syscall", "call:fsconfig", -1, 0, 0, 0), "EPERM", "!EPERM"),
    "chroot": (("chroot",), "EPERM", "ok"),
    # The page cache: CVE-2022-0847, CVE-2016-5195, CVE-2026-64600; one's own program: CVE-2019-5736.
    "splice": (("splice",), "EPERM", "ok"),
    "vmsplice": (("vmsplice",), "EPERM", "ok"),
    "tee": (("syscall", "call:tee", -1, -1, 1, 0), "EPERM", "EBADF"),
    "sendfile": (("syscall", "call:sendfile", -1, -1, 0, 1), "EINVAL", "EBADF"),
    "memory_written_through_proc": (("open", "/proc/self/mem", "rw"), "EROFS", "ok"),
    "own_program_written": (("open", "/proc/self/exe", "rw"), "ETXTBSY", "ETXTBSY"),
    "shared_program_written": (("open", "/usr/bin/env", "w"), "EROFS|EACCES", "ok"),
    "file_cloned_by_ioctl": (("ioctl", FICLONE), "EPERM", "!EPERM"),
    "file_range_cloned_by_ioctl": (("ioctl", FIEMAP_RANGE), "EPERM", "!EPERM"),
    # Socket families: CVE-2026-31431, CVE-2026-43284, CVE-2024-1086, CVE-2020-14386,
    # CVE-2025-21756, CVE-2021-22555, CVE-2025-38236.
    "socket_alg": (("socket", 38, SEQPACKET, 0), "EPERM", "ok"),
    **{
        f"socket_netlink_{name}": (
            ("socket", 16, RAW, protocol),
            # What ZeroMQ understands as "no such interface" (sandbox/SECURITY.md, section 7).
            "EOPNOTSUPP" if name == "route" else "EPERM",
            "ok",
        )
        for name, protocol in NETLINK.items()
        if name in ("route", "sock_diag", "xfrm", "netfilter", "audit", "kobject")
    },
    "socket_packet_raw": (("socket", 17, RAW, 0), "EPERM", "ok"),
    "socket_packet_datagram": (("socket", 17, DGRAM, 0), "EPERM", "ok"),
    "socket_raw_icmp": (("socket", 2, RAW, 1), "EPERM", "ok"),
    "socket_raw_icmp6": (("socket", 10, RAW, 58), "EPERM", "ok"),
    "socket_mptcp": (("socket", 2, STREAM, 262), "EPERM", "ok"),
    "socket_sctp": (("socket", 2, STREAM, 132), "EPERM", "ok"),
    "socket_rds": (("socket", 21, SEQPACKET, 0), "EPERM", "ok"),
    "socket_tipc": (("socket", 30, SEQPACKET, 0), "EPERM", "ok"),
    "socket_vsock": (("socket", 40, STREAM, 0), "EPERM", "ok"),
    "socket_xdp": (("socket", 44, RAW, 0), "EPERM", "ok"),
    "packet_filter_tables_replaced": (("setsockopt", 0, 64), "EPERM", "!EPERM"),
    "packet_filter_tables_read": (
        ("syscall", "call:getsockopt", -1, 0, 64),
        "EPERM",
        "EBADF",
    ),
    "socket_filter": (("setsockopt", 1, 26), "EPERM", "!EPERM"),
    "socket_filter_of_ebpf": (("setsockopt", 1, 50), "EPERM", "!EPERM"),
    "socket_zero_copy": (("setsockopt", 1, 60), "EPERM", "!EPERM"),
    "send_out_of_band": (("send_oob",), "EPERM", "ok"),
    **{
        f"{call}_out_of_band": (("syscall", f"call:{call}", -1, *more), "EPERM", "EBADF")
        for call, more in {
            "sendto": (0, 0, MSG_OOB),
            "recvfrom": (0, 0, MSG_OOB),
            "sendmsg": (0, MSG_OOB),
            "recvmsg": (0, MSG_OOB),
            "sendmmsg": (0, 1, MSG_OOB),
            "recvmmsg": (0, 1, MSG_OOB),
        }.items()
    },
    # Kernel interfaces: CVE-2020-29373, CVE-2017-16995, CVE-2020-25704, CVE-2016-0728.
    "io_uring_setup": (("io_uring",), "EPERM", "ok"),
    "io_uring_enter": (("syscall", "call:io_uring_enter", -1, 0, 0, 0), "EPERM", "!EPERM"),
    "io_uring_register": (("syscall", "call:io_uring_register", -1, 0, 0, 0), "EPERM", "!EPERM"),
    "bpf": (("bpf",), "EPERM", "ok"),
    "perf_event_open": (("perf",), "EPERM", "ok"),
    "userfaultfd": (("syscall", "call:userfaultfd", 1), "EPERM", "ok|ENOSYS"),
    "userfaultfd_device": (("open", "/dev/userfaultfd", "rw"), "ENOENT", "ok"),
    "keyctl": (("keyctl",), "EPERM", "ok"),
    "add_key": (("add_key",), "EPERM", "ok"),
    "request_key": (("syscall", "call:request_key", 0, 0, 0, 0), "EPERM", "EFAULT"),
    "fanotify": (("fanotify",), "EPERM", "ok"),
    "file_handle_made": (("handle",), "EPERM", "ok"),
    "file_handle_opened": (
        ("syscall", "call:open_by_handle_at", -1, 0, 0),
        "EPERM",
        "!EPERM",
    ),
    "seccomp": (("seccomp",), "EPERM", "ok"),
    "prctl_seccomp": (("syscall", "call:prctl", 22, 2, 0), "EPERM", "EFAULT"),
    "huge_pages_mapped": (
        ("syscall", "call:mmap", 0, 0, 0, MAP_HUGETLB_PRIVATE),
        "EPERM",
        "!EPERM",
    ),
    "huge_pages_in_a_memfd": (("syscall", "call:memfd_create", 0, 4), "EPERM", "EFAULT"),
    "file_lease": (("lease", "/tmp"), "EPERM", "ok"),
    "system_v_shared_memory": (
        ("syscall", "call:shmget", 0x63656C6C, 4096, 0),
        "EPERM",
        "ENOENT",
    ),
    "system_v_semaphore": (("syscall", "call:semget", 0x63656C6C, 1, 0), "EPERM", "ENOENT"),
    "system_v_message_queue": (("syscall", "call:msgget", 0x63656C6C, 0), "EPERM", "ENOENT"),
    "posix_message_queue": (("syscall", "call:mq_open", 0, 0, 0, 0), "EPERM", "EFAULT"),
    # Terminals: CVE-2017-5226 and CVE-2019-10063.
    "terminal_typing": (("ioctl", TIOCSTI), "EPERM", "ENOTTY"),
    "terminal_typing_with_high_bits": (("ioctl", TIOCSTI_HIGH), "EPERM", "ENOTTY"),
    "console_selection": (("ioctl", TIOCLINUX), "EPERM", "ENOTTY"),
    "controlling_terminal": (("open", "/dev/tty", "rw"), "ENOENT", "ok|ENXIO"),
    "new_terminal": (("open", "/dev/ptmx", "rw"), "ENOENT", "ok"),
    # Other processes.
    "ptrace_traceme": (("ptrace_traceme",), "EPERM", "ok"),
    "ptrace_of_a_child": (("ptrace_attach",), "EPERM", "ok"),
    "process_vm_readv": (("process_vm",), "EPERM", "ok"),
    "process_vm_writev": (
        ("syscall", "call:process_vm_writev", 0, 0, 0, 0),
        "EPERM",
        "!EPERM",
    ),
    "pidfd_getfd": (("pidfd_getfd",), "EPERM", "ok"),
    "kcmp": (("kcmp",), "EPERM", "ok"),
    "process_madvise": (("syscall", "call:process_madvise", -1, 0, 0, 0), "EPERM", "!EPERM"),
    "environment_of_pid_1": (("open", "/proc/1/environ", "r"), "ENOENT", "!ENOENT"),
    "root_of_pid_1": (("open", "/proc/1/root", "r"), "ENOENT", "!ENOENT"),
    # Foreign architectures.
    "system_call_of_i386": (("int80",), SIGSYS, f"!{SIGSYS}"),
    # The probe makes it in a child, whose death by a signal it reports as EINTR.
    "system_call_of_x32": (("syscall", 0x40000027), "EINTR", "!EINTR"),
    # Kernel settings and memory: CVE-2022-4378, core_pattern.
    "core_pattern": (("open", "/proc/sys/kernel/core_pattern", "w"), "ENOENT", "ok"),
    "sysrq": (("open", "/proc/sysrq-trigger", "w"), "ENOENT", "ok"),
    "kernel_symbols": (("open", "/proc/kallsyms", "r"), "ENOENT", "ok"),
    "kernel_memory_image": (("open", "/proc/kcore", "r"), "ENOENT", "ok"),
    "keys_of_others": (("open", "/proc/keys", "r"), "ENOENT", "ok"),
    "sysfs": (("open", "/sys/kernel", "r"), "ENOENT", "ok"),
    "cgroup_file_system": (("open", "/sys/fs/cgroup", "r"), "ENOENT", "ok"),
    "kernel_log": (("syscall", "call:syslog", 10, 0, 0), "EPERM", "ok"),
    "device_node": (("mknod_device", "/tmp"), "EPERM", "ok"),
    "character_device_node": (("syscall", "call:mknod", 0, S_IFCHR, 259), "EPERM", "EFAULT"),
    "block_device_node": (("syscall", "call:mknod", 0, S_IFBLK, 259), "EPERM", "EFAULT"),
    # Becoming another user, and changing the machine.
    "setuid": (("syscall", "call:setuid", 0), "EPERM", "ok"),
    "setresgid": (("syscall", "call:setresgid", 0, 0, 0), "EPERM", "ok"),
    "setgroups": (("syscall", "call:setgroups", 0, 0), "EPERM", "ok"),
    "capset": (("syscall", "call:capset", 0, 0), "EPERM", "EFAULT"),
    "sethostname": (("syscall", "call:sethostname", 0, -1), "EPERM", "EINVAL"),
    "settimeofday": (("syscall", "call:settimeofday", 0, 0), "EPERM", "ok"),
    "clock_adjtime": (("syscall", "call:clock_adjtime", 0, 0), "EPERM", "!EPERM"),
    "reboot": (("syscall", "call:reboot", 0, 0, 0, 0), "EPERM", "EINVAL"),
    "init_module": (("syscall", "call:init_module", 0, 0, 0), "EPERM", "ENOEXEC|ENOSYS"),
    "finit_module": (("syscall", "call:finit_module", -1, 0, 0), "EPERM", "EBADF|ENOSYS"),
    "kexec_load": (("syscall", "call:kexec_load", 0, 99, 0, 0), "EPERM", "EINVAL|ENOSYS"),
    "swapon": (("syscall", "call:swapon", 0, 0), "EPERM", "EFAULT"),
    "quotactl": (("syscall", "call:quotactl", 0, 0, 0, 0), "EPERM", "ENODEV|ENOSYS"),
    "acct": (("syscall", "call:acct", 1), "EPERM", "!EPERM"),
    "read_implies_exec": (("personality", 0x0400000), "EPERM", "ok"),
    "no_address_randomization": (("personality", 0x0040000), "EPERM", "ok"),
    "real_time_scheduling": (("fifo_scheduler",), "EPERM", "ok"),
    "scheduling_of_others": (
        ("syscall", "call:sched_setscheduler", 1, 3, 0),
        "EPERM",
        "EINVAL",
    ),
    "affinity_of_others": (("syscall", "call:sched_setaffinity", 1, 0, 0), "EPERM", "EINVAL"),
    "priority_of_a_user": (("syscall", "call:setpriority", 2, 1999999, 5), "EPERM", "ESRCH"),
    "io_priority_of_others": (("syscall", "call:ioprio_set", 1, 1999999, 0), "EPERM", "ESRCH"),
    "memory_policy_of_others": (
        ("syscall", "call:migrate_pages", 1999999, 0, 0, 0),
        "EPERM",
        "ESRCH|ENOSYS",
    ),
}




def kernel_lists(table: str, name: str) -> Callable[[], bool]:
    def look() -> bool:
        lines = Path(table).read_text(encoding="utf-8").splitlines()
        return any(name in line.split() for line in lines)

    return look


def is_configured(option: str) -> bool:
    """Reads the kernel's own configuration; a kernel without one must have the option."""
    beside = Path(f"/boot/config-{os.uname().release}")
    if os.path.exists("/proc/config.gz"):
        text = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
    else:
        text = beside.read_text(encoding="utf-8") if beside.exists() else f"{option}=y"
    return f"{option}=y" in text.splitlines()


# What this kernel may lack: how its presence is seen, and what the attempt answers without it.
PROTOCOLS = ("ALG", "MPTCP", "SCTP", "RDS", "TIPC", "AF_VSOCK", "XDP")
MAYBE: dict[str, tuple[Callable[[], bool], str]] = {
    **{
        f"socket_{name.lower().removeprefix('af_')}": (
            kernel_lists("/proc/net/protocols", name),
            "EAFNOSUPPORT|EPROTONOSUPPORT",
        )
        for name in PROTOCOLS
    },
    "userfaultfd_device": (kernel_lists("/proc/misc", "userfaultfd"), "ENOENT"),
    "sysrq": (lambda: is_configured("CONFIG_MAGIC_SYSRQ"), "ENOENT"),
    "kernel_symbols": (lambda: is_configured("CONFIG_KALLSYMS"), "ENOENT"),
    "kernel_memory_image": (lambda: is_configured("CONFIG_PROC_KCORE"), "ENOENT"),
    "keys_of_others": (lambda: is_configured("CONFIG_KEYS"), "ENOENT"),
}


def check(outcome: str, expected: str) -> None:
    if expected.startswith("!"):
        assert outcome != expected[1:]
    else:
        assert outcome in expected.split("|")


@pytest.mark.parametrize("name", CASES)
def test_a_primitive_is_refused_inside(attacker: Attacker, name: str) -> None:
    probe, inside, _ = CASES[name]
    check(attacker.probe(*probe), inside)


@pytest.mark.skipif(os.geteuid() != 0, reason="the controls need root")
@pytest.mark.parametrize("name", CASES)
def test_the_same_primitive_gets_further_outside(name: str, tmp_path: Path) -> None:
    probe, _, outside = CASES[name]
    is_there, without = MAYBE.get(name, (None, outside))
    if is_there is not None and not is_there():
        if without.startswith("EAFNOSUPPORT") and os.path.exists("/proc/modules"):
            pytest.skip("module: not loaded, and the attempt would load it")
        outside = without
    if name == "shared_program_written":
        # A copy, because no process can start a program that is open for writing.
        probe = ("open", shutil.copy("/usr/bin/env", tmp_path), "w")
    check(probe_outside(*probe), outside)


def test_no_process_of_the_host_is_signalled_or_measured(attacker: Attacker) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as bystander:
        for pid in (bystander.pid, attacker.server.process.pid, os.getpid()):
            assert attacker.probe("kill", pid) == "ESRCH"
            assert attacker.probe("prlimit_other", pid) == "EPERM"
        assert probe_outside("kill", bystander.pid) == "ok"
        assert probe_outside("prlimit_other", bystander.pid) == "ok"
        bystander.stdin.close()


def test_no_socket_of_the_host_is_reached(attacker: Attacker) -> None:
    name = f"cellkeep-probe-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as hidden, socket.create_server(("127.0.0.1", 0)) as tcp:
        hidden.bind("\0" + name)
        hidden.listen()
        port = tcp.getsockname()[1]
        assert probe_outside("connect_abstract", name) == "ok"
        assert probe_outside("connect_tcp", port) == "ok"
        # Landlock's scope or the empty namespace, depending on which refuses first.
        assert attacker.probe("connect_abstract", name) in ("ECONNREFUSED", "EPERM")
        assert attacker.probe("connect_tcp", port) == "ECONNREFUSED"


def test_after_all_of_it_the_session_is_well(attacker: Attacker) -> None:
    assert attacker.is_well()
