# SPDX-License-Identifier: Apache-2.0
"""Harbor: commands, files and folders of the environment, and its failures."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import end_session, session_ids
from harbor.environments.base import SandboxBuildFailedError
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.error_policy import policy_for
from harbor_environments import build

import cellkeep_integrations.harbor as adapter
from cellkeep import Client
from cellkeep_integrations.harbor import CellkeepEnvironment, CommandTimeoutError, RuntimeRequestError
from harness import Server

pytestmark = pytest.mark.anyio


@pytest.fixture
async def environment(server: Server, tmp_path: Path) -> AsyncIterator[CellkeepEnvironment]:
    made = build(tmp_path)
    await made.start(force_build=False)
    yield made
    await made.stop(delete=True)


async def test_a_command(environment: CellkeepEnvironment) -> None:
    ran = await environment.exec("echo out; echo err >&2; pwd; exit 3")
    assert (ran.stdout, ran.stderr, ran.return_code) == ("out\n/workspace/app\n", "err\n", 3)
    assert (await environment.exec("pwd", cwd="/tmp")).stdout == "/tmp\n"
    assert (await environment.exec("set -o pipefail; false | true")).return_code == 1
    long = "echo " + "x" * (1 << 18)
    assert (await environment.exec(long)).stdout == "x" * (1 << 18) + "\n"


async def test_variables_of_a_command(server: Server, tmp_path: Path) -> None:
    config = EnvironmentConfig(env={"ONE": "task"})
    made = build(tmp_path, task_env_config=config, persistent_env={"TWO": "trial"})
    await made.start(force_build=False)
    with made.scoped_exec_env({"THREE": "scope"}):
        ran = await made.exec("echo $ONE $TWO $THREE $FOUR", env={"FOUR": "call"})
    assert ran.stdout == "task trial scope call\n"
    await made.stop(delete=True)


async def test_a_command_that_is_out_of_time(environment: CellkeepEnvironment) -> None:
    with pytest.raises(CommandTimeoutError, match="timed out after 1 seconds"):
        await environment.exec("sleep 60", timeout_sec=1)
    # As with Harbor's own environments, the trial goes on and is graded.
    assert policy_for("CommandTimeoutError") == policy_for("RuntimeError")
    assert (await environment.exec("echo alive", timeout_sec=60)).stdout == "alive\n"


async def test_a_command_whose_caller_gives_up_is_killed(environment: CellkeepEnvironment) -> None:
    task = asyncio.create_task(environment.exec("echo $$ >/tmp/pid; touch /tmp/begun; sleep 600"))
    await environment.exec("until [ -e /tmp/begun ]; do sleep 0.05; done", timeout_sec=60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gone = "while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.05; done"
    assert (await environment.exec(gone, timeout_sec=60)).return_code == 0


@pytest.mark.parametrize("user", ["nobody", 1001, ""])
async def test_there_is_one_user(environment: CellkeepEnvironment, user: str | int) -> None:
    with pytest.raises(SandboxBuildFailedError):
        await environment.exec("true", user=user)
    for own in (None, "cellkeep", 1000, "root", 0):
        assert (await environment.exec("whoami", user=own)).stdout == "cellkeep\n"


async def test_files_and_folders(environment: CellkeepEnvironment, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "empty").mkdir(parents=True)
    (source / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("run.sh")
    (source / "large").write_bytes(os.urandom(3 << 20))
    await environment.upload_dir(source, "/tests/sub dir")
    assert (await environment.exec("'/tests/sub dir/link'; ls '/tests/sub dir'")).stdout == (
        "ran\nempty\nlarge\nlink\nrun.sh\n"
    )
    back = tmp_path / "back"
    (back / "kept").mkdir(parents=True)
    (back / "run.sh").write_text("old")
    await environment.download_dir("/tests/sub dir", back)
    assert (back / "run.sh").read_text() == (source / "run.sh").read_text()
    assert os.access(back / "run.sh", os.X_OK)
    assert (back / "link").readlink() == Path("run.sh")
    assert (back / "large").read_bytes() == (source / "large").read_bytes()
    assert {path.name for path in back.iterdir()} == {"empty", "kept", "large", "link", "run.sh"}

    await environment.upload_file(source / "large", "deep/er/large")
    assert await environment.is_file("/app/deep/er/large") and await environment.is_dir("/app/deep")
    await environment.download_file("/workspace/app/deep/er/large", tmp_path / "one" / "large")
    assert (tmp_path / "one/large").read_bytes() == (source / "large").read_bytes()
    assert (await environment.exec("ls -A /workspace")).stdout == "app\nlogs\nsolution\ntests\n"


async def test_parts_of_a_folder(environment: CellkeepEnvironment, tmp_path: Path) -> None:
    await environment.exec("mkdir -p d; touch d/a.txt d/b.log d/c.txt")
    await environment.download_dir_filtered(source_dir="/app/d", target_dir=tmp_path / "1", include=["*.txt"])
    await environment.download_dir_with_exclusions(source_dir="/app/d", target_dir=tmp_path / "2", exclude=["a.txt"])
    assert sorted(path.name for path in (tmp_path / "1").iterdir()) == ["a.txt", "c.txt"]
    assert sorted(path.name for path in (tmp_path / "2").iterdir()) == ["b.log", "c.txt"]


async def test_folders_are_emptied(environment: CellkeepEnvironment) -> None:
    for name in ("/tests", "/logs/verifier", "/tmp/x"):
        await environment.ensure_dirs([name])
        await environment.exec(f"touch {name}/old")
        emptied = await environment.empty_dirs([name])
        assert emptied is not None and emptied.return_code == 0
        assert (await environment.exec(f"ls -A {name}")).stdout == ""
        again = await environment.reset_dirs(remove_dirs=[name], create_dirs=[name], chmod_dirs=[name])
        assert again.return_code == 0
        assert await environment.is_dir(name)


async def test_what_is_not_there(environment: CellkeepEnvironment, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await environment.download_file("/app/none", tmp_path / "none")
    with pytest.raises(OSError, match="/app/none"):
        await environment.download_dir("/app/none", tmp_path / "none")
    with pytest.raises(OSError, match="/usr/none"):
        await environment.upload_dir(tmp_path, "/usr/none")
    with pytest.raises(FileNotFoundError):
        await environment.upload_dir(tmp_path / "none", "/app")
    with pytest.raises(FileNotFoundError):
        await environment.upload_file(tmp_path / "none", "/app/none")
    assert not await environment.is_dir("/app/none") and not await environment.is_file("/app/none")


async def test_a_folder_that_is_too_large(
    environment: CellkeepEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await environment.exec("head -c 100000 /dev/urandom >noise")
    monkeypatch.setattr(adapter, "_FOLDER_BYTES_MAX", 1 << 20)
    await environment.download_dir("/app", tmp_path / "fits")
    monkeypatch.setattr(adapter, "_FOLDER_BYTES_MAX", 1 << 10)
    with pytest.raises(OSError, match="has more than"):
        await environment.download_dir("/app", tmp_path / "large")


async def test_files_of_a_task_without_a_dockerfile(server: Server, tmp_path: Path) -> None:
    for config in (EnvironmentConfig(), EnvironmentConfig(docker_image="debian:13")):
        made = build(tmp_path, task_env_config=config, images={"*": None})
        (tmp_path / "environment/data.txt").write_text("data\n")
        await made.start(force_build=False)
        assert (await made.exec("cat data.txt")).stdout == "data\n"
        await made.stop(delete=True)


async def test_a_session_that_lives_on(server: Server, tmp_path: Path) -> None:
    made = build(tmp_path)
    await made.start(force_build=False)
    first = made.box.id
    await made.start(force_build=False)
    assert session_ids() == {made.box.id} != {first}
    kept = made.box.id
    await made.stop(delete=False)
    with pytest.raises(RuntimeError, match="no session"):
        await made.exec("true")
    assert session_ids() == {kept}
    with Client() as client:
        assert client.session(kept).info.metadata["harbor"] == "hello__env"
    end_session(kept)
    await made.stop(delete=True)


# --- failures

Use = Callable[[CellkeepEnvironment, Path], Awaitable[Any]]
USES: list[Use] = [
    lambda made, _: made.exec("true"),
    lambda made, folder: made.upload_file(folder / "f", "/app/f"),
    lambda made, folder: made.upload_dir(folder, "/app/f"),
    lambda made, folder: made.download_file("/etc/passwd", folder / "g"),
    lambda made, folder: made.download_dir("/etc", folder / "d"),
]


@pytest.mark.parametrize("use", USES)
async def test_a_dead_session(environment: CellkeepEnvironment, tmp_path: Path, use: Use) -> None:
    (tmp_path / "f").write_text("x")
    end_session(environment.box.id)
    with pytest.raises(RuntimeRequestError) as caught:
        await use(environment, tmp_path)
    assert caught.value.reason == "dead"


@pytest.mark.parametrize("folder", [True, False])
async def test_a_full_disk(server: Server, tmp_path: Path, folder: bool) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/noise").write_bytes(os.urandom(15 << 20))
    made = build(tmp_path, task_env_config=EnvironmentConfig(storage_mb=16))
    await made.start(force_build=False)
    with pytest.raises(RuntimeRequestError) as caught:
        if folder:
            await made.upload_dir(tmp_path / "source", "/tests")
        else:
            await made.upload_file(tmp_path / "source/noise", "/tests/noise")
    assert caught.value.reason == "disk_full"
    await made.stop(delete=True)


async def test_an_unknown_environment_is_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(RuntimeRequestError) as caught:
        await build(tmp_path, environment="none").start(force_build=False)
    assert caught.value.reason == "refused"
