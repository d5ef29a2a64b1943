# SPDX-License-Identifier: Apache-2.0
"""jupyter_client's KernelManager drives the kernel that `cellkeep kernelspec install` made known."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import psutil
import pytest
from jupyter_client import BlockingKernelClient, KernelManager
from jupyter_client.threaded import ThreadedKernelClient, ThreadedZMQSocketChannel

from harness import stream_text, wait_until
from jupyter_home import KERNEL, JupyterHome


class Kernel:
    """A manager with one attached client."""

    def __init__(self, **traits: object) -> None:
        self.manager = KernelManager(kernel_name=KERNEL, **traits)
        self.manager.start_kernel()
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.process = psutil.Process(self.manager.provisioner.pid)
        self.tree = [self.process, *self.process.children(recursive=True)]

    def run(self, code: str, **more: object) -> tuple[dict, list[dict]]:
        outputs: list[dict] = []
        reply = self.client.execute_interactive(
            code, timeout=60, output_hook=outputs.append, **more
        )
        return reply["content"], outputs

    def value(self, expression: str) -> str:
        _, outputs = self.run(f"print({expression})")
        return stream_text(outputs).rstrip("\n")

    def begin_endless_cell(self) -> None:
        self.client.execute("print('begun', flush=True)\nwhile True: pass")
        while self.client.get_iopub_msg(timeout=30)["msg_type"] != "stream":
            pass

    def control(self, kind: str, **content: object) -> tuple[str, dict]:
        """Ask on control: the request's id and its reply's content."""
        message = self.client.session.msg(kind, content)
        self.client.control_channel.send(message)
        reply = self.client.get_control_msg(timeout=30)
        sent = message["header"]["msg_id"]
        assert reply["parent_header"]["msg_id"] == sent
        return sent, reply["content"]

    def states_until_idle(self, sent: str) -> list[tuple[str, str]]:
        """(parent, state) of each status heard up to the request's "idle"."""
        states: list[tuple[str, str]] = []
        while (sent, "idle") not in states:
            heard = self.client.get_iopub_msg(timeout=30)
            if heard["msg_type"] == "status":
                parent = heard["parent_header"].get("msg_id")
                states.append((parent, heard["content"]["execution_state"]))
        return states

    def reply(self) -> dict:
        return self.client.get_shell_msg(timeout=30)["content"]

    def assert_gone(self, seconds: float = 10) -> None:
        _, alive = psutil.wait_procs(self.tree, timeout=seconds)
        assert not alive

    def close(self) -> None:
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel()


@pytest.fixture
def kernel(in_home: JupyterHome) -> Iterator[Kernel]:
    started = Kernel()
    in_home.kernels()
    yield started
    started.close()


def test_a_kernel_starts_runs_and_shuts_down(kernel: Kernel) -> None:
    reply, outputs = kernel.run("x = 6\nprint(x * 7)")
    assert reply["status"] == "ok"
    assert stream_text(outputs) == "42\n"
    assert len(kernel.tree) >= 3  # this process, the sandbox's first one, the interpreter
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel()
    kernel.assert_gone()


def test_over_unix_sockets(in_home: JupyterHome) -> None:
    kernel = Kernel(transport="ipc")
    in_home.kernels()
    assert kernel.value("6 * 7") == "42"
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=60)
    assert kernel.value("6 * 7") == "42"
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel()
    kernel.assert_gone()


def test_the_code_is_in_a_sandbox_with_a_notebooks_limits(kernel: Kernel) -> None:
    assert kernel.value("__import__('os').getcwd()") == "/workspace"
    assert kernel.value("__import__('os').listdir('/workspace')") == "[]"
    assert kernel.value("__import__('os').path.exists('/root')") == "False"
    assert kernel.value("__import__('os').path.exists('/notebook')") == "False"
    assert kernel.value("__import__('os').cpu_count() > 0") == "True"
    # More than a session of the API may have, less than the profile of a notebook.
    assert kernel.value("len(bytearray(700 << 20))") == str(700 << 20)


@pytest.mark.parametrize("way", ["message", "signal", "to the group"])
def test_an_interrupt_stops_the_cell_and_not_the_kernel(kernel: Kernel, way: str) -> None:
    kernel.run("kept = 1")
    kernel.begin_endless_cell()
    if way == "message":
        kernel.manager.interrupt_kernel()
    elif way == "signal":
        kernel.process.send_signal(signal.SIGINT)
    else:  # as jupyter_client does when a kernelspec says interrupt_mode "signal"
        os.killpg(os.getpgid(kernel.process.pid), signal.SIGINT)
    assert kernel.reply()["ename"] == "KeyboardInterrupt"
    assert kernel.value("kept") == "1"


def test_an_interrupt_of_an_idle_kernel_changes_nothing(kernel: Kernel) -> None:
    kernel.run("kept = 1")
    for _ in range(3):
        kernel.process.send_signal(signal.SIGINT)
    # Signals and messages have no order between them. By the first answer the process has taken
    # the signals, by the second it has acted on them.
    for _ in range(2):
        kernel.control("kernel_info_request")
    assert kernel.value("kept") == "1"


@pytest.mark.parametrize("now", [False, True])
def test_a_restart_is_a_fresh_process_on_the_same_ports(kernel: Kernel, now: bool) -> None:
    kernel.run("x = 1")
    before = kernel.client.shell_channel.socket.getsockopt_string(32)  # ZMQ_LAST_ENDPOINT
    old = kernel.process.pid
    kernel.manager.restart_kernel(now=now)
    kernel.client.wait_for_ready(timeout=60)
    assert kernel.manager.provisioner.pid != old
    kernel.assert_gone()
    assert kernel.client.shell_channel.socket.getsockopt_string(32) == before
    assert kernel.run("x")[0]["ename"] == "NameError"


