# SPDX-License-Identifier: Apache-2.0
"""Harbor: what a task may ask a session for, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from conftest import session_ids
from harbor.environments.base import SandboxBuildFailedError
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy, TpuSpec
from harbor_environments import HELLO_IMAGE, PUBLIC, build

from cellkeep_integrations.harbor import CellkeepEnvironment, MemoryLimitExceededError
from harness import TOKEN, Server

pytestmark = pytest.mark.anyio


def test_images_that_a_session_stands_for(tmp_path: Path) -> None:
    images = {"ubuntu:24.04": "named", "*": "other"}

    def stand_in(image: str | None) -> str | None:
        config = EnvironmentConfig(docker_image=image)
        made = build(tmp_path, task_env_config=config, images=images, environment="mine")
        made._read_definition()
        return made._session()["environment"]

    assert [stand_in(image) for image in ("ubuntu:24.04", "debian:13", None)] == ["named", "other", "mine"]
    (tmp_path / "environment/Dockerfile").write_text(HELLO_IMAGE)
    assert stand_in(None) == "named"


@pytest.mark.parametrize(
    "dockerfile",
    [
        "",
        "WORKDIR /app\n",
        "FROM\n",
        "FROM ubuntu:24.04 AS base\n",
        "FROM --platform=linux/arm64 ubuntu:24.04\n",
        "FROM debian:13\n",
        "FROM ubuntu:24.04\nRUN apt-get install -y vim\n",
        "FROM ubuntu:24.04\nCOPY . /app\n",
        "FROM ubuntu:24.04\nWORKDIR /app\\\n\nUSER nobody\n",
        "FROM ubuntu:24.04\nWORKDIR $HOME\n",
        "FROM ubuntu:24.04\nFROM ubuntu:24.04\n",
    ],
)
def test_dockerfiles_that_want_to_be_built(tmp_path: Path, dockerfile: str) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment/Dockerfile").write_text(dockerfile)
    with pytest.raises(SandboxBuildFailedError):
        build(tmp_path, images={"ubuntu:24.04": None})._read_definition()


ALLOWED = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["example.org"])
HOST_MOUNT = [{"type": "bind", "source": "/tmp", "target": "/data"}]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"policy": PUBLIC}, "environment.kwargs.network"),
        ({"policy": ALLOWED}, "allowlist"),
        ({"mounts": HOST_MOUNT}, "mounts nothing"),
        ({"task_env_config": EnvironmentConfig(docker_image="debian:13")}, "the image debian:13"),
        ({"task_env_config": EnvironmentConfig(gpus=1)}, "GPU"),
        ({"task_env_config": EnvironmentConfig(os="windows")}, "Windows"),
        ({"task_env_config": EnvironmentConfig(tpu=TpuSpec(type="v6e", topology="2x4"))}, "TPU"),
        ({"memory_enforcement_policy": "guarantee"}, "memory resource requests"),
        ({"cpu_enforcement_policy": "request"}, "CPU resource requests"),
        ({"auto_mounting": True}, "mounts"),
        ({"enable_environment_dir_upload": False}, "brings its tests"),
        ({"image": "x"}, "Unknown option 'image'"),
        ({"network": "example.org"}, "network"),
        ({"stream": True}, "stream"),
    ],
)
def test_what_a_session_does_not_offer(tmp_path: Path, options: dict[str, Any], part: str) -> None:
    with pytest.raises((ValueError, RuntimeError, SandboxBuildFailedError), match=part):
        build(tmp_path, **options)._read_definition()


def test_no_compose_file(tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment/docker-compose.yaml").write_text("services: {}\n")
    with pytest.raises(SandboxBuildFailedError, match=r"docker-compose\.yaml"):
        build(tmp_path)._read_definition()


async def test_nothing_is_built_by_force(server: Server, tmp_path: Path) -> None:
    build(tmp_path)
    (tmp_path / "environment/Dockerfile").write_text(HELLO_IMAGE)
    made = build(tmp_path, images={"*": None})
    with pytest.raises(SandboxBuildFailedError, match="--force-build"):
        await made.start(force_build=True)
    assert session_ids() == set()


def test_limits_and_network_of_the_session(tmp_path: Path) -> None:
    config = EnvironmentConfig(cpus=0.5, memory_mb=256, storage_mb=64)
    asked = build(tmp_path, PUBLIC, task_env_config=config, network=["*:443"], limits={"memory_mb": 512})._session()
    assert asked["limits"] == {"cpu_cores": 0.5, "memory_mb": 512, "disk_mb": 64}
    assert asked["network"] == ["*:443"]
    ignored = build(tmp_path, task_env_config=config, memory_enforcement_policy="ignore", network=["*:443"])._session()
    assert ignored["limits"] == {"cpu_cores": 0.5, "disk_mb": 64}
    assert ignored["network"] is None


async def test_the_limits_reach_the_session(server: Server, tmp_path: Path) -> None:
    made = build(tmp_path, task_env_config=EnvironmentConfig(memory_mb=128))
    await made.start(force_build=False)
    with pytest.raises(MemoryLimitExceededError) as caught:
        await made.exec("python3 -c 'bytearray(1 << 30)'")
    assert caught.value.reason == "oom"
    assert (await made.exec("echo alive")).stdout == "alive\n"
    await made.stop(delete=True)


def test_preflight(server: Server) -> None:
    CellkeepEnvironment.preflight({"network": []})
    with pytest.raises(ValueError, match="patience"):
        CellkeepEnvironment.preflight({"patience": "long"})


def test_preflight_without_a_server(nowhere: None) -> None:
    with pytest.raises(SystemExit, match="unreachable"):
        CellkeepEnvironment.preflight({})


def test_preflight_with_a_wrong_token(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLKEEP_TOKEN", TOKEN + "x")
    with pytest.raises(SystemExit, match="refused"):
        CellkeepEnvironment.preflight({})
