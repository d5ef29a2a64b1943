# SPDX-License-Identifier: Apache-2.0
"""smolagents: a ``CodeAgent`` whose code runs in a session."""

from __future__ import annotations

import secrets
from io import BytesIO
from typing import Any

import PIL.Image
from smolagents.local_python_executor import CodeOutput  # type: ignore[import-untyped]
from smolagents.monitoring import AgentLogger, LogLevel  # type: ignore[import-untyped]
from smolagents.remote_executors import RemotePythonExecutor  # type: ignore[import-untyped]
from smolagents.utils import AgentError  # type: ignore[import-untyped]

from cellkeep import Result

from .box import Box
from .reasons import ending_the_run

#: Seconds for one step's code.
TIMEOUT_SECONDS = 300.0
#: The server keeps 256 KiB of an exception's message. A shorter one is whole.
MESSAGE_CHARACTERS_MAX = 60_000


class CellkeepExecutor(RemotePythonExecutor):  # type: ignore[misc]  # smolagents has no types
    """``CodeAgent(…, executor=CellkeepExecutor())``.

    The session is made with ``options`` as ``Client.create`` takes them, or is that of ``box``. Code keeps its
    variables from step to step. ``cleanup`` ends the session. ``timeout`` is for one step's code, in seconds. What
    breaks the sandbox is ``SandboxLost``, because a ``CodeAgent`` takes each ``Exception`` for an error of its code.
    """

    def __init__(
        self,
        additional_imports: list[str] | None = None,
        logger: AgentLogger | None = None,
        allow_pickle: bool = False,
        *,
        box: Box | None = None,
        timeout: float = TIMEOUT_SECONDS,
        **options: Any,
    ) -> None:
        if box is not None and options:
            raise ValueError("give either a box, or what its session is made with")
        if timeout <= 0:
            raise ValueError("the time of a step is positive")
        log = logger or AgentLogger(level=LogLevel.ERROR)
        super().__init__(additional_imports or [], log, allow_pickle)
        limits = {"wall_ms": round(timeout * 1000), "cpu_ms": round(timeout * 1000)}
        options["limits"] = {**limits, **(options.get("limits") or {})}
        self.box = Box.create(**options) if box is None else box
        wall_ms = self.box.session.info.limits.get("wall_ms")
        self._timeout = timeout if wall_ms is None else min(timeout, wall_ms / 1000)
        self.installed_packages = self.install_packages(additional_imports or [])

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Runs code. ``AgentError``: the code failed. ``SandboxLost``: the sandbox did."""
        with ending_the_run():
            result = self.box.execute(code, timeout=self._timeout)
        return self._output(result)

    def _output(self, result: Result) -> CodeOutput:
        error = result.error
        if error is not None and error.name == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(self._whole(error.message), self.allow_pickle)
            return CodeOutput(output=answer, logs=result.stdout, is_final_answer=True)
        if not result.ok:
            said = error.summary if error is not None else f"status {result.status}"
            trace = "\n".join(error.traceback) if error is not None else ""
            message = f"{result.stdout}\nExecuting code yielded an error:\n{said}\n{trace}"
            raise AgentError(message, self.logger)
        return CodeOutput(output=_value(result), logs=result.stdout, is_final_answer=False)

    def _whole(self, message: str) -> str:
        """A final answer travels as the message of an exception, and the server cuts a long one."""
        if len(message) < MESSAGE_CHARACTERS_MAX:
            return message
        name = f"/workspace/.cellkeep-{secrets.token_hex(8)}"
        code = f"import sys\nwith open({name!r}, 'w') as file: file.write(sys.last_value.value)"
        with ending_the_run():
            self.box.execute(code, timeout=self._timeout)
            whole = self.box.read(name)
            self.box.run(["rm", name])
        return whole.decode()

    def cleanup(self) -> None:
        """Ends the session."""
        self.box.close()


def _value(result: Result) -> object:
    images = result.images
    if images:
        return PIL.Image.open(BytesIO(images[-1].data))
    return (result.result or {}).get("text/plain")
