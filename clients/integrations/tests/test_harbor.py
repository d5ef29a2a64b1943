# SPDX-License-Identifier: Apache-2.0
"""Harbor: whole jobs and trials with its oracle agent and its verifier, and what a broken sandbox makes of them. Under
a newer CPython than the other tests (tests/clients/run_harbor.py)."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import end_session, session_ids
from harbor.environments.base import SandboxBuildFailedError
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.error_policy import policy_for
from harbor.models.trial.result import TrialResult
from harbor.trial.hooks import TrialEvent
from harbor.trial.trial import Trial
from harbor_environments import HELLO_IMAGE

import cellkeep_integrations.harbor as adapter
from cellkeep_integrations.harbor import MemoryLimitExceededError, RuntimeRequestError
from harness import Server

pytestmark = pytest.mark.anyio

IMPORT_PATH = "cellkeep_integrations.harbor:CellkeepEnvironment"
OFFLINE: dict[str, Any] = {"images": {"ubuntu:24.04": None}, "network": []}
SOLUTION = "echo 'Hello, world!' >hello.txt"
WRONG_SOLUTION = "echo 'Good bye' >hello.txt"
OUT_OF_MEMORY = "exec python3 -c 'bytearray(1 << 30)'"
VERIFIER = """\
python3 /tests/check.py >/logs/verifier/said.txt
echo $((1 - $?)) >/logs/verifier/reward.txt
"""
CHECK = "import sys\nsys.exit(open('/app/hello.txt').read() != 'Hello, world!\\n')\n"


def make_task(folder: Path, solution: str = SOLUTION, more: str = "", verifier: str = VERIFIER) -> Path:
    """A task in Harbor's format."""
    files = {
        "task.toml": f'schema_version = "1.4"\n[task]\nname = "tests/hello"\n{more}',
        "instruction.md": "Write 'Hello, world!' to hello.txt.\n",
        "environment/Dockerfile": HELLO_IMAGE,
        "solution/solve.sh": f"#!/bin/bash\n{solution}\n",
        "tests/test.sh": f"#!/bin/bash\n{verifier}",
        "tests/check.py": CHECK,
    }
    for name, text in files.items():
        path = folder / "hello" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "hello"


# --- whole jobs


