# SPDX-License-Identifier: Apache-2.0
"""Hosts that lack something, made by taking it away from the server that is under test.

Whatever is taken away, `cellkeep doctor` says so and nothing else; a session is refused by the name
of the control; and where it may be waived and is, the session's report says the same as doctor did,
and the host sees the same of the session's processes.
"""

import functools
import os
import re
import sys
from pathlib import Path

import pytest

from attacker import Attacker, call_number
from harness import Server
from modes import MODES, doctor, give_to, prefix_of, skip_if_out_of_reach, states_of
from observe import LIMITS, agree

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes root to take a host's layers away")

WITHHOLD = ["/usr/bin/python3", "-B", str(Path(__file__).with_name("withhold.py"))]
NO_CGROUPS = {
    "memory_limit": "degraded",
    "process_limit": "degraded",
    "cpu_limit": "absent",
    "cpu_accounting": "absent",
    "freeze": "absent",
}

# host: (what is withheld, the controls that are missing then besides)
HOSTS: dict[str, tuple[list[str], dict[str, str]]] = {
    "kernel without Landlock": (["landlock_create_ruleset=ENOSYS"], {"landlock": "absent"}),
    "Landlock not among the lsm": (
        ["landlock_create_ruleset=EOPNOTSUPP"],
        {"landlock": "absent"},
    ),
    "no cgroup namespaces": (["unshare=EINVAL/0&0x02000000"], {"cgroup_namespace": "absent"}),
    "another filter listens": (["seccomp=EBUSY/1&8"], {"denial_reports": "absent"}),
    "no system call filters": (
        ["seccomp=EINVAL/0:1", "prctl=EINVAL/0:22"],
        {"seccomp": "absent", "denial_reports": "absent"},
    ),
    "keyrings used up": (["keyctl=EDQUOT/0:1"], {"session_keyring": "absent"}),
    "masked proc": (
        ["cover=/proc/sys"],
        {"proc": "absent", "nested_user_namespaces": "absent"},
    ),
    # These are root's: an ordinary user here has no cgroups to lose.
    "no cgroups": (["cover=/sys/fs/cgroup"], NO_CGROUPS),
    "cgroup v1 alone": (["cover=/sys/fs/cgroup/unified"], {}),
    "no pids controller": (["cover=/sys/fs/cgroup/pids"], {"process_limit": "degraded"}),
    "no memory controller": (["cover=/sys/fs/cgroup/memory"], {"memory_limit": "degraded"}),
}
OF_ROOT = ("no cgroups", "cgroup v1 alone", "no pids controller", "no memory controller")
CASES = [
    (mode, host) for mode in MODES for host in HOSTS if mode == "root" or host not in OF_ROOT
]

# host: (what is withheld, the control that cannot be waived and is missing then)
HOPELESS: dict[str, tuple[list[str], str]] = {
    "container that refuses namespaces": (
        ["clone3=ENOSYS", "clone=EPERM/0&0x10000000", "unshare=EPERM/0&0x10000000"],
        "user_namespace",
    ),
    "container that refuses mounts": (["pivot_root=EPERM"], "root_filesystem"),
    "kernel before mount_setattr": (["mount_setattr=ENOSYS"], "root_filesystem"),
    "limits that cannot be set": (["prlimit64=EPERM"], "rlimits"),
    "privileges that cannot be given up": (["prctl=EINVAL/0:38"], "no_new_privileges"),
}


def server_without(mode: str, before: list[str], *waived: str) -> Server:
    # Without zygotes, as doctor makes its sandbox; a spare would be an interpreter that nobody uses.
    degraded = (f"--allow-degraded={name}" for name in waived)
    server = Server("--log-format", "text", "--no-zygotes", "--prespawn-count", "0", *degraded)
    server.prefix = [*before, *prefix_of(mode)]
    give_to(mode, Path(server.folder.name))
    return server


@functools.cache
def usual_states(mode: str) -> dict[str, str]:
    """Of the host as it is, which does not change."""
    return states_of(doctor(mode))


def skip_if_not_here(withheld: list[str]) -> None:
    for word in withheld:
        if word.startswith("cover=") and not os.path.isdir(word[6:]):
            pytest.skip(f"this host has no {word[6:]}")


@pytest.mark.parametrize(("mode", "host"), CASES)
def test_what_is_missing_is_said_refused_and_seen(mode: str, host: str) -> None:
    withheld, missing = HOSTS[host]
    skip_if_not_here(withheld)
    before = [*WITHHOLD, *withheld, "--"]
    usual, said = usual_states(mode), doctor(mode, *before)
    now = states_of(said)
    assert now == {**usual, **missing}
    assert {name for name in missing} - set(usual) == {n for n in now if n not in usual}
    if missing:
        with server_without(mode, before, *usual) as strict:
            refused = strict.post("/v1/sessions")
            assert refused.status_code == 503, refused.text
            assert any(name in refused.text for name in missing), refused.text
            assert "--allow-degraded=" in refused.text
    with server_without(mode, before, *now) as server:
        attacker = Attacker(server, limits=LIMITS)
        rows = attacker.session.info["isolation"]["controls"]
        assert [(row["name"], row["state"], row["mechanism"]) for row in rows] == [
            (row["name"], row["state"], row["mechanism"]) for row in said["controls"]
        ]
        agree(attacker)
        assert attacker.is_well()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("host", HOPELESS)
