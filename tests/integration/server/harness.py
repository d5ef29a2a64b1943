# SPDX-License-Identifier: Apache-2.0
"""A real `cellkeep serve` for the tests, and what has to be true when it has stopped.

The server runs on a port of its own choice with a fresh state directory. Stopping it is a test in
itself: exit status 0, and not one process, cgroup, mount, network namespace or file is left.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import psutil
import requests
from jupyter_client import BlockingKernelClient

TOKEN = "t0ken-of-the-tests"
# For servers whose tests need no library: to import them costs each a second of a processor.
LEAN = ("--preload", "none")
READY_SECONDS_MAX = 60
# Longer than a sandbox may take to be made (kLaunchPatience): a stop waits for one that is.
STOP_SECONDS_MAX = 90


def binary() -> str:
    """The path of the program under test; CTest sets it."""
    return os.environ.get(
        "CELLKEEP_BINARY", str(Path(__file__).parents[3] / "build/release/bin/cellkeep")
    )


def image_directory() -> str:
    """The directory of the environment images (image_store.hpp): for a test that changes HOME, so
    that the server does not pack a whole environment again."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return os.environ.get("CELLKEEP_IMAGE_DIR") or f"{cache}/cellkeep/images"


def wait_until(
    condition: Callable[[], bool], seconds: float, what: str, between_most: float = 0.05
) -> None:
    """Looks again and again, because no event reports the end of other processes and cgroups."""
    deadline = time.monotonic() + seconds
    pause, between = threading.Event(), 0.005
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds} s still not: {what}"
        pause.wait(between)
        between = min(between * 1.5, between_most)  # to look costs as much as what is waited for


def where_it_stands(process: psutil.Process) -> str:
    """Each thread of the process and of its descendants, with the kernel's functions it waits in:
    for a process that does not do what it should."""
    lines = []
    for each in [process, *process.children(recursive=True)]:
        for task in sorted(Path(f"/proc/{each.pid}/task").iterdir()):
            lines.append(f"{each.pid} {task.name}")
            for name in ("comm", "syscall", "stack"):
                # Threads end while we look, and an ordinary user may not see all of it.
                with contextlib.suppress(OSError):
                    lines.append("    " + (task / name).read_text().strip().replace("\n", "\n    "))
    return "\n".join(lines)


def cgroups_of(pid: int) -> list[str]:
    # os.walk, because cgroups of others vanish while we look.
    return [
        os.path.join(folder, name)
        for folder, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith(f"cellkeep-{pid}-")
    ]


def mounts() -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if "cellkeep" in line}


def still_runs(process: psutil.Process) -> bool:
    """A zombie does not: whoever adopted it has only not yet asked how it ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def network_namespaces() -> set[str]:
    folder = Path("/run/netns")
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def read_lines(answer: requests.Response) -> Iterator[bytes]:
    """The lines of a streamed answer, each as soon as it has come. iter_lines(chunk_size=1) copies what
    it has of a line for each byte: seconds for a long one."""
    rest = b""
    for chunk in answer.iter_content(chunk_size=None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def wait_for(events: Iterator[dict], kind: str) -> dict:
    """The next event of this kind. Fails if the run ends before it."""
    for event in events:
        if event["type"] == kind:
            return event
        assert event["type"] != "finished", event
    raise AssertionError(f"no {kind}")


class Session:
    """One session of the server's API, by its wire names."""

    def __init__(self, server: "Server", info: dict) -> None:
        self.server = server
        self.info = info
        self.path = "/v1/sessions/" + info["id"]

    def execute(self, code: str, **fields: object) -> dict:
        response = self.server.post(self.path + "/executions", {"code": code, **fields})
        assert response.status_code == 200, response.text
        return response.json()

    def events(self, code: str, **fields: object) -> Iterator[dict]:
        """The events of a run, as they come."""
        with self.server.request(
            "POST",
            self.path + "/executions",
            json={"code": code, **fields},
            headers={"Accept": "application/x-ndjson"},
            stream=True,
        ) as answer:
            assert answer.status_code == 200, answer.text
            for line in read_lines(answer):
                if line:
                    yield json.loads(line)

    def value(self, expression: str) -> str:
        """The repr of an expression, by the API."""
        result = self.execute(expression)
        assert result["status"] == "ok", result
        return result["result"]["text/plain"]

    def fetch(self) -> dict:
        response = self.server.get(self.path)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, action: str) -> requests.Response:
        return self.server.post(f"{self.path}/{action}")

    def delete(self) -> int:
        return self.server.request("DELETE", self.path).status_code


