# SPDX-License-Identifier: Apache-2.0
"""E2B's client for Python, over the server: commands, their input, terminals."""

import threading

import pytest
from e2b import (
    CommandExitException,
    NotFoundException,
    PtySize,
    SandboxException,
    TimeoutException,
)
from e2b_code_interpreter import Sandbox


def test_a_command_has_its_output_and_its_code(shared: Sandbox) -> None:
    done = shared.commands.run("echo out; echo err >&2; pwd; echo $HOME")
    assert done.exit_code == 0
    assert done.stdout == "out\n/home/user\n/home/user\n" and done.stderr == "err\n"
    with pytest.raises(CommandExitException) as failed:
        shared.commands.run("echo before; exit 3")
    assert failed.value.exit_code == 3 and failed.value.stdout == "before\n"


def test_directory_and_variables_are_the_commands_own(shared: Sandbox) -> None:
    done = shared.commands.run("pwd; echo $A", cwd="/tmp", envs={"A": "b c"})
    assert done.stdout == "/tmp\nb c\n"
    assert shared.commands.run("whoami", user="root").exit_code == 0
    with pytest.raises((SandboxException, CommandExitException)):
        shared.commands.run("true", cwd="/missing")


def test_output_comes_while_it_runs(shared: Sandbox) -> None:
    heard: list[str] = []
    shared.commands.run("echo a; sleep 0.2; echo b", on_stdout=heard.append)
    assert "".join(heard) == "a\nb\n" and len(heard) >= 2


def test_a_background_command_goes_on_and_is_killed(shared: Sandbox) -> None:
    handle = shared.commands.run("echo up; sleep 600", background=True)
    listed = {process.pid: process for process in shared.commands.list()}
    assert listed[handle.pid].cmd == "/bin/bash"
    assert listed[handle.pid].args == ["-l", "-c", "echo up; sleep 600"]
    assert shared.run_code("1").text == "1"
    again = shared.commands.connect(handle.pid)
    assert again.pid == handle.pid
    assert handle.kill() is True
    with pytest.raises(CommandExitException):
        handle.wait()
    assert shared.commands.kill(handle.pid) is False
    with pytest.raises(NotFoundException):
        shared.commands.connect(handle.pid)


def test_input_is_written_and_closed(shared: Sandbox) -> None:
    handle = shared.commands.run("sort", background=True, stdin=True)
    shared.commands.send_stdin(handle.pid, "b\n")
    shared.commands.send_stdin(handle.pid, "a\n")
    shared.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "a\nb\n"
    counted = shared.commands.run("wc -c", background=True, stdin=True)
    shared.commands.stream_input(counted.pid, (b"x" * 65536 for _ in range(40)))
    shared.commands.close_stdin(counted.pid)
    assert counted.wait().stdout.strip() == str(40 * 65536)
    with pytest.raises(SandboxException):
        shared.commands.send_stdin(999_999, "x")


def test_a_command_ends_with_its_time(shared: Sandbox) -> None:
    with pytest.raises(TimeoutException):
        shared.commands.run("sleep 600", timeout=1)
    # The server kills it, too: nothing of it may run on.
    left = [process for process in shared.commands.list() if "sleep 600" in process.args]
    for process in left:
        with pytest.raises((CommandExitException, NotFoundException)):
            shared.commands.connect(process.pid, timeout=20).wait()


def test_much_output_comes_whole(shared: Sandbox) -> None:
    done = shared.commands.run("head -c 3000000 /dev/zero | tr '\\0' x")
    assert len(done.stdout) == 3_000_000 or "came faster" in done.stdout


def test_a_terminal_is_resized_and_ends(shared: Sandbox) -> None:
    seen = bytearray()
    news = threading.Condition()

    def hear(data: bytes) -> None:
        with news:
            seen.extend(data)
            news.notify_all()

    def wait_for(text: bytes, times: int = 1) -> None:
        with news:
            assert news.wait_for(lambda: seen.count(text) >= times, timeout=30), bytes(seen)

    handle = shared.pty.create(PtySize(rows=24, cols=80))
    reader = threading.Thread(target=lambda: handle.wait(on_pty=hear), daemon=True)
    reader.start()
    shared.pty.send_stdin(handle.pid, b"PS1='>''> '\n")
    wait_for(b">> ")
    shared.pty.send_stdin(handle.pid, b"echo size=$(stty size)\n")
    wait_for(b"size=24 80")
    # On its way to the prompt, bash reads the terminal's size and sets it again.
    wait_for(b">> ", 2)
    shared.pty.resize(handle.pid, PtySize(rows=40, cols=132))
    shared.pty.send_stdin(handle.pid, b"echo size=$(stty size) $TERM\n")
    wait_for(b"size=40 132 xterm-256color")
    shared.pty.send_stdin(handle.pid, b"exit\n")
    reader.join(30)
    assert not reader.is_alive()
    assert shared.pty.kill(handle.pid) is False