def test_a_restart_interrupts_what_runs(kernel: Kernel) -> None:
    kernel.begin_endless_cell()
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=60)
    assert kernel.value("1") == "1"


def test_a_shutdown_is_answered_before_the_end(kernel: Kernel) -> None:
    for restart in (True, False):
        sent, content = kernel.control("shutdown_request", restart=restart)
        assert content == {"status": "ok", "restart": restart}
        kernel.assert_gone()
        assert kernel.states_until_idle(sent)[-2:] == [(sent, "busy"), (sent, "idle")]
        # No "dead" behind it: front ends give up a kernel that says so while it is restarted.
        assert not kernel.client.iopub_channel.msg_ready()
        if restart:
            kernel.manager.start_kernel()
            kernel.client.wait_for_ready(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_it_and_everything_in_it(kernel: Kernel, number: int) -> None:
    kernel.begin_endless_cell()
    kernel.process.send_signal(number)
    assert kernel.manager.provisioner.process.wait(10) == 0
    kernel.assert_gone()


def test_nothing_runs_on_after_it_is_killed(kernel: Kernel) -> None:
    kernel.run("import subprocess; child = subprocess.Popen(['sleep', '1000'])")
    tree = kernel.process.children(recursive=True)
    kernel.process.kill()
    _, alive = psutil.wait_procs(tree, timeout=10)
    assert not alive
    kernel.assert_gone()
    # Its empty cgroups are swept by the next start.
    next_one = Kernel()
    next_one.close()


def test_a_dead_interpreter_is_reported_and_replaced_in_place(kernel: Kernel) -> None:
    kernel.run("open('kept', 'w').close(); x = 1")
    reply, _ = kernel.run("import os; os._exit(3)")
    assert reply["ename"] == "KernelDied" and "3" in reply["evalue"]
    assert kernel.value("__import__('os').path.exists('kept')") == "True"
    assert kernel.run("x")[0]["ename"] == "NameError"
    assert kernel.process.is_running()


def test_an_interpreter_that_keeps_dying_ends_the_kernel(kernel: Kernel) -> None:
    """The kernel's process ends, so that the Jupyter program's restarter notices it."""
    for _ in range(6):
        kernel.run("import os; os._exit(3)")
    assert kernel.manager.provisioner.process.wait(10) == 1
    kernel.assert_gone()


PARENT = """
import sys
from jupyter_client import KernelManager
manager = KernelManager(kernel_name=sys.argv[1])
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
print(manager.provisioner.pid, manager.connection_file, flush=True)
sys.stdin.read()
"""


def test_it_ends_with_the_program_that_started_it(in_home: JupyterHome) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, KERNEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None and parent.stdin is not None
    pid, file = parent.stdout.readline().decode().split()
    in_home.kernels()
    kernel = psutil.Process(int(pid))
    tree = [kernel, *kernel.children(recursive=True)]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    parent.stdin.close()
    _, alive = psutil.wait_procs(tree, timeout=10)
    assert not alive
    os.unlink(file)  # of the killed parent


def test_an_independent_kernel_outlives_its_starter(in_home: JupyterHome) -> None:
    code = PARENT.replace("start_kernel()", "start_kernel(independent=True)")
    parent = subprocess.Popen(
        [sys.executable, "-c", code, KERNEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None and parent.stdin is not None
    pid, file = parent.stdout.readline().decode().split()
    kernel = psutil.Process(int(pid))
    in_home.kernels()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    parent.stdin.close()
    # A test cannot wait for an exit that must not happen. The interpreter's answers come long after
    # an exit would.
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    assert client.execute_interactive("1", timeout=30)["content"]["status"] == "ok"
    assert kernel.is_running()
    client.shutdown()
    client.stop_channels()
    _, alive = psutil.wait_procs([kernel], timeout=10)
    assert not alive
    os.unlink(file)


class Recorder(ThreadedZMQSocketChannel):
    """A channel as qtconsole has it: it receives each message in the client's own thread."""

    def __init__(self, *arguments: object, **more: object) -> None:
        # First: messages may come as soon as there is a stream.
        self.messages: list[dict] = []
        self.arrived = threading.Condition()
        super().__init__(*arguments, **more)

    def call_handlers(self, message: dict) -> None:
        with self.arrived:
            self.messages.append(message)
            self.arrived.notify_all()

    def wait_for(self, msg_type: str) -> dict:
        def find() -> dict | None:
            return next((m for m in self.messages if m["msg_type"] == msg_type), None)

        with self.arrived:
            assert self.arrived.wait_for(lambda: find() is not None, 30), self.messages
            found = find()
            self.messages.clear()
            return found


class ConsoleClient(ThreadedKernelClient):
    """What qtconsole's QtKernelClient is built on, with plain lists in place of Qt's signals."""

    shell_channel_class = Recorder
    iopub_channel_class = Recorder
    stdin_channel_class = Recorder
    control_channel_class = Recorder


def test_a_client_of_qtconsoles_kind(kernel: Kernel) -> None:
    client = ConsoleClient(connection_file=kernel.manager.connection_file)
    client.load_connection_file()
    client.start_channels()
    try:
        client.kernel_info()
        assert client.shell_channel.wait_for("kernel_info_reply")["content"]["status"] == "ok"
        client.execute("name = input('who? ')\nprint(name)")
        assert client.stdin_channel.wait_for("input_request")["content"]["prompt"] == "who? "
        client.input("Ada")
        assert client.iopub_channel.wait_for("stream")["content"]["text"] == "Ada\n"
        client.complete("nam")
        assert "name" in client.shell_channel.wait_for("complete_reply")["content"]["matches"]
        wait_until(client.hb_channel.is_beating, 10, "the heart beats")
    finally:
        client.stop_channels()