def harbor_run(folder: Path, task: Path, **options: Any) -> dict[str, Any]:
    """``harbor run`` with its oracle agent: what its only trial came to."""
    given = {**OFFLINE, **options}
    flags = [f"{name}={json.dumps(value)}" for name, value in given.items()]
    command = [sys.executable, "-c", "from harbor.cli.main import app; app()", "run", "--yes", "--quiet"]
    command += ["--path", task, "--agent", "oracle", "--env", IMPORT_PATH, "--jobs-dir", folder / "jobs"]
    command += [part for flag in flags for part in ("--ek", flag)]
    # It neither tells anybody about this nor leaves anything in the home of who runs it.
    settings = {**os.environ, "HOME": str(folder), "HARBOR_TELEMETRY": "off"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    results = list((folder / "jobs").glob("*/*/result.json"))
    assert len(results) == 1, done.stdout + done.stderr
    (job,) = (folder / "jobs").glob("*/result.json")
    return {"job": json.loads(job.read_text()), "trial": json.loads(results[0].read_text())}


@pytest.mark.parametrize(("solution", "reward"), [(SOLUTION, 1.0), (WRONG_SOLUTION, 0.0)])
def test_a_job_of_the_hello_world_task(server: Server, tmp_path: Path, solution: str, reward: float) -> None:
    ran = harbor_run(tmp_path, make_task(tmp_path, solution))
    assert ran["trial"]["exception_info"] is None
    assert ran["trial"]["verifier_result"]["rewards"] == {"reward": reward}
    stats = ran["job"]["stats"]
    assert (stats["n_completed_trials"], stats["n_errored_trials"]) == (1, 0)
    assert session_ids() == set()


def test_a_job_with_a_task_that_is_refused(server: Server, tmp_path: Path) -> None:
    ran = harbor_run(tmp_path, make_task(tmp_path), images={})
    assert ran["job"]["stats"]["n_errored_trials"] == 1
    assert ran["trial"]["verifier_result"] is None
    assert "does not name it" in ran["trial"]["exception_info"]["exception_message"]


def test_a_job_at_a_full_server_is_an_error(full_server: Server, tmp_path: Path) -> None:
    ran = harbor_run(tmp_path, make_task(tmp_path), patience=0.2)
    assert ran["job"]["stats"]["n_errored_trials"] == 1
    assert ran["trial"]["verifier_result"] is None
    assert ran["trial"]["exception_info"]["exception_type"] == "RuntimeRequestError"
    assert "capacity: " in ran["trial"]["exception_info"]["exception_message"]


# --- trials


async def run_trial(
    folder: Path, task: Path, end_at: TrialEvent | None = None, **options: Any
) -> TrialResult:
    """A trial, whose session somebody else ends at an event."""
    config = TrialConfig.model_validate(
        {
            "task": {"path": task},
            "trials_dir": folder / "trials",
            "agent": {"name": "oracle"},
            "environment": {"import_path": IMPORT_PATH, "kwargs": {**OFFLINE, **options}},
        }
    )
    trial = await Trial.create(config)

    async def end(_: Any) -> None:
        await asyncio.to_thread(end_session, trial.agent_environment.box.id)

    if end_at is not None:
        trial.add_hook(end_at, end)
    return await trial.run()


def check_no_reward(result: TrialResult, kind: str, reason: str) -> None:
    """That Harbor counts it as an error of the infrastructure, which it may try again."""
    assert result.exception_info is not None
    assert result.exception_info.exception_type == kind
    assert f"{reason}: " in result.exception_info.exception_traceback
    policy = result.exception_info.policy
    assert (policy.should_retry, policy.should_grade, policy.has_valid_reward) == (True, False, False)
    assert result.verifier_result is None


async def test_a_trial_brings_its_logs(server: Server, tmp_path: Path) -> None:
    solution = "echo said; echo kept >/logs/artifacts/kept.txt; " + SOLUTION
    result = await run_trial(tmp_path, make_task(tmp_path, solution))
    assert result.exception_info is None, result.exception_info
    assert result.verifier_result is not None
    assert result.verifier_result.rewards == {"reward": 1.0}
    (trial,) = (tmp_path / "trials").iterdir()
    assert (trial / "agent/oracle.txt").read_text() == "said\n"
    assert (trial / "verifier/said.txt").exists()
    assert (trial / "artifacts/logs/artifacts/kept.txt").read_text() == "kept\n"
    assert session_ids() == set()


async def test_a_verifier_of_its_own_session(server: Server, tmp_path: Path) -> None:
    more = '[verifier]\nenvironment_mode = "separate"\n[[artifacts]]\nsource = "/app/hello.txt"\n'
    result = await run_trial(tmp_path, make_task(tmp_path, more=more))
    assert result.exception_info is None, result.exception_info
    assert result.verifier_result is not None
    assert result.verifier_result.rewards == {"reward": 1.0}
    assert session_ids() == set()


@pytest.mark.parametrize(
    ("event", "kind"),
    [(TrialEvent.AGENT_START, "RuntimeRequestError"), (TrialEvent.VERIFICATION_START, "RuntimeRequestError")],
)
async def test_a_session_that_ends_meanwhile(server: Server, tmp_path: Path, event: TrialEvent, kind: str) -> None:
    result = await run_trial(tmp_path, make_task(tmp_path), end_at=event)
    check_no_reward(result, kind, "dead")
    assert session_ids() == set()


@pytest.mark.parametrize("phase", ["solution", "verifier"])
async def test_a_trial_without_memory(server: Server, tmp_path: Path, phase: str) -> None:
    task = make_task(tmp_path, more="[environment]\nmemory_mb = 128\n", **{phase: OUT_OF_MEMORY})
    result = await run_trial(tmp_path, task)
    check_no_reward(result, "MemoryLimitExceededError", "oom")
    assert session_ids() == set()


async def test_a_trial_of_a_full_server(full_server: Server, tmp_path: Path) -> None:
    result = await run_trial(tmp_path, make_task(tmp_path), patience=0.2)
    check_no_reward(result, "RuntimeRequestError", "capacity")


async def test_a_trial_without_a_server(nowhere: None, tmp_path: Path) -> None:
    result = await run_trial(tmp_path, make_task(tmp_path))
    check_no_reward(result, "RuntimeRequestError", "unreachable")


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ('[agent]\nuser = "nobody"\n', "wants the user 'nobody'"),
        ('[agent]\nuser = "root"\n', "wants the user 'root'"),
        ('[verifier]\nuser = "nobody"\n', "wants the user 'nobody'"),
        ('[verifier]\nenvironment_mode = "separate"\n[verifier.environment]\ndocker_image = "x"\n', "brings its tests"),
        ('[environment]\nworkdir = "/opt/work"\n', "cannot have the working directory /opt/work"),
    ],
)
async def test_a_trial_that_a_session_cannot_have(server: Server, tmp_path: Path, more: str, part: str) -> None:
    result = await run_trial(tmp_path, make_task(tmp_path, more=more))
    assert result.exception_info is not None
    assert result.exception_info.exception_type == "SandboxBuildFailedError"
    assert part in result.exception_info.exception_message
    assert result.verifier_result is None
    assert session_ids() == set()


def test_harbor_counts_them_as_the_infrastructure_s() -> None:
    for kind in (RuntimeRequestError, MemoryLimitExceededError, SandboxBuildFailedError):
        policy = policy_for(kind.__name__)
        assert not policy.should_grade and not policy.has_valid_reward


# --- the module


@pytest.mark.timeout(570)
def test_the_types_are_strict(tmp_path: Path) -> None:
    # Harbor has types and does not say so.
    flags = ["--strict", "--follow-untyped-imports", "--cache-dir", tmp_path / "cache"]
    command = [sys.executable, "-m", "mypy", *flags, adapter.__file__]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
