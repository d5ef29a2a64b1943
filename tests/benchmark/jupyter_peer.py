# SPDX-License-Identifier: Apache-2.0
"""One client for every kernel measured: stock jupyter_client over plain blocking sockets.

jupyter_client's own channels run an event loop per call, which would hide what is measured; its
connection-file reader and its signed Session are what every Jupyter client uses.
"""

import time
from pathlib import Path

import zmq
from jupyter_client import BlockingKernelClient

SILENCE_MS_MAX = 10_000


class JupyterPeer:
    """Attached to a running kernel's shell and iopub sockets. Close it when done."""

    def __init__(self, connection_file: Path) -> None:
        self._client = BlockingKernelClient()
        self._client.load_connection_file(str(connection_file))
        self._shell = self._client.connect_shell()
        self._iopub = self._client.connect_iopub()
        self._poller = zmq.Poller()
        self._poller.register(self._shell, zmq.POLLIN)
        self._poller.register(self._iopub, zmq.POLLIN)

    def close(self) -> None:
        self._shell.close(linger=0)
        self._iopub.close(linger=0)

    def wait_until_subscribed(self) -> None:
        """Returns when iopub delivers: an execution's idle status arrived beside its reply."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.execute("0", silence_ms_max=1_000)["idle"]:
                return
        raise TimeoutError("iopub stays silent")

    def execute(self, code: str, silence_ms_max: int = SILENCE_MS_MAX) -> dict:
        """Runs code and returns when both its reply and its idle status are here.

        The answer: `seconds`, `reply` content, `idle` (False if the kernel's idle message never
        came), `stdout` text as delivered.
        """
        session = self._client.session
        content = {
            "code": code,
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        began = time.perf_counter()
        sent = session.send(self._shell, "execute_request", content)["header"]["msg_id"]
        reply, idle, text = None, False, []
        while reply is None or not idle:
            ready = dict(self._poller.poll(silence_ms_max))
            if not ready:
                break
            if self._iopub in ready:
                message = session.recv(self._iopub, mode=zmq.NOBLOCK)[1]
                if message and message["parent_header"].get("msg_id") == sent:
                    if message["msg_type"] == "status":
                        idle = message["content"]["execution_state"] == "idle"
                    elif message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                        text.append(message["content"]["text"])
            if self._shell in ready:
                message = session.recv(self._shell, mode=zmq.NOBLOCK)[1]
                if message and message["parent_header"].get("msg_id") == sent:
                    reply = message["content"]
        seconds = time.perf_counter() - began
        if reply is None:
            raise TimeoutError(f"no reply to {code!r}")
        return {"seconds": seconds, "reply": reply, "idle": idle, "stdout": "".join(text)}