def test_what_cannot_be_waived_refuses_every_session(mode: str, host: str) -> None:
    withheld, control = HOPELESS[host]
    before = [*WITHHOLD, *withheld, "--"]
    usual = usual_states(mode)
    said = doctor(mode, *before)
    assert not said["complete"]
    # The one that was tried and failed tells why; what comes after it was not tried.
    told = [
        row
        for row in said["controls"]
        if row["name"] not in usual
        and row["state"] != "applied"
        and "not tried" not in row["detail"]
    ]
    assert [row["name"] for row in told] == [control]
    with server_without(mode, before, *usual) as server:
        refused = server.post("/v1/sessions")
        assert refused.status_code == 503, refused.text
        assert control in refused.text
        assert not re.search(rf"--allow-degraded={control}\b", refused.text)
        assert server.get("/healthz").status_code == 200


def test_root_without_its_capabilities_gets_the_reason_and_no_session() -> None:
    before = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    said = doctor("root", *before)
    assert {row["state"] for row in said["controls"]} == {"absent"}
    assert all("capabilities" in row["detail"] for row in said["controls"][:-1])


def test_no_image_is_said_and_the_hosts_files_are_seen() -> None:
    before = ["env", "CELLKEEP_IMAGE_DIR=/proc/nothing"]
    usual = usual_states("root")
    said = doctor("root", *before)
    assert states_of(said) == {**usual, "private_image": "absent"}
    with pytest.raises(AssertionError, match="--allow-degraded=private_image"):
        server_without("root", before, *usual).start()
    with server_without("root", before, *usual, "private_image") as server:
        attacker = Attacker(server, limits=LIMITS)
        assert states_of(attacker.session.info["isolation"]) == states_of(said)
        agree(attacker)


# The server has a session keyring with a key in it. Without the filter a session can look for that.
PLANT = (
    "import ctypes, os, sys\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    f"keyctl, add_key = {call_number('keyctl')}, {call_number('add_key')}\n"
    "assert libc.syscall(keyctl, 1, b'cellkeep-test') >= 0\n"
    "assert libc.syscall(add_key, b'user', b'cellkeep-trace', b'x', ctypes.c_size_t(1), -3) >= 0\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("joined", [True, False])
def test_the_servers_keys_are_there_exactly_if_the_keyring_is_reported_absent(
    mode: str, joined: bool
) -> None:
    withheld = [*HOSTS["no system call filters"][0], *([] if joined else ["keyctl=EDQUOT/0:1"])]
    before = [sys.executable, "-B", "-c", PLANT, *WITHHOLD, *withheld, "--"]
    missing = states_of(doctor(mode, *before))
    assert ("session_keyring" in missing) == (not joined)
    with server_without(mode, before, *missing) as server:
        attacker = Attacker(server)
        found = attacker.probe("find_key", -3, "cellkeep-trace")
        assert found == ("ENOKEY" if joined else "ok")


@pytest.mark.parametrize("user", ["root", "ordinary_user"])
def test_root_of_a_container_counts_as_an_ordinary_user(user: str) -> None:
    """Root of a user namespace that is not the host's, as in a container without the host's root."""
    skip_if_out_of_reach(user)
    before = [*prefix_of(user, Path("/proc/nothing")), "unshare", "--user", "--map-root-user"]
    said = doctor("root", *before)
    assert said["mode"] == "rootless"
    now = states_of(said)
    # No image has been made for it; an ordinary user's root has no cgroup either.
    assert set(now) <= {*NO_CGROUPS, "private_image"}
    degraded = (f"--allow-degraded={name}" for name in now)
    server = Server("--log-format", "text", "--no-zygotes", "--prespawn-count", "0", *degraded)
    server.prefix = before
    give_to(user, Path(server.folder.name))
    with server:
        attacker = Attacker(server, limits=LIMITS)
        assert states_of(attacker.session.info["isolation"]) == now
        agree(attacker)


def test_where_user_namespaces_are_used_up_it_is_said() -> None:
    skip_if_out_of_reach("ordinary_user")
    # The sysctl of a namespace below: the host's own stays.
    used_up = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    nested = ["unshare", "--user", "--map-root-user", "sh", "-c", used_up, "sh"]
    said = doctor("root", *prefix_of("ordinary_user"), *nested)
    row = next(row for row in said["controls"] if row["name"] == "user_namespace")
    assert row["state"] == "absent" and "max_user_namespaces" in row["fix"], row


@pytest.mark.parametrize("mode", MODES)
def test_what_fails_before_any_control_is_said_of_all_of_them(mode: str) -> None:
    # The launcher cannot be started: a clone as posix_spawn(3) makes it.
    withheld = ["clone3=ENOSYS", "clone=EPERM/0&0x4100"]
    said = doctor(mode, *WITHHOLD, *withheld, "--")
    details = [row["detail"] for row in said["controls"] if "namespace" in row["name"]]
    assert all("Operation not permitted" in detail for detail in details), details
