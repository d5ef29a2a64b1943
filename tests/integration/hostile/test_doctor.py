# SPDX-License-Identifier: Apache-2.0
"""`cellkeep doctor`, a session's isolation report and what the host sees of its processes agree.

Control by control, as root and as an ordinary user. A control that is reported applied must be seen
in force; one that is reported absent or degraded must be seen missing, else the report is wrong.
"""

import os
import resource
import subprocess
from collections.abc import Iterator

import pytest

from attacker import Attacker, probe_outside
from harness import LEAN
from modes import ModeServer, doctor, prefix_of
from observe import LIMITS, MEMORY_MB, PROCESSES, SEEN, Observed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes root to look into a pid 1")


@pytest.fixture(scope="module")
def inside(mode: str) -> Iterator[Attacker]:
    """A session whose sandbox was made as doctor makes its own. A sandbox that a zygote made differs in
    its network and in the parent of its pid 1 (SECURITY.md, section 16)."""
    with ModeServer(mode, "--log-format", "text", "--no-zygotes", "--prespawn-count", "0") as server:
        yield Attacker(server, limits=LIMITS)


@pytest.fixture(scope="module")
def report(inside: Attacker) -> dict:
    return inside.session.info["isolation"]


def row_of(report: dict, name: str) -> dict:
    return next(row for row in report["controls"] if row["name"] == name)


def is_applied(report: dict, name: str) -> bool:
    return row_of(report, name)["state"] == "applied"


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
    assert [row["name"] for row in report["controls"]] == list(SEEN)


@pytest.mark.parametrize("control", SEEN)
def test_a_control_is_seen_exactly_if_it_is_reported(
    inside: Attacker, report: dict, control: str
) -> None:
    assert SEEN[control](Observed.of(inside)) == is_applied(report, control)


def test_of_a_process_outside_nothing_is_seen() -> None:
    """The control: each check of an ordinary process of the host fails."""
    with subprocess.Popen(
        [*prefix_of("ordinary_user"), "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
    ) as process:
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.stdout.read(1) == b"x"  # it is the user's by now
        outside = Observed(os.getpid(), process.pid, process.pid, probe_outside)
        seen = {name for name, look in SEEN.items() if look(outside)}
        process.stdin.close()
    # It is a child of this process, and the sandboxes of its user may have left a keyring.
    assert seen <= {"kill", "session_keyring"}


def test_memory_is_bounded_for_all_exactly_if_it_is_reported(
    inside: Attacker, report: dict
) -> None:
    """Four processes take more together than the session's limit, each one less."""
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
    answer = inside.session.execute(code)
    # The kernel may have taken the interpreter itself.
    bounded = answer["status"] != "ok" or answer["stdout"].strip() == "True"
    assert bounded == is_applied(report, "memory_limit")


def test_cpu_time_is_reported_exactly_if_it_is_counted(inside: Attacker, report: dict) -> None:
    cpu_ms = inside.session.execute("sum(range(10**7))")["metrics"]["cpu_ms"]
    assert bool(cpu_ms) == is_applied(report, "cpu_accounting")


def test_a_refused_call_is_named_exactly_if_denials_are_reported(
    inside: Attacker, report: dict
) -> None:
    refused = inside.session.execute("import os\nos.chroot('/')")
    assert refused["error"]["name"] == "PermissionError"
    assert ("chroot" in refused["error"]["message"]) == is_applied(report, "denial_reports")


def test_what_is_degraded_is_still_bounded_as_its_mechanism_says(
    inside: Attacker, report: dict
) -> None:
    limits = Observed.of(inside).limits()
    for name, mechanism, limit, most in (
        ("memory_limit", "RLIMIT_DATA", "Max data size", MEMORY_MB << 20),
        ("process_limit", "RLIMIT_NPROC", "Max processes", PROCESSES + 8),
    ):
        if row_of(report, name)["state"] == "degraded":
            assert row_of(report, name)["mechanism"] == mechanism
            assert 0 < int(limits[limit][1]) <= most
            own = resource.getrlimit(getattr(resource, mechanism))[1]  # the control: not the host's
            assert own == resource.RLIM_INFINITY or own > most


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
    server = ModeServer(mode)
    server.arguments = (*LEAN, "--log-format", "text", f"--allow-degraded={image}")
    with server:
        answer = server.post("/v1/sessions")
        assert answer.status_code == (503 if missing else 201), answer.text
        if missing:
            assert answer.headers["Content-Type"].startswith("application/problem+json")
            assert any(name in answer.text for name in missing), answer.text
