# SPDX-License-Identifier: Apache-2.0
"""Whether a session is frozen, as the server says it and as the host sees it."""

from pathlib import Path

import psutil

from harness import Session, cgroups_of, wait_until

PATIENCE_SECONDS = 60


def is_frozen(session: Session) -> bool:
    return session.fetch()["frozen"]


def wait_for_freeze(session: Session) -> None:
    # It takes a second or more, and each question costs what some milliseconds of work do.
    wait_until(lambda: is_frozen(session), PATIENCE_SECONDS, "frozen", between_most=0.2)
    wait_until(lambda: stands_still(session), PATIENCE_SECONDS, "standing still")


def kernel_of(session: Session) -> psutil.Process:
    """The interpreter, as the host sees it: the session's process without a parent in the session."""
    own = {"CELLKEEP_SESSION_ID": session.info["id"]}.items()
    found = {}
    for each in psutil.Process(session.server.process.pid).children(recursive=True):
        try:
            if own <= each.environ().items():
                found[each.pid] = (each, each.ppid())
        except psutil.Error:
            continue  # it has ended
    (kernel,) = [each for each, parent in found.values() if parent not in found]
    return kernel


def stands_still(session: Session) -> bool:
    """Whether the session is frozen, as the host sees it in cgroup v1 or v2."""
    kernel = str(kernel_of(session).pid)
    for folder in cgroups_of(session.server.process.pid):
        for own in Path(folder).iterdir():
            pids = (one.read_text(encoding="utf-8").split() for one in own.rglob("cgroup.procs"))
            if own.is_dir() and any(kernel in some for some in pids):
                for name, words in (("cgroup.events", "frozen 1"), ("freezer.state", "FROZEN")):
                    state = own / name
                    if state.exists() and words in state.read_text(encoding="utf-8"):
                        return True
    return False