class Server:
    """Use as a context: leaving it stops the server and asserts that nothing is left."""

    running: ClassVar[set["Server"]] = set()  # those that are in use as a context

    def __init__(self, *arguments: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="ck-it-")
        self.state_dir = Path(self.folder.name) / "state"
        self.arguments = arguments
        self.prefix: list[str] = []  # before the command: to run it as another user
        # Besides this process's.
        self.environment = {"CELLKEEP_ENV_DIR": f"{self.folder.name}/environments"}
        self.listen = "127.0.0.1:0"
        self.socket_folders: set[Path] = set()
        self.http = requests.Session()
        self.http.headers["Authorization"] = f"Bearer {TOKEN}"

    def start(self) -> "Server":
        self.launch()
        self.await_ready()
        self.attach()
        return self

    def launch(self, *passed: int) -> None:
        """passed: descriptors that it gets besides."""
        self.mounts_before = mounts()
        self.namespaces_before = network_namespaces()
        read_end, write_end = os.pipe()
        self.log = (Path(self.folder.name) / "log").open("wb")
        command = [*self.prefix, binary(), "serve", "--listen", self.listen]
        command += ["--state-dir", str(self.state_dir)]
        command += ["--ready-fd", str(write_end), *self.arguments]
        self.process = subprocess.Popen(
            command,
            pass_fds=(write_end, *passed),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "CELLKEEP_TOKEN": TOKEN, **self.environment},
        )
        os.close(write_end)
        self.ready_fd = read_end

    def await_ready(self) -> None:
        """Waits until it says READY: sessions can begin."""
        ready, _, _ = select.select([self.ready_fd], [], [], READY_SECONDS_MAX)
        said = os.read(self.ready_fd, 100) if ready else b""
        os.close(self.ready_fd)
        if said != b"READY\n":
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not start ({said!r}):\n{self.output()}")

    def attach(self) -> None:
        """Of a server that listens."""
        self.record = json.loads((self.state_dir / "server.json").read_text(encoding="utf-8"))
        self.url = self.record["url"].rstrip("/")

    def wait_until_warm(self) -> None:
        """Waits until the zygote is ready: a session made now has the zygote's imports. A test of a
        server without spares counts its processes and cgroups from here."""

        def is_warm() -> bool:
            session = self.create()
            try:
                return session.value("'pandas' in __import__('sys').modules") == "True"
            finally:
                session.delete()

        self.wait_until_ready()  # to ask costs less than a session
        wait_until(is_warm, READY_SECONDS_MAX, "sessions are warm")

    def wait_until_ready(self) -> None:
        """Waits until the server has made its zygotes and spares, or has failed to."""

        def is_ready() -> bool:
            return self.get("/healthz").json()["state"] == "ready"

        wait_until(is_ready, READY_SECONDS_MAX, "the server is ready")

    def output(self) -> str:
        return (Path(self.folder.name) / "log").read_text(encoding="utf-8", errors="replace")

    def events(self, name: str) -> list[dict]:
        """The events of that name in a log of JSON; a line that is being written is none yet."""
        lines = self.output().splitlines(keepends=True)
        said = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        return [event for event in said if event.get("event") == name]

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def children_named(self, *beginnings: str) -> list[psutil.Process]:
        """Those whose name begins so. Others end while they are looked at: launchers, for one."""
        found = []
        for child in self.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.name().startswith(beginnings):
                    found.append(child)
        return found

    def stop(self) -> None:
        children = self.children()
        self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            stands = where_it_stands(psutil.Process(self.process.pid))
            self.process.kill()
            self.process.wait()
            raise AssertionError(
                f"SIGINT did not stop the server:\n{stands}\n{self.output()}"
            ) from None
        assert status == 0, f"exit status {status}:\n{self.output()}"
        # Nothing is left to do on the event loop either, so the stop waits for nothing.
        assert "unfinished" not in self.output(), self.output()[-2_000:]
        self.assert_nothing_left(children)
        assert not (self.state_dir / "server.json").exists()
        connections = self.state_dir / "connections"
        assert not connections.exists() or not list(connections.iterdir())
        for folder in self.socket_folders:
            assert not folder.exists(), f"{folder} is left"

    def assert_nothing_left(self, children: list[psutil.Process]) -> None:
        alive = [child for child in children if still_runs(child)]
        assert not alive, f"left running: {alive}"
        assert cgroups_of(self.process.pid) == []
        assert mounts() <= self.mounts_before
        assert network_namespaces() <= self.namespaces_before

    def __enter__(self) -> "Server":
        self.start()
        Server.running.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        is_good = False
        try:
            if self.process.poll() is None:
                self.stop()
            elif kind is None:
                raise AssertionError(f"the server ended without a signal:\n{self.output()}")
            is_good = kind is None
        finally:
            Server.running.discard(self)
            self.http.close()
            self.log.close()
            if not is_good:
                print(self.output()[-20_000:])
            self.folder.cleanup()

    def request(self, method: str, path: str, **more: object) -> requests.Response:
        return self.http.request(method, self.url + path, timeout=120, **more)

    def get(self, path: str) -> requests.Response:
        return self.request("GET", path)

    def post(self, path: str, body: object = None) -> requests.Response:
        return self.request("POST", path, json={} if body is None else body)

    def post_apart(self, path: str, body: object) -> requests.Response:
        """Sends on a connection of its own, for a second thread."""
        return requests.post(self.url + path, json=body, headers=self.http.headers, timeout=120)

    def create(self, **fields: object) -> Session:
        response = self.post("/v1/sessions", fields)
        assert response.status_code == 201, response.text
        return self.adopt(response.json())

    def adopt(self, info: dict) -> Session:
        """A session that the server has made, by what it says of it."""
        if info["connection_file"]:
            connection = json.loads(Path(info["connection_file"]).read_text(encoding="utf-8"))
            if connection["transport"] == "ipc":
                self.socket_folders.add(Path(connection["ip"]).parent)
        return Session(self, info)


