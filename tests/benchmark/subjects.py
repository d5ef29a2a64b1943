# SPDX-License-Identifier: Apache-2.0
"""The subjects of the comparison: each makes sessions, and a session executes code.

A subject that is a server runs from start() to stop(); a kernel alone has no server.
"""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from clients import Client, HttpConnection, RestClient, WebSocketClient, ZmqClient
from jupyter_client.manager import KernelManager
from processes import (
    READY_SECONDS_MAX,
    by_pid_namespace,
    descendants,
    start_server,
    stop_server,
    tail,
    wait_until,
)

TOKEN = "t0ken-of-the-benchmark"
IMAGE_SECONDS_MAX = 600.0
ZMQ, WS, REST = "ZeroMQ", "WebSocket", "REST"


class Session:
    """One interpreter and the ways to it, by name. `main` is the usual way of its subject."""

    main = ""
    ways: dict[str, Callable[[], Client]]

    def first_result(self, code: str = "1+1", result: str | None = "2") -> None:
        """Runs the first code of a new session, over the main way."""
        client = self.ways[self.main]()
        try:
            client.execute(code).checked(result)
        finally:
            client.close()

    def value(self, expression: str) -> str:
        client = self.ways[self.main]()
        try:
            return client.execute(expression).checked().result
        finally:
            client.close()

    def pids(self) -> set[int]:
        """The processes of this session only."""
        pid = int(self.value("__import__('os').getpid()"))
        return {pid} | descendants(pid)

    def close(self) -> None:
        raise NotImplementedError


