# SPDX-License-Identifier: Apache-2.0
"""mini-swe-agent: ``environment_class: cellkeep_integrations.mini_swe_agent.CellkeepEnvironment``."""

from __future__ import annotations

from typing import Any

from minisweagent.exceptions import Submitted
from minisweagent.utils.serialize import recursive_merge
from pydantic import BaseModel, ConfigDict, Field

from .box import Box
from .commands import shell
from .creation import PATIENCE_SECONDS
from .reasons import OutOfTime

_DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class CellkeepEnvironmentConfig(BaseModel):
    """What may stand below ``environment:`` in a configuration."""

    model_config = ConfigDict(extra="forbid")

    cwd: str = "/workspace"
    #: Variables of each command.
    env: dict[str, str] = {}
    #: Seconds for a command.
    timeout: int = Field(30, gt=0)
    environment: str | None = None
    limits: dict[str, int | float | None] | None = None
    network: list[str] | None = None
    #: A session that is there already; ``cleanup`` lets it live.
    session: str | None = None
    #: Seconds that the start waits for a server that is full.
    patience: float = PATIENCE_SECONDS


class CellkeepEnvironment:
    """A session in which each action is a line of bash.

    What breaks the sandbox is raised as ``SandboxBroken``: the agent's run ends with this as its exit status, and
    the agent submits nothing. When a command is out of time, the model reads that in its output, as with
    mini-swe-agent's own environments.
    """

    def __init__(self, **options: Any) -> None:
        self.config = CellkeepEnvironmentConfig(**options)
        if self.config.session is not None:
            self.box = Box.adopt(self.config.session)
            return
        made = self.config.model_dump(include={"environment", "limits", "network"})
        given = {name: value for name, value in made.items() if value is not None}
        self.box = Box.create(patience=self.config.patience, **given)

    def execute(
        self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None
    ) -> dict[str, Any]:
        """Runs the action's ``command``."""
        seconds = timeout or self.config.timeout
        where = cwd or self.config.cwd
        command = action.get("command", "")
        if not isinstance(command, str) or "\0" in command:
            return _failed("", "The command is no text that a shell can have.")
        try:
            ran = self.box.run(shell(command), cwd=where, env=self.config.env, timeout=seconds)
        except OutOfTime as late:
            said = late.stdout.decode(errors="replace")
            return _failed(said, f"The command did not end within {seconds} seconds.")
        output = {"output": ran.text, "returncode": ran.exit_code, "exception_info": ""}
        _check_finished(output)
        return output

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        system = {"system": "Linux", "machine": "x86_64", "node": "sandbox"}
        merged: dict[str, Any] = recursive_merge(self.config.model_dump(), system, kwargs)
        return merged

    def serialize(self) -> dict[str, Any]:
        kind = f"{type(self).__module__}.{type(self).__name__}"
        config = {
            "environment": self.config.model_dump(mode="json"),
            "environment_type": kind,
        }
        return {"info": {"config": config}}

    def cleanup(self) -> None:
        """Ends the session, unless it was there before."""
        if self.config.session is None:
            self.box.close()
        else:
            self.box.leave()


def _failed(output: str, why: str) -> dict[str, Any]:
    return {"output": output, "returncode": -1, "exception_info": why}


def _check_finished(output: dict[str, Any]) -> None:
    lines = output["output"].lstrip().splitlines(keepends=True)
    if output["returncode"] == 0 and lines and lines[0].strip() == _DONE:
        submission = "".join(lines[1:])
        extra = {"exit_status": "Submitted", "submission": submission}
        raise Submitted({"role": "exit", "content": submission, "extra": extra})