class Client:
    """A stock jupyter_client attached to a session by its connection file."""

    def __init__(self, session: Session) -> None:
        self.kernel = BlockingKernelClient(connection_file=session.info["connection_file"])
        self.kernel.load_connection_file()
        self.kernel.start_channels()
        self.kernel.wait_for_ready(timeout=60)

    def close(self) -> None:
        self.kernel.stop_channels()

    def run(self, code: str, **more: object) -> tuple[dict, list[dict]]:
        """The reply's content, and the iopub messages of this request up to its idle."""
        outputs: list[dict] = []
        reply = self.kernel.execute_interactive(
            code, timeout=100, output_hook=outputs.append, **more
        )
        return reply["content"], outputs

    def value(self, expression: str) -> str:
        reply, outputs = self.run(expression)
        assert reply["status"] == "ok", reply
        results = [m for m in outputs if m["msg_type"] == "execute_result"]
        return results[0]["content"]["data"]["text/plain"]

    def wait_for_output(self, msg_type: str, seconds: float = 60) -> dict:
        """The next iopub message of this type, caused by any client."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            assert left > 0, f"no {msg_type} within {seconds} s"
            message = self.kernel.get_iopub_msg(timeout=left)
            if message["msg_type"] == msg_type:
                return message


def stream_text(outputs: list[dict], name: str = "stdout") -> str:
    return "".join(
        message["content"]["text"]
        for message in outputs
        if message["msg_type"] == "stream" and message["content"]["name"] == name
    )
