# SPDX-License-Identifier: Apache-2.0
"""The driver of kernels/javascript/ alone: lines of JSON on its descriptors 3 and 4, no kernel.

What is tested here is the language. The same driver inside a session is in tests/integration/server.
"""

import fcntl
import json
import os
import queue
import signal
import subprocess
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NODE = os.environ.get("CELLKEEP_NODE", "node")
PACKAGES = os.environ.get("CELLKEEP_JAVASCRIPT_PACKAGES", str(ROOT / "build/environments/javascript"))
# A hang is a failure. Far longer than anything takes, also on a busy machine.
EVENT_S_MAX = 60
# Above what the child's own descriptors need.
SPARE_FD = 20


def arguments(language: str) -> list[str]:
    """The command line of kernel.json."""
    folder = ROOT / "kernels"
    about = json.loads((folder / language / "kernel.json").read_text())
    values = {
        "{program:node}": NODE,
        "{packages}": PACKAGES,
        "{folder}": str(folder / language),
        "{folder:javascript}": str(folder / "javascript"),
    }
    words = []
    for word in about["argv"]:
        for name, value in values.items():
            word = word.replace(name, value)
        words.append(word)
    return words


class Result:
    """What one request was answered with: its events, and the `done`."""

    def __init__(self, events: list[dict]):
        self.events = events
        self.done = events[-1]

    @property
    def ok(self) -> bool:
        return self.done["status"] == "ok"

    def text(self, stream: str = "stdout") -> str:
        return "".join(event["text"] for event in self.events if event["event"] == stream)

    def all(self, kind: str) -> list[dict]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def value(self) -> str | None:
        """The result as plain text; None if there is none."""
        results = self.all("result")
        assert len(results) <= 1, results
        return results[0]["data"]["text/plain"] if results else None

    @property
    def place(self) -> tuple:
        return self.done.get("line"), self.done.get("column")


class Driver:
    def __init__(self, language: str = "javascript", directory: Path | None = None, env: dict | None = None):
        ends = [os.pipe() for _ in range(4)]  # requests, events, stdout, stderr
        theirs = [ends[0][0], ends[1][1], ends[2][1], ends[3][1]]

        def arrange() -> None:
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, SPARE_FD) for fd in theirs]
            for fd, wanted in zip(high, (3, 4, 1, 2), strict=True):
                os.dup2(fd, wanted)
                os.close(fd)

        self.process = subprocess.Popen(
            arguments(language),
            stdin=subprocess.DEVNULL,
            preexec_fn=arrange,
            pass_fds=(3, 4),
            cwd=directory,
            env={**os.environ, **(env or {})},
        )
        for fd in theirs:
            os.close(fd)
        self.requests = os.fdopen(ends[0][1], "wb", 0)
        self.raw = {"stdout": os.fdopen(ends[2][0], "rb"), "stderr": os.fdopen(ends[3][0], "rb")}
        self.events: queue.Queue = queue.Queue()
        self.reader = threading.Thread(target=self._read, args=(os.fdopen(ends[1][0], "rb"),))
        self.reader.start()
        self.id = 0
        self.ready = self.event()
        assert self.ready["event"] == "ready", self.ready

    def _read(self, source) -> None:
        with source:
            for line in source:
                self.events.put(json.loads(line))
        self.events.put(None)

    def event(self) -> dict:
        """The next event. Fails if there is none in time, or the driver has ended."""
        event = self.events.get(timeout=EVENT_S_MAX)
        if event is None:
            self.events.put(None)
            raise EOFError("the driver has ended")
        return event

    def send(self, **request) -> None:
        self.requests.write(json.dumps(request).encode() + b"\n")

    def begin(self, code: str, **options) -> int:
        self.id += 1
        fields = {"silent": False, "store_history": True, "allow_stdin": False, "user_expressions": {}}
        self.send(request="execute", id=self.id, code=code, count=self.id, **{**fields, **options})
        return self.id

    def finish(self) -> Result:
        events = []
        while not events or events[-1]["event"] != "done":
            events.append(self.event())
        assert events[-1]["id"] == self.id
        return Result(events)

    def until(self, text: str) -> None:
        """Waits until the cell has printed the text."""
        seen = ""
        while text not in seen:
            event = self.event()
            assert event["event"] == "stdout", event
            seen += event["text"]

    def run(self, code: str, **options) -> Result:
        self.begin(code, **options)
        return self.finish()

    def value(self, code: str, **options) -> str | None:
        result = self.run(code, **options)
        assert result.ok, result.done
        return result.value

    def fails(self, code: str, **options) -> dict:
        result = self.run(code, **options)
        assert result.done["status"] == "error", result.events
        return result.done

    def ask(self, request: str, **fields) -> dict:
        self.id += 1
        self.send(request=request, id=self.id, **fields)
        return self.finish().done

    def interrupt(self) -> None:
        self.send(request="interrupt")

    def wait(self) -> int:
        return self.process.wait(timeout=EVENT_S_MAX)

    def close(self) -> None:
        if not self.requests.closed:
            self.requests.close()
        try:
            self.process.wait(timeout=EVENT_S_MAX)
        finally:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.reader.join()
            for stream in self.raw.values():
                stream.close()
