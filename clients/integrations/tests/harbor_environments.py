# SPDX-License-Identifier: Apache-2.0
"""The adapter's environment for Harbor, made as Harbor's factory makes it."""

from pathlib import Path
from typing import Any

from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from cellkeep_integrations.harbor import CellkeepEnvironment

#: What Harbor's own template of a task begins with.
HELLO_IMAGE = "FROM ubuntu:24.04\n\n# Nothing to install.\n\nWORKDIR /app\n"
PUBLIC = NetworkPolicy(network_mode=NetworkMode.PUBLIC)


def build(folder: Path, policy: NetworkPolicy | None = None, **options: Any) -> CellkeepEnvironment:
    """The environment of a task, without internet unless told."""
    definition = folder / "environment"
    definition.mkdir(exist_ok=True)
    given = {"task_env_config": EnvironmentConfig(), **options}
    return CellkeepEnvironment(
        environment_dir=definition,
        environment_name="hello",
        session_id="hello__env",
        trial_paths=TrialPaths(folder / "trial"),
        network_policy=policy or NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
        **given,
    )