class Subject:
    name = ""
    ways: tuple[str, ...] = ()
    server: subprocess.Popen | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self) -> None:
        """Returns when sessions can be made."""

    def stop(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            stop_server(server)

    def open(self) -> Session:
        raise NotImplementedError

    def server_pids(self) -> set[int]:
        return {self.server.pid} if self.server else set()

    def pids(self) -> set[int]:
        """The server's process and all its descendants."""
        return self.server_pids().union(*map(descendants, self.server_pids()))

    def session_pids(self, sessions: list[Session]) -> set[int]:
        """The processes of these sessions only."""
        return set().union(*(session.pids() for session in sessions))


def cellkeep_arguments(state: Path, sessions_max: int, spares: int) -> list[str]:
    """The server as it is measured: its defaults, except for address, folder and number of sessions."""
    arguments = ["--listen", "127.0.0.1:0", "--state-dir", str(state)]
    arguments += ["--max-sessions", str(sessions_max)]
    return [*arguments, "--prespawn-count", str(spares)] if spares else arguments


def cellkeep_session(spares: int, language: str = "") -> dict:
    """The body of the request for a session: empty, or the limits of the spares (--kernel-…)."""
    if language:
        return {"language": language}
    if not spares:
        return {}
    limits = {"cpu_cores": 2, "memory_mb": 2048, "disk_mb": 1024, "processes": 256}
    return {"limits": limits}


class CellkeepSession(Session):
    main = REST

    def __init__(self, subject: "Cellkeep", language: str = "") -> None:
        self._subject = subject
        self._http = HttpConnection(subject.url, TOKEN)
        body = cellkeep_session(subject.spares, language)
        info = self._http.call("POST", "/v1/sessions", body)
        self._http.close()  # a thousand sessions do not need as many connections
        self._path = f"/v1/sessions/{info['id']}"
        self.ways = {
            ZMQ: lambda: ZmqClient(Path(info["connection_file"])),
            WS: lambda: WebSocketClient(subject.url, TOKEN, info["kernel_id"]),
            REST: lambda: RestClient(subject.url, TOKEN, info["id"]),
        }

    def namespace(self) -> str:
        """Its pid namespace: every process in there is this session's, and no other is."""
        return self.value("__import__('os').readlink('/proc/self/ns/pid')").strip("'")

    def pids(self) -> set[int]:
        return self._subject.session_pids([self])

    def close(self) -> None:
        try:
            self._http.call("DELETE", self._path)
        finally:
            self._http.close()


class Cellkeep(Subject):
    """A server of its own with a state directory of its own; the sandbox fully on."""

    ways = (ZMQ, WS, REST)

    def __init__(self, folder: Path, binary: Path, sessions_max: int, spares: int = 0) -> None:
        super().__init__(folder)
        self.name = f"Cellkeep, {spares} spares" if spares else "Cellkeep"
        self.spares = spares
        self.url = ""
        self._binary, self._sessions_max = binary, sessions_max

    def start(self) -> None:
        state = Path(tempfile.mkdtemp(prefix="state-", dir=self.folder))
        log = state / "bench.log"
        ready, says_ready = os.pipe()
        arguments = cellkeep_arguments(state, self._sessions_max, self.spares)
        self.server = start_server(
            [str(self._binary), "serve", *arguments, "--ready-fd", str(says_ready)],
            log,
            pass_fds=[says_ready],
            env={**os.environ, "CELLKEEP_TOKEN": TOKEN},
        )
        os.close(says_ready)
        with open(ready, "rb", buffering=0) as pipe:
            told, _, _ = select.select([pipe], [], [], READY_SECONDS_MAX)
            if not told or pipe.readline() != b"READY\n":
                raise RuntimeError(f"the server did not start: {tail(log)}")
        record = json.loads((state / "server.json").read_text(encoding="utf-8"))
        self.url = record["url"].rstrip("/")

    def open(self) -> CellkeepSession:
        return CellkeepSession(self)

    def session_pids(self, sessions: list[CellkeepSession]) -> set[int]:
        names = [session.namespace() for session in sessions]
        found = by_pid_namespace(self.pids())
        missing = [name for name in names if name not in found]
        if missing:
            raise RuntimeError(f"no process of the server is in {missing[0]}")
        return set().union(*(found[name] for name in names))

    def make_image(self) -> None:
        """Builds the environment image, so that no start has to. If that fails, the server says why
        when it starts."""
        subprocess.run(
            [self._binary, "image", "build"],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=IMAGE_SECONDS_MAX,
        )

    def version(self) -> str:
        answer = subprocess.run(
            [self._binary, "version"], check=True, text=True, capture_output=True, timeout=60
        )
        return answer.stdout.splitlines()[0]


class KernelSession(Session):
    """A kernel started with jupyter_client, not sandboxed."""

    main = ZMQ

    def __init__(self, kernel_name: str, folder: Path) -> None:
        self._manager = KernelManager(kernel_name=kernel_name)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._manager.start_kernel(cwd=str(folder), **quiet)
        self._file = Path(self._manager.connection_file)
        self.ways = {ZMQ: self._attach}

    def _attach(self) -> ZmqClient:
        return ZmqClient(self._file, self._ended)

    def _ended(self) -> str:
        status = self._manager.provisioner.process.poll()
        return "" if status is None else f"exit status {status}"

    def first_result(self, code: str = "1+1", result: str | None = "2") -> None:
        client = self._attach()
        try:
            client.first_result(code, result)
        finally:
            client.close()

    def value(self, expression: str) -> str:
        client = self._attach()
        try:
            client.first_result("0", None)  # subscribed
            return client.execute(expression).checked().result
        finally:
            client.close()

    def close(self) -> None:
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()


class Kernel(Subject):
    ways = (ZMQ,)

    def __init__(self, folder: Path, name: str, kernel_name: str) -> None:
        super().__init__(folder)
        self.name, self._kernel_name = name, kernel_name

    def open(self) -> KernelSession:
        return KernelSession(self._kernel_name, self.folder)


class GatewaySession(Session):
    main = WS

    def __init__(self, subject: "Gateway") -> None:
        self._http = HttpConnection(subject.url, TOKEN)
        self._kernel = self._http.call("POST", "/api/kernels", {"name": "python3"})["id"]
        self._http.close()
        self.ways = {WS: lambda: WebSocketClient(subject.url, TOKEN, self._kernel)}

    def close(self) -> None:
        try:
            self._http.call("DELETE", f"/api/kernels/{self._kernel}")
        finally:
            self._http.close()


class Gateway(Subject):
    """A Jupyter program that serves kernels over WebSocket, with its defaults; ipykernel behind."""

    ways = (WS,)

    def __init__(self, folder: Path, name: str, program: str, flags: list[str]) -> None:
        super().__init__(folder)
        self.name = name
        self.url = ""
        self._program, self._flags = program, flags

    def start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        log = self.folder / f"{self._program}.log"
        command = [str(Path(sys.executable).parent / self._program)]
        command += [flag.format(port=port) for flag in self._flags]
        tokens = {"JUPYTER_TOKEN": TOKEN, "KG_AUTH_TOKEN": TOKEN}
        self.server = start_server(
            command, log, cwd=self.folder, env={**os.environ, **tokens}
        )
        self.url = f"http://127.0.0.1:{port}"
        wait_until(self._serves, self.server, log)

    def _serves(self) -> bool:
        http = HttpConnection(self.url, TOKEN)
        try:
            http.call("GET", "/api")
        except (OSError, RuntimeError):
            return False
        else:
            return True
        finally:
            http.close()

    def open(self) -> GatewaySession:
        return GatewaySession(self)


def jupyter_server(folder: Path) -> Gateway:
    flags = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    flags += ["--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    return Gateway(folder, "jupyter_server", "jupyter-server", flags)


def kernel_gateway(folder: Path) -> Gateway:
    flags = ["--KernelGatewayApp.ip=127.0.0.1", "--KernelGatewayApp.port={port}"]
    flags += ["--KernelGatewayApp.port_retries=0"]
    return Gateway(folder, "kernel gateway", "jupyter-kernelgateway", flags)
