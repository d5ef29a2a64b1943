# SPDX-License-Identifier: Apache-2.0
"""A driver as the kernel starts it: requests on descriptor 3, events on 4, output on 1 and 2."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WAIT_S = 120  # for an answer on a busy machine; nothing here takes a tenth of it


@dataclass
class Answer:
    events: list[dict[str, Any]]
    stdout: str
    stderr: str
    done: dict[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> str | None:
        found = [e["data"] for e in self.events if e["event"] == "result"]
        return found[-1].get("text/plain") if found else None

    @property
    def displays(self) -> list[dict[str, Any]]:
        return [e for e in self.events if e["event"] == "display"]


class Driver:
    def __init__(self, program: str, cwd: str, folder: Path | None = None) -> None:
        request_read, request_write = os.pipe()
        event_read, event_write = os.pipe()
        self._output = {name: os.pipe() for name in ("stdout", "stderr")}

        def arrange() -> None:
            # Out of the way of 3 and 4 first.
            source = fcntl.fcntl(request_read, fcntl.F_DUPFD, 50)
            sink = fcntl.fcntl(event_write, fcntl.F_DUPFD, 50)
            os.dup2(source, 3)
            os.dup2(sink, 4)
            os.closerange(5, 100)

        self.process = subprocess.Popen(
            [program, str(folder or Path(program).parent)],
            stdin=subprocess.DEVNULL,
            stdout=self._output["stdout"][1],
            stderr=self._output["stderr"][1],
            preexec_fn=arrange,
            close_fds=False,
            cwd=cwd,
        )
        for end in (request_read, event_write, self._output["stdout"][1], self._output["stderr"][1]):
            os.close(end)
        for read_end, _ in self._output.values():
            os.set_blocking(read_end, False)
        self._requests = os.fdopen(request_write, "w", encoding="utf-8")
        self._events = os.fdopen(event_read, encoding="utf-8")
        self._id = 0
        self.ready = self.next_event()

    def send(self, **request: Any) -> None:
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()

    def next_event(self) -> dict[str, Any]:
        # A driver that hangs is killed, and the end of its events ends the test.
        watch = threading.Timer(WAIT_S, self.process.kill)
        watch.start()
        try:
            line = self._events.readline()
        finally:
            watch.cancel()
        if not line:
            raise EOFError(f"the driver ended: {self.process.wait()}\n{self._drain('stderr')}")
        return json.loads(line)

    def has_event(self) -> bool:
        """Whether one can be read at once. For a driver whose last event was read to its end."""
        return bool(select.select([self._events], [], [], 0)[0])

    def _drain(self, name: str) -> str:
        text = b""
        while True:
            try:
                part = os.read(self._output[name][0], 1 << 20)
            except BlockingIOError:
                break
            if not part:
                break
            text += part
        return text.decode()

    def collect(self, inputs: Iterable[str] = ()) -> Answer:
        answers = list(inputs)
        events = []
        while True:
            event = self.next_event()
            if event["event"] == "input":
                given = {"value": answers.pop(0)} if answers else {"eof": True}
                self.send(request="input", **given)
            if event["event"] == "done":
                return Answer(events, self._drain("stdout"), self._drain("stderr"), event)
            events.append(event)

    def begin(self, code: str, **options: Any) -> int:
        self._id += 1
        request = {
            "count": self._id,
            "silent": False,
            "store_history": True,
            "allow_stdin": True,
            "user_expressions": {},
            **options,
        }
        self.send(request="execute", id=self._id, code=code, **request)
        return self._id

    def run(self, code: str, inputs: Iterable[str] = (), **options: Any) -> Answer:
        wanted = self.begin(code, **options)
        answer = self.collect(inputs)
        assert answer.done["id"] == wanted
        return answer

    def ask(self, what: str, **fields: Any) -> dict[str, Any]:
        self._id += 1
        self.send(request=what, id=self._id, **fields)
        done = self.collect().done
        assert done["id"] == self._id
        return done

    def wait_for_output(self, text: str) -> None:
        """Until the running cell has printed this."""
        seen = ""
        os.set_blocking(self._output["stdout"][0], True)
        while text not in seen:
            part = os.read(self._output["stdout"][0], 4096)
            assert part, "the driver ended"
            seen += part.decode()
        os.set_blocking(self._output["stdout"][0], False)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def close(self) -> int:
        """The driver's exit code; may be asked again."""
        if self._requests.closed:
            return self.process.wait()
        try:
            self._requests.close()
        except BrokenPipeError:
            pass  # it ended before it read all of it
        try:
            return self.process.wait(WAIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            self._events.close()
            for read_end, _ in self._output.values():
                os.close(read_end)
