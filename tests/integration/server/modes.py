# SPDX-License-Identifier: Apache-2.0
"""The two ways of running the server that this host can show: as root and as an ordinary user.

A test that is marked `both_modes`, or whose file is, runs once for each; any other runs as the
test's own user, and so does one that is marked `both_modes(False)`, because it takes long and is
not about the wall. CELLKEEP_TEST_MODE chooses: "own" (as the test's own user), "other", or both.

A test with the parameter `maker` runs once for each kind of sandbox: a zygote's and the launcher's.
CELLKEEP_TEST_MAKER chooses: "launcher" (those tests alone), "zygote" (all others), or both.
"""

import contextlib
import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Server, Session, binary

# No other process has this user, so the kernel counts only this test's processes for it.
NOBODY = 64_000 + os.getpid() % 1_000
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
# Without a home there is no place for a private image, so that mode shows the host's files.
AS_NOBODY += ["env", "-u", "CELLKEEP_IMAGE_DIR", "-u", "XDG_CACHE_HOME", "HOME=/nonexistent"]
MODES = ["root", "ordinary_user"] if os.geteuid() == 0 else ["ordinary_user"]
# Who makes the sandboxes of a server's sessions.
MAKERS = ["zygote", "launcher"]


def choose_modes(metafunc: pytest.Metafunc) -> None:
    """The parameters `mode` and `maker` of every test that depends on them; for pytest_generate_tests."""
    if "mode" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("both_modes")
        both = marker is not None and marker.args != (False,)
        metafunc.parametrize("mode", MODES if both else MODES[:1], scope="module")
    if "maker" in metafunc.fixturenames:
        metafunc.parametrize("maker", MAKERS, scope="module")


def keep_chosen(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that the two variables leave out; for pytest_collection_modifyitems."""

    def value_of(item: pytest.Item, name: str) -> str | None:
        return item.callspec.params.get(name) if hasattr(item, "callspec") else None

    def keep(variable: str, first: str, second: str, is_first: Callable[[pytest.Item], bool]) -> None:
        chosen = os.environ.get(variable, "both")
        if chosen not in (first, second, "both"):
            raise pytest.UsageError(f"{variable}={chosen}: {first}, {second} or both")
        if chosen != "both":
            left_out = [item for item in items if is_first(item) != (chosen == first)]
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if is_first(item) == (chosen == first)]

    keep("CELLKEEP_TEST_MODE", "own", "other", lambda item: value_of(item, "mode") in (None, MODES[0]))
    keep("CELLKEEP_TEST_MAKER", "launcher", "zygote", lambda item: value_of(item, "maker") == "launcher")


def prefix_of(mode: str, images: Path | None = None) -> list[str]:
    """The words before a command that run it as that mode's user, with its images in `images`."""
    prefix = AS_NOBODY if mode == "ordinary_user" and os.geteuid() == 0 else []
    return [*prefix, *([] if images is None else ["env", f"CELLKEEP_IMAGE_DIR={images}"])]


def skip_if_out_of_reach(mode: str) -> None:
    """Skips the test if that mode's user cannot run the program: the clone is in a private folder."""
    prefix = prefix_of(mode)
    if prefix and subprocess.run([*prefix, "test", "-x", binary()], cwd="/").returncode != 0:
        pytest.skip(f"an ordinary user cannot reach {binary()}")


def doctor(mode: str, *before: str) -> dict:
    """Runs `cellkeep doctor --json` as that mode's user; `before` comes before the change of user."""
    skip_if_out_of_reach(mode)
    prefix = prefix_of(mode)
    answer = subprocess.run(
        [*before, *prefix, binary(), "doctor", "--json"], cwd="/", capture_output=True, timeout=60
    )
    assert answer.returncode in (0, 1), answer.stderr.decode()
    return json.loads(answer.stdout)


def states_of(report: dict) -> dict[str, str]:
    """The state of each control that is not applied."""
    return {
        row["name"]: row["state"] for row in report["controls"] if row["state"] != "applied"
    }


def has(session: Session, control: str) -> bool:
    """Whether the session's own report says that the control is applied."""
    names = {row["name"] for row in session.info["isolation"]["controls"]}
    assert control in names, control
    return control not in states_of(session.info["isolation"])


@functools.cache
def missing_controls(mode: str) -> tuple[str, ...]:
    return tuple(states_of(doctor(mode)))


@contextlib.contextmanager
def open_folder(mode: str) -> Iterator[Path]:
    """A directory of that mode's user that every user may look into, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ck-it-") as name:
        os.chmod(name, 0o755)
        give_to(mode, Path(name))
        yield Path(name)


def give_to(mode: str, *paths: Path) -> None:
    if prefix_of(mode):
        for path in paths:
            os.chown(path, NOBODY, NOBODY)


class ModeServer(Server):
    """A server of that mode's user; it waives exactly the controls that doctor reports as missing."""

    def __init__(self, mode: str, *arguments: str, images: Path | None = None) -> None:
        missing = [
            name for name in missing_controls(mode) if images is None or name != "private_image"
        ]
        super().__init__(*(f"--allow-degraded={name}" for name in missing), *arguments)
        self.prefix = prefix_of(mode, images)
        give_to(mode, Path(self.folder.name))
