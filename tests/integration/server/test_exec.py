# SPDX-License-Identifier: Apache-2.0
"""`cellkeep exec` and `cellkeep shell`, as a person runs them."""

import signal
import subprocess

import pexpect
import pytest

from harness import Server, Session, binary

pytestmark = pytest.mark.both_modes

PATIENCE_SECONDS = 60


def command(session: Session, name: str, *arguments: str) -> list[str]:
    state = ["--state-dir", str(session.server.state_dir)]
    return [binary(), name, *state, *arguments]


def run(session: Session, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(session, "exec", *arguments), input=data, capture_output=True, timeout=PATIENCE_SECONDS
    )


def test_output_and_exit_codes_are_those_of_the_command(session: Session) -> None:
    ident = session.info["id"]
    done = run(session, ident, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 7)
    assert run(session, "--cwd", "/tmp", ident, "--", "pwd").stdout == b"/tmp\n"
    killed = run(session, ident, "--", "sh", "-c", "kill -9 $$")
    assert killed.returncode == 128 + signal.SIGKILL
    absent = run(session, ident, "--", "/no/such/program")
    assert absent.returncode == 127 and b"No such file" in absent.stderr


def test_input_of_any_length_goes_through(session: Session) -> None:
    data = bytes(range(256)) * (1 << 10)  # 256 KiB, which the server keeps
    done = run(session, "-i", session.info["id"], "--", "cat", data=data)
    assert done.returncode == 0 and (done.stdout == data) is True
    counted = run(session, "-i", session.info["id"], "--", "wc", "-c", data=data * 16)
    assert counted.stdout.strip() == b"%d" % (16 * len(data))
    assert run(session, session.info["id"], "--", "cat", data=b"not sent").stdout == b""


def test_output_of_any_length_comes_through(session: Session) -> None:
    done = run(session, session.info["id"], "--", "head", "-c", str(8 << 20), "/dev/zero")
    assert done.returncode == 0 and done.stderr == b""
    assert (done.stdout == bytes(8 << 20)) is True


def test_what_cannot_be_is_said(server: Server, session: Session) -> None:
    lost = run(session, "ses_0", "--", "true")
    assert lost.returncode == 1 and lost.stderr.startswith(b"cellkeep: ")
    assert run(session, session.info["id"]).returncode == 2
    assert run(session, "-t", session.info["id"], "--", "true").returncode == 2


def test_a_shell_is_a_terminal(session: Session) -> None:
    name, *arguments = command(session, "shell", session.info["id"], "--", "bash", "--norc", "-i")
    child = pexpect.spawn(name, arguments, dimensions=(30, 100), timeout=PATIENCE_SECONDS)
    child.sendline("stty size")
    child.expect("30 100")
    # On its way to the prompt, bash reads the terminal's size and sets it again.
    child.expect(r"bash-[0-9.]+[#$] ")
    child.setwinsize(40, 120)
    child.sendline("sh -c 'echo begun; exec sleep 1000'")
    child.expect("\rbegun\r\n")  # not the echo of the line: Ctrl-C would come before the program
    child.sendintr()
    child.sendline("stty size; echo $((6 * 7))")
    child.expect("40 120\r\n42")
    child.sendline("exit 5")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 5
