# SPDX-License-Identifier: Apache-2.0
"""What the host's kernel says about a session's processes: no word of the session's or server's.

Everything is read from outside, in /proc and in the cgroup file systems. Only Landlock shows
nothing there: it is seen at work.
"""

import fcntl
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from attacker import Attacker

NS_GET_USERNS, NS_GET_PARENT = 0xB701, 0xB702  # ioctl_ns(2)


def status_of(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def environment_of(pid: int) -> bytes:
    """The environment; empty if the process has ended, or this user may not read it."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


class Observed:
    """A session's first worker and the pid 1 above it, as the host sees them."""

    def __init__(
        self, server: int, init: int, worker: int, probe: Callable[..., str]
    ) -> None:
        self.server, self.init, self.worker, self.probe = server, init, worker, probe

    @classmethod
    def of(cls, attacker: Attacker) -> "Observed":
        own = attacker.session.info["id"].encode()
        pids = [process.pid for process in attacker.server.children()]
        worker = next(p for p in pids if own in environment_of(p))
        init = int(status_of(worker)["PPid"])
        return cls(attacker.server.process.pid, init, worker, attacker.probe)

    def namespace_differs(self, name: str) -> bool:
        inside = {os.readlink(f"/proc/{pid}/ns/{name}") for pid in (self.worker, self.init)}
        return os.readlink(f"/proc/{self.server}/ns/{name}") not in inside

    def its_user_namespace_owns_nothing(self) -> bool:
        """Whether it is a child of the user namespace that owns the mounts."""
        if not self.namespace_differs("user"):
            return False
        mounts, own = (
            os.open(f"/proc/{self.worker}/ns/{name}", os.O_RDONLY) for name in ("mnt", "user")
        )
        found = [mounts, own, fcntl.ioctl(mounts, NS_GET_USERNS), fcntl.ioctl(own, NS_GET_PARENT)]
        numbers = [os.fstat(fd).st_ino for fd in found]
        for fd in found:
            os.close(fd)
        return numbers[2] == numbers[3] != numbers[1]

    def ids_are_mapped(self) -> bool:
        host = [status_of(self.worker)[name].split()[0] for name in ("Uid", "Gid")]
        maps = [
            Path(f"/proc/{self.worker}/{name}_map").read_text(encoding="utf-8").split()
            for name in ("uid", "gid")
        ]
        return maps == [["1000", one, "1"] for one in host]

    def mounts(self) -> dict[str, tuple[str, str]]:
        """By target: the line up to its options, and its file system with its own options."""
        text = Path(f"/proc/{self.worker}/mountinfo").read_text(encoding="utf-8")
        rows = [line.split(" - ") for line in text.splitlines()]
        return {before.split()[4]: (before, after) for before, after in rows}

    def root_is_the_sandboxs(self) -> bool:
        before, after = self.mounts()["/"]
        options = set(before.split()[5].split(","))
        return (
            after.startswith("tmpfs")
            and {"ro", "nosuid", "nodev"} <= options
            and not {"root", "var", "sys", "run"} & self.names_in_its_root()
            and os.listdir(Path(f"/proc/{self.worker}/root", "home")) == ["user"]
        )

    def names_in_its_root(self) -> set[str]:
        return set(os.listdir(f"/proc/{self.worker}/root"))

    def mounts_are_private(self) -> bool:
        return not any(
            "shared:" in before or "master:" in before for before, _ in self.mounts().values()
        )

    def proc_is_reduced(self) -> bool:
        before, after = self.mounts().get("/proc", ("", ""))
        return after.startswith("proc ") and "subset=pid" in after and "hidepid=" in after and (
            "ro" in before.split()[5].split(",")
        )

    def everyone(self, field: str, right: Callable[[str], bool]) -> bool:
        return all(right(status_of(pid)[field]) for pid in (self.worker, self.init))

    def has_no_capability(self) -> bool:
        return all(
            self.everyone(f"Cap{name}", lambda text: int(text, 16) == 0)
            for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")
        )

    def is_filtered(self) -> bool:
        """Whether the processes have one filter more than the server."""
        servers = int(status_of(self.server)["Seccomp_filters"])
        return self.everyone("Seccomp", lambda text: text == "2") and self.everyone(
            "Seccomp_filters", lambda text: int(text) == servers + 1
        )

    def pid_1_listens(self) -> bool:
        folder = f"/proc/{self.init}/fd"
        links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
        return "anon_inode:seccomp notify" in links

    def has_a_keyring_of_its_own(self) -> bool:
        """Reads /proc/keys as the session's user, because it lists only what its reader may see."""
        uid = status_of(self.worker)["Uid"].split()[0]
        keys = subprocess.run(
            ["setpriv", f"--reuid={uid}", "--clear-groups", "cat", "/proc/keys"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return any(" _ses:" in line for line in keys.splitlines())

    def limits(self) -> dict[str, list[str]]:
        text = Path(f"/proc/{self.worker}/limits").read_text(encoding="utf-8")
        return {line[:25].strip(): line[25:].split()[:2] for line in text.splitlines()[1:]}

    def cgroup_value(self, controller: str, *names: str) -> str:
        """The value at the worker; empty if it is in no cgroup of its own."""
        lines = [line.split(":") for line in self.cgroup_lines(self.worker)]
        for _, controllers, path in lines:
            if controller in controllers.split(",") or controllers == "":
                for root in (controller, "unified", ""):
                    folder = Path("/sys/fs/cgroup", root, path.lstrip("/"))
                    # The limits are on the session's directory, the workers' is beneath it.
                    for place in (folder, folder.parent):
                        for name in names:
                            if "/cellkeep-" in str(place) and (place / name).exists():
                                return (place / name).read_text(encoding="utf-8").strip()
        return ""

    @staticmethod
    def cgroup_lines(pid: int) -> list[str]:
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()

    def is_of_no_host_file(self) -> bool:
        inside = os.stat(Path(f"/proc/{self.worker}", "root", "usr", "bin", "env"))
        host = os.stat("/usr/bin/env")
        return (inside.st_dev, inside.st_ino) != (host.st_dev, host.st_ino)


def interfaces_of(pid: int) -> set[str]:
    lines = Path(f"/proc/{pid}/net/dev").read_text(encoding="utf-8").splitlines()[2:]
    return {line.split(":")[0].strip() for line in lines}


MEMORY_MB = 256
PROCESSES = 40
LIMITS = {"memory_mb": MEMORY_MB, "processes": PROCESSES}

# control: whether the host sees it in force for a session with these limits
SEEN: dict[str, Callable[[Observed], bool]] = {
    "user_namespace": lambda o: o.namespace_differs("user") and o.ids_are_mapped(),
    "nested_user_namespaces": Observed.its_user_namespace_owns_nothing,
    "pid_namespace": lambda o: o.namespace_differs("pid")
    and status_of(o.init)["NSpid"].split()[1:] == ["1"],
    "mount_namespace": lambda o: o.namespace_differs("mnt") and o.mounts_are_private(),
    "network_namespace": lambda o: o.namespace_differs("net") and interfaces_of(o.worker) == {"lo"},
    "ipc_namespace": lambda o: o.namespace_differs("ipc"),
    "uts_namespace": lambda o: o.namespace_differs("uts"),
    "cgroup_namespace": lambda o: o.namespace_differs("cgroup"),
    "root_filesystem": Observed.root_is_the_sandboxs,
    "proc": Observed.proc_is_reduced,
    "capabilities": Observed.has_no_capability,
    "no_new_privileges": lambda o: o.everyone("NoNewPrivs", lambda text: text == "1"),
    # The filter lets it pass, a device answers ENOTTY: only Landlock says EACCES (ABI 5).
    "landlock": lambda o: o.probe("ioctl", 0x5401) == "EACCES",
    "seccomp": Observed.is_filtered,
    "denial_reports": Observed.pid_1_listens,
    "session_keyring": Observed.has_a_keyring_of_its_own,
    "rlimits": lambda o: [o.limits()[name][1] for name in ("Max core file size", "Max open files")]
    == ["0", "1024"],
    "memory_limit": lambda o: MEMORY_MB << 20
    <= int(o.cgroup_value("memory", "memory.limit_in_bytes", "memory.max") or 0)
    <= (MEMORY_MB + 64) << 20,
    "process_limit": lambda o: PROCESSES
    <= int(o.cgroup_value("pids", "pids.max") or 0)
    <= PROCESSES + 8,
    "cpu_limit": lambda o: o.cgroup_value("cpu", "cpu.cfs_quota_us", "cpu.max").split(" ")[0]
    not in ("", "-1", "max"),
    "cpu_accounting": lambda o: o.cgroup_value("cpuacct", "cpuacct.usage", "cpu.stat") != "",
    "freeze": lambda o: o.cgroup_value("freezer", "cgroup.freeze", "freezer.state") != "",
    # The kernel ends a pid namespace with its pid 1, which is the server's own child.
    "kill": lambda o: int(status_of(o.init)["PPid"]) == o.server,
    "private_image": Observed.is_of_no_host_file,
}


def agree(attacker: Attacker) -> None:
    """What the session's report says of each control is what the host sees."""
    observed = Observed.of(attacker)
    report = attacker.session.info["isolation"]["controls"]
    said = {row["name"]: row["state"] == "applied" for row in report}
    # A user's old keyrings go when the kernel finds the time: only that there is one can be seen.
    looks = {name: look for name, look in SEEN.items() if said[name] or name != "session_keyring"}
    assert {name: said[name] for name in looks} == {n: look(observed) for n, look in looks.items()}
