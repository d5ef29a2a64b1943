# SPDX-License-Identifier: Apache-2.0
"""`cellkeep doctor`, a session's isolation report, and what is seen from inside and outside agree.

Control by control, as root and as an ordinary user. A control that is reported applied must be seen
at work; one that is reported absent or degraded must be seen missing, else the report is wrong.
"""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from attacker import Attacker
from harness import Server, cgroups_of
from modes import ModeServer, doctor

MEMORY_MB = 256
PROCESSES = 40


@pytest.fixture(scope="module")
def inside(server: Server) -> Attacker:
    return Attacker(server, limits={"memory_mb": MEMORY_MB, "processes": PROCESSES})


@pytest.fixture(scope="module")
def report(inside: Attacker) -> dict:
    return inside.session.info["isolation"]


def row_of(report: dict, name: str) -> dict:
    return next(row for row in report["controls"] if row["name"] == name)


def status(attacker: Attacker, field: str) -> str:
    return attacker.python(
        "print(dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().splitlines()"
        f" if ':\\t' in l)[{field!r}])"
    )


def namespace_differs(name: str) -> Callable[[Attacker], bool]:
    def look(attacker: Attacker) -> bool:
        inside = attacker.python(f"import os\nprint(os.readlink('/proc/self/ns/{name}'))")
        return inside != os.readlink(f"/proc/self/ns/{name}")

    return look


def memory_is_limited_for_all(attacker: Attacker) -> bool:
    """Four processes that together take more than the session may, each less than the limit."""
    code = (
        "import os, signal\n"
        "children = []\n"
        "for _ in range(4):\n"
        "    read_end, write_end = os.pipe()\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        f"        held = bytearray(b'x' * ({MEMORY_MB} * 400_000))\n"
        "        os.write(write_end, b'k')\n"
        "        signal.pause()\n"
        "    os.close(write_end)\n"
        "    children.append((pid, os.read(read_end, 1)))\n"
        "for pid, _ in children:\n"
        "    os.kill(pid, 9)\n"
        "statuses = [os.waitpid(pid, 0)[1] for pid, _ in children]\n"
        "print(b''.join(word for _, word in children) != b'kkkk')"
    )
    answer = attacker.session.execute(code)
    # The kernel may have taken the interpreter itself.
    return answer["status"] != "ok" or answer["stdout"].strip() == "True"


def cgroup_values(attacker: Attacker, *names: str) -> list[str]:
    """The values of these files in all cgroups of the server's sessions."""
    return [
        path.read_text().strip()
        for folder in cgroups_of(attacker.server.process.pid)
        for name in names
        for path in Path(folder).rglob(name)
    ]


def is_of_no_host_file(attacker: Attacker) -> bool:
    inside = attacker.python("import os\ns = os.stat('/usr/bin/env')\nprint(s.st_dev, s.st_ino)")
    host = os.stat("/usr/bin/env")
    return inside != f"{host.st_dev} {host.st_ino}"


# control: whether it is seen at work, from inside or from the host
SEEN: dict[str, Callable[[Attacker], bool]] = {
    "user_namespace": namespace_differs("user"),
    "nested_user_namespaces": lambda a: a.probe("unshare", 0x10000000) == "EPERM",
    "pid_namespace": namespace_differs("pid"),
    "mount_namespace": namespace_differs("mnt"),
    "network_namespace": namespace_differs("net"),
    "ipc_namespace": namespace_differs("ipc"),
    "uts_namespace": namespace_differs("uts"),
    "cgroup_namespace": namespace_differs("cgroup"),
    "root_filesystem": lambda a: a.probe("open", "/etc/shadow", "r") == "ENOENT",
    "proc": lambda a: "subset=pid" in a.python("print(open('/proc/self/mountinfo').read())"),
    "capabilities": lambda a: int(status(a, "CapBnd"), 16) == 0,
    "no_new_privileges": lambda a: status(a, "NoNewPrivs") == "1",
    # The filter lets it pass, a device answers ENOTTY: only Landlock says EACCES (ABI 5).
    "landlock": lambda a: a.probe("ioctl", 0x5401) == "EACCES",
    "seccomp": lambda a: status(a, "Seccomp") == "2" and a.probe("bpf") == "EPERM",
    "denial_reports": lambda a: "chroot" in str(
        a.session.execute("import os\nos.chroot('/')")["error"]["message"]
    ),
    "private_image": is_of_no_host_file,
    "session_keyring": lambda a: a.probe("keyctl") == "EPERM",
    "rlimits": lambda a: a.python(
        "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))"
    )
    == "(0, 0)",
    "memory_limit": memory_is_limited_for_all,
    "process_limit": lambda a: any(
        value.isdigit() and PROCESSES <= int(value) <= PROCESSES + 8
        for value in cgroup_values(a, "pids.max")
    ),
    "cpu_limit": lambda a: any(
        value.split()[0] not in ("max", "-1")
        for value in cgroup_values(a, "cpu.max", "cpu.cfs_quota_us")
    ),
    "cpu_accounting": lambda a: a.session.execute("sum(range(10**7))")["metrics"]["cpu_ms"] > 0,
    "freeze": lambda a: bool(cgroup_values(a, "cgroup.freeze", "freezer.state")),
    "kill": lambda a: a.probe("kill", a.server.process.pid) == "ESRCH",
}


