# SPDX-License-Identifier: Apache-2.0
"""What is measured: a Cellkeep server, ipykernel, and two processes that only echo over ZeroMQ."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import requests
import zmq
from jupyter_client.manager import KernelManager, start_new_kernel
from jupyter_peer import JupyterPeer


class Cellkeep:
    """A server of its own, in a state folder of its own, reached by REST and by ZeroMQ."""

    def __init__(self, binary: Path, state: Path) -> None:
        self._binary, self._state = binary, state
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        ready, says_ready = os.pipe()
        with open(state / "server.log", "wb") as log:
            self._server = subprocess.Popen(
                [binary, "serve", "--state-dir", state, "--ready-fd", str(says_ready)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[says_ready],
            )
        os.close(says_ready)
        with open(ready, encoding="utf-8") as pipe:
            if pipe.readline() != "READY\n":
                self._server.wait()
                raise RuntimeError(
                    f"the server did not start: {(state / 'server.log').read_text()}"
                )
        server = json.loads((state / "server.json").read_text(encoding="utf-8"))
        self._url = server["url"].rstrip("/")
        self._http = requests.Session()  # One connection, kept alive.
        self._http.headers["Authorization"] = f"Bearer {server['token']}"

    def close(self) -> None:
        self._server.terminate()
        self._server.wait(timeout=30)

    def _post(self, path: str, body: dict) -> dict:
        answer = self._http.post(self._url + path, json=body, timeout=120)
        answer.raise_for_status()
        return answer.json()

    def create(self) -> str:
        return self._post("/v1/sessions", {})["id"]

    def delete(self, session: str) -> None:
        self._http.delete(f"{self._url}/v1/sessions/{session}", timeout=60).raise_for_status()

    def execute(self, session: str, code: str) -> dict:
        answer = self._post(f"/v1/sessions/{session}/executions", {"code": code})
        if answer["status"] != "ok":
            raise RuntimeError(f"{code!r} answered {answer['status']}: {answer['error']}")
        return answer

    def attach(self, session: str) -> JupyterPeer:
        answer = subprocess.run(
            [self._binary, "connect", session, "--state-dir", self._state],
            check=True,
            text=True,
            capture_output=True,
            timeout=30,
        )
        found = re.search(r"^connection file: (.+)$", answer.stdout, re.MULTILINE)
        if found is None:
            raise RuntimeError(f"connect says {answer.stdout!r}")
        return JupyterPeer(Path(found.group(1)))

    def version(self) -> str:
        answer = subprocess.run(
            [self._binary, "version"], check=True, text=True, capture_output=True
        )
        return answer.stdout.splitlines()[0]


class Ipykernel:
    """A kernel of this environment, not sandboxed, started the way jupyter_client documents."""

    def __init__(self) -> None:
        self._manager: KernelManager
        self._manager, self._client = start_new_kernel(stderr=subprocess.DEVNULL)

    def first_result(self) -> None:
        self._client.execute_interactive("1+1", timeout=60, output_hook=lambda _message: None)

    def attach(self) -> JupyterPeer:
        return JupyterPeer(Path(self._manager.connection_file))

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()


class PingPong:
    """The physical limit: a message as large as an execute request, there and back."""

    FRAMES = [b"<IDS|MSG>", b"0" * 64, b"h" * 220, b"{}", b"{}", b"c" * 120]

    def __init__(self) -> None:
        context = zmq.Context.instance()
        self._socket = context.socket(zmq.DEALER)
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self._echo = subprocess.Popen([sys.executable, __file__, str(port)])
        self.once()

    def once(self) -> None:
        self._socket.send_multipart(self.FRAMES)
        self._socket.recv_multipart()

    def close(self) -> None:
        self._echo.kill()
        self._echo.wait()
        self._socket.close(linger=0)


def echo(port: str) -> None:
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.connect(f"tcp://127.0.0.1:{port}")
    while True:
        socket.send_multipart(socket.recv_multipart())


if __name__ == "__main__":
    echo(sys.argv[1])
