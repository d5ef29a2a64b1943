# SPDX-License-Identifier: Apache-2.0
"""A kernel's process and its sockets."""

import json
import os
import secrets
import shutil
import signal
import socket
import string
import subprocess
import tempfile
import time
from typing import NamedTuple

import zmq

from .wire import Wire

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
# Of the start, together less than what cellkeep-kernel-driver waits for "ready".
START_SECONDS = 45
# A kernel without a stdin channel is one that asks nothing.
STDIN_SECONDS = 5
PROBE_SECONDS = 0.5
# That wait here to be read; 2 KB of memory each, if they are lines of text. What a kernel publishes
# beyond it waits in its own queue, and what does not fit there (often 1000) ZeroMQ drops there.
IOPUB_MESSAGES_MAX = 50_000
SPEC_BYTES_MAX = 1 << 20
TRANSPORTS = ("tcp", "ipc")


class KernelFailed(Exception):
    """There is no kernel, and why."""


class Spec(NamedTuple):
    directory: str
    program: str
    argv: list
    env: dict
    interrupt_by_message: bool
    transport: str


def read_spec(directory, program):
    """kernel.json of the directory. KernelFailed."""
    path = os.path.join(directory, "kernel.json")
    try:
        with open(path, encoding="utf-8") as file:
            spec = json.loads(file.read(SPEC_BYTES_MAX))
        own = spec.get("metadata", {}).get("cellkeep", {})
        found = Spec(
            directory,
            program,
            list(spec["argv"]),
            dict(spec.get("env", {})),
            spec.get("interrupt_mode", "signal") == "message",
            own.get("transport", "tcp"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise KernelFailed(f"{path}: {error!r}") from error
    if found.transport not in TRANSPORTS:
        raise KernelFailed(f"{path}: metadata.cellkeep.transport is none of {', '.join(TRANSPORTS)}")
    return found


class Kernel:
    """Started and connected. Its attributes shell, iopub, stdin and control are its sockets."""

    def __init__(self, spec):
        self._spec = spec
        self._ready_by = time.monotonic() + START_SECONDS
        self._context = zmq.Context()
        # Short: an ipc path has room for 31 characters in some kernels (xeus).
        self._folder = tempfile.mkdtemp(prefix="k", dir="/tmp")
        self.wire = Wire(secrets.token_hex(32))
        self._connection = self._make_connection()
        self._process = self._start()
        self.ended_fd = os.pidfd_open(self._process.pid)
        # One identity on both channels: the kernel asks the client on stdin that executes on shell.
        identity = secrets.token_hex(8).encode("ascii")
        self.shell = self._socket(zmq.DEALER, identity)
        self.stdin = self._socket(zmq.DEALER, identity)
        self.control = self._socket(zmq.DEALER, identity)
        self.iopub = self._socket(zmq.SUB)
        self.iopub.subscribe(b"")
        channels = {
            "shell": self.shell,
            "stdin": self.stdin,
            "control": self.control,
            "iopub": self.iopub,
        }
        self._monitors = {
            channel: one.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            for channel, one in channels.items()
        }
        for channel, one in channels.items():
            one.connect(self._address(channel))
        self._wait_until_connected(channels)

    # --- the start

    def _make_connection(self):
        ports = {}
        if self._spec.transport == "ipc":
            ports = {f"{channel}_port": number for number, channel in enumerate(CHANNELS, 1)}
        else:
            # Only the session's own code is in its network.
            held = [socket.create_server(("127.0.0.1", 0)) for _channel in CHANNELS]
            for channel, one in zip(CHANNELS, held):
                ports[f"{channel}_port"] = one.getsockname()[1]
                one.close()
        return {
            "transport": self._spec.transport,
            "ip": self._folder + "/s" if self._spec.transport == "ipc" else "127.0.0.1",
            **ports,
            "key": self.wire.key,
            "signature_scheme": "hmac-sha256",
            "kernel_name": os.path.basename(self._spec.directory),
        }

    def _start(self):
        path = os.path.join(self._folder, "kernel.json")
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            json.dump(self._connection, file)
        words = {"{connection_file}": path, "{resource_dir}": self._spec.directory}
        argv = [self._spec.program]
        for argument in self._spec.argv[1:]:
            for word, value in words.items():
                argument = argument.replace(word, value)
            argv.append(argument)
        env = {**os.environ}
        for name, value in self._spec.env.items():
            env[name] = string.Template(value).safe_substitute(os.environ)
        try:
            # A session of its own: its group is what an interrupt goes to.
            return subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=_restore_signals,
            )
        except OSError as error:
            raise KernelFailed(f"{argv[0]}: {error.strerror}") from error

    def _socket(self, kind, identity=None):
        made = self._context.socket(kind)
        made.linger = 0
        # Replies and questions are never dropped, and what is published not here: README.md.
        made.rcvhwm = IOPUB_MESSAGES_MAX if kind == zmq.SUB else 0
        made.sndhwm = 0
        if identity is not None:
            made.routing_id = identity
        return made

    def _address(self, channel):
        transport, ip = self._connection["transport"], self._connection["ip"]
        separator = "-" if transport == "ipc" else ":"
        return f"{transport}://{ip}{separator}{self._connection[channel + '_port']}"

    def _wait_until_connected(self, channels):
        """Waits until all channels are connected. Otherwise a kernel's first question or output is
        lost: a ROUTER drops messages for an unknown peer, and a PUB those without a subscriber."""
        deadline = self._ready_by
        missing = set(channels)
        while missing:
            if missing == {"stdin"}:
                deadline = min(deadline, time.monotonic() + STDIN_SECONDS)
            ready = self._poll([self._monitors[channel] for channel in missing], deadline)
            if not ready and missing != {"stdin"}:
                names = ", ".join(self._address(channel) for channel in sorted(missing))
                raise KernelFailed(f"the kernel does not listen on {names}")
            if not ready:
                break
            missing = {channel for channel in missing if self._monitors[channel] not in ready}
        for channel, one in channels.items():
            one.disable_monitor()
            self._monitors.pop(channel).close()

    def probe(self):
        """kernel_info_reply's content, once iopub has been heard as well."""
        deadline = self._ready_by
        asked, content, heard = set(), None, False
        while content is None or not heard:
            if time.monotonic() > deadline:
                raise KernelFailed("the kernel does not answer kernel_info_request")
            asked.add(self.send(self.shell, "kernel_info_request", {}))
            again = min(deadline, time.monotonic() + PROBE_SECONDS)
            while content is None or not heard:
                ready = self._poll([self.shell, self.iopub], again)
                if not ready:
                    break
                for one in ready:
                    message = self.receive(one)
                    if message is None or message.parent not in asked:
                        continue
                    if one is self.iopub:
                        heard = True
                    elif message.type == "kernel_info_reply":
                        content = message.content
        return content

    def _poll(self, sockets, deadline):
        """Those of the sockets that are readable by then. KernelFailed: the kernel has ended."""
        poller = zmq.Poller()
        for one in (*sockets, self.ended_fd):
            poller.register(one, zmq.POLLIN)
        left = max(0, deadline - time.monotonic())
        ready = dict(poller.poll(left * 1000))
        if self.ended_fd in ready:
            code = self._process.wait()
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            raise KernelFailed(f"the kernel ended with {how} before it was ready")
        return [one for one in sockets if one in ready]

    # --- its life

    def send(self, to, kind, content, **more):
        """The message's id."""
        identity, frames = self.wire.make(kind, content, **more)
        to.send_multipart(frames)
        return identity

    def receive(self, one):
        """The next message, or None: it is no message. zmq.Again: there is none."""
        return self.wire.read(one.recv_multipart(zmq.NOBLOCK))

    def interrupt(self):
        if self._spec.interrupt_by_message:
            self.send(self.control, "interrupt_request", {})
        else:
            self._signal(signal.SIGINT)

    def _signal(self, number):
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass  # It has ended.

    def end_as_it_did(self):
        """For who has seen it end: this process ends by the same code or signal."""
        code = self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        if code < 0:
            if -code != signal.SIGKILL:
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(max(code, 0))

    def stop(self, seconds):
        """Asks it to end, and makes it when the time is over."""
        self.send(self.control, "shutdown_request", {"restart": False})
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        os.close(self.ended_fd)
        self._context.destroy(linger=0)
        shutil.rmtree(self._folder, ignore_errors=True)


def _private(path, flags):
    return os.open(path, flags, 0o600)


def _restore_signals():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