def test_doctor_and_the_session_report_the_same(mode: str, report: dict) -> None:
    said = doctor(mode)
    assert said["mode"] == ("root" if mode == "root" else "rootless")
    assert said["complete"] == report["complete"]
    assert [row["name"] for row in said["controls"]] == [row["name"] for row in report["controls"]]
    for expected, row in zip(said["controls"], report["controls"], strict=True):
        assert row["state"] == expected["state"], row
        assert row["mechanism"] == expected["mechanism"], row
        assert ("fix" in row) == (row["state"] != "applied")


def test_every_control_has_a_look_at_reality(report: dict) -> None:
    assert {row["name"] for row in report["controls"]} <= set(SEEN)


@pytest.mark.parametrize("control", SEEN)
def test_a_control_is_seen_exactly_if_it_is_reported(
    inside: Attacker, report: dict, control: str
) -> None:
    state = row_of(report, control)["state"]
    assert SEEN[control](inside) == (state == "applied"), state


def test_what_is_degraded_is_still_bounded_as_its_mechanism_says(
    inside: Attacker, report: dict
) -> None:
    for name, limit in (("memory_limit", "RLIMIT_DATA"), ("process_limit", "RLIMIT_NPROC")):
        if row_of(report, name)["state"] == "degraded":
            assert row_of(report, name)["mechanism"] == limit
            bound = int(
                inside.python(f"import resource\nprint(resource.getrlimit(resource.{limit})[1])")
            )
            assert 0 < bound <= max(MEMORY_MB << 20, PROCESSES + 8)
            own = resource.getrlimit(getattr(resource, limit))[1]  # the control: not the host's
            assert own == resource.RLIM_INFINITY or own != bound


def test_processes_are_bounded_in_either_way(inside: Attacker) -> None:
    made = inside.python(
        "import os, signal\nmade = []\n"
        "try:\n"
        "    while len(made) < 1000:\n"
        "        pid = os.fork()\n"
        "        if pid == 0: signal.pause()\n"
        "        made.append(pid)\n"
        "except OSError: pass\n"
        "for pid in made: os.kill(pid, 9); os.waitpid(pid, 0)\n"
        "print(len(made))"
    )
    assert 0 < int(made) <= PROCESSES


def test_without_a_waiver_a_missing_control_refuses_the_session_by_name(mode: str) -> None:
    # Without an image the server does not even start: that one is waived.
    image = "private_image"
    missing = [row["name"] for row in doctor(mode)["controls"] if row["state"] != "applied"]
    missing = [name for name in missing if name != image]
    if not missing:
        pytest.skip("nothing is missing on this host in this mode")
    server = ModeServer(mode)
    server.arguments = ("--log-format", "text", f"--allow-degraded={image}")
    with server:
        answer = server.post("/v1/sessions")
        assert answer.status_code == 503, answer.text
        assert answer.headers["Content-Type"].startswith("application/problem+json")
        assert any(name in answer.text for name in missing), answer.text
