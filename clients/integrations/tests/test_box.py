# SPDX-License-Identifier: Apache-2.0
"""The sandbox that all adapters stand on, blocking and with asyncio, over a real server."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import end_session, session_ids

from cellkeep_integrations import AsyncBox, Box, OutOfTime, SandboxBroken
from cellkeep_integrations.commands import FileTooLarge
from harness import Server

Make = Callable[..., Any]


class Waiting:
    """The asyncio sandbox with the blocking one's methods."""

    def __init__(self, runner: asyncio.Runner, box: AsyncBox) -> None:
        self.runner = runner
        self.box = box

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.box, name)
        if not inspect.iscoroutinefunction(value):
            return value
        return lambda *given, **named: self.runner.run(value(*given, **named))


@pytest.fixture(params=["blocking", "asyncio"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    if request.param == "blocking":
        yield Box.create
        return
    with asyncio.Runner() as runner:
        yield lambda **options: Waiting(runner, runner.run(AsyncBox.create(**options)))


@pytest.fixture
def box(server: Server, make: Make) -> Iterator[Any]:
    made = make()
    yield made
    made.close()


def test_a_command_has_an_exit_code_and_two_streams(box: Any) -> None:
    ran = box.run("echo out; echo err >&2; exit 3", env={"A": "b"})
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"out\n", b"err\n")
    assert ran.text == "out\nerr\n"
    assert box.run(["printf", "%s", "a b"], cwd="/tmp").out == "a b"


def test_its_own_signal_is_an_exit_code(box: Any) -> None:
    assert box.run("kill -TERM $$").exit_code == 143
    assert box.run("kill -SEGV $$").exit_code == 139


def test_it_reads_what_it_is_sent(box: Any) -> None:
    assert box.run(["cat"], stdin=b"x\0y").stdout == b"x\0y"
    assert box.run(["cat"], stdin=b"").stdout == b""
    assert box.run(["true"], stdin=bytes(100_000)).exit_code == 0
    assert box.run(["wc", "-c"], stdin=bytes(5 << 20)).out.strip() == str(5 << 20)


def test_no_command_is_too_large(box: Any) -> None:
    words = ["word"] * 20_000
    assert box.run(["printf", "%s", *words]).out == "".join(words)
    assert box.run(": " + "x" * 300_000 + "\necho $VALUE", env={"VALUE": "v" * 40_000}).out == "v" * 40_000 + "\n"
    assert box.run("ls -A").out == ""


def test_output_beyond_the_limit_is_cut(box: Any) -> None:
    ran = box.run("head -c 3000000 /dev/zero; echo end >&2", output_bytes_max=1_000_000)
    assert (len(ran.stdout), ran.stderr, ran.truncated) == (1_000_000, b"end\n", True)
    assert not box.run("head -c 1000000 /dev/zero", output_bytes_max=1_000_000).truncated


def test_what_cannot_be_started(box: Any) -> None:
    assert box.run(["/etc/passwd"]).exit_code == 126
    assert box.run(["/no/such"]).exit_code == 127
    assert box.run(["nosuch"]).exit_code == 127
    assert box.run(["ls"], cwd="/no/such").exit_code == 127
    assert box.run(["/etc/passwd", *["x"] * 300]).exit_code == 126
    assert box.run(["nosuch", *["x"] * 300]).exit_code == 127
    assert box.run(["ls", *["x"] * 300], cwd="/no/such", stdin=bytes(1 << 20)).exit_code == 127
    assert box.run("ls -A").out == ""


def test_files(box: Any) -> None:
    for path in ("/workspace/a/b c", "/tmp/deep/er/file", "/workspace/ü"):
        box.write(path, b"\xff\x00" * 500)
        assert box.read(path) == b"\xff\x00" * 500
    # The last byte is the beginning of a character.
    content = bytes(range(256)) * 8192 + b"\xc3"
    box.write("/workspace/large", content)
    assert box.read("/workspace/large") == content
    assert box.run("rm -r /workspace/*; ls -A /workspace").text == ""


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/no/such", FileNotFoundError),
        ("/etc", IsADirectoryError),
        ("/etc/passwd/x", NotADirectoryError),
        ("/workspace/closed", PermissionError),
        ("/workspace/" + "n" * 300, OSError),
    ],
)
def test_files_that_cannot_be_read(box: Any, path: str, error: type[Exception]) -> None:
    box.run("touch closed; chmod 0 closed")
    with pytest.raises(error):
        box.read(path)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/etc", IsADirectoryError),
        ("/etc/passwd/x", OSError),
        ("/usr/x", OSError),
        ("/proc/x", OSError),
    ],
)
def test_files_that_cannot_be_written(box: Any, path: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        box.write(path, b"x")
    assert not isinstance(caught.value, SandboxBroken)


def test_a_file_that_is_too_large(box: Any) -> None:
    box.write("/tmp/f", bytes(1001))
    assert len(box.read("/tmp/f", bytes_max=1001)) == 1001
    with pytest.raises(FileTooLarge):
        box.read("/tmp/f", bytes_max=1000)
    # It says that it is empty.
    with pytest.raises(FileTooLarge):
        box.read("/dev/zero", bytes_max=1000)


def test_code_keeps_its_variables(box: Any) -> None:
    box.execute("a = 41")
    assert box.execute("a + 1").text == "42"
    assert box.execute("1 / 0").error.name == "ZeroDivisionError"


def test_timeout(box: Any) -> None:
    with pytest.raises(OutOfTime) as caught:
        box.run("echo begun; sleep 60 & sleep 60", timeout=1)
    assert caught.value.reason == "timeout" and caught.value.stdout == b"begun\n"
    assert box.run("pgrep sleep").out == ""
    with pytest.raises(SandboxBroken, match="timeout"):
        box.execute("import time; time.sleep(60)", timeout=1)


def test_oom(server: Server, make: Make) -> None:
    box = make(limits={"memory_mb": 128})
    for command in (["python3", "-c", "bytearray(1 << 30)"], "cd / && python3 -c 'bytearray(1 << 30)'"):
        with pytest.raises(SandboxBroken) as caught:
            box.run(command)
        assert caught.value.reason == "oom"
    with pytest.raises(SandboxBroken) as caught:
        box.execute("b'x' * (1 << 30)")
    assert caught.value.reason == "oom"
    assert box.run("exit 1").exit_code == 1
    box.close()


def test_disk_full(server: Server, make: Make) -> None:
    box = make(limits={"disk_mb": 16})
    for size in (17 << 20, 40 << 20):
        with pytest.raises(SandboxBroken) as caught:
            box.write("/workspace/f", bytes(size))
        assert caught.value.reason == "disk_full"
    box.close()


def test_dead(box: Any) -> None:
    end_session(box.id)
    for call in (lambda: box.run("true"), lambda: box.read("/tmp/x"), lambda: box.execute("1")):
        with pytest.raises(SandboxBroken) as caught:
            call()
        assert caught.value.reason == "dead"


def test_the_end_of_the_interpreter_is_a_death(box: Any) -> None:
    with pytest.raises(SandboxBroken, match="dead"):
        box.execute("import os; os._exit(1)")
    assert box.run("true").exit_code == 0


def test_more_commands_than_a_session_takes(box: Any) -> None:
    for _ in range(32):
        started = box.session.start_process(["sleep", "100"])
        if inspect.iscoroutine(started):
            box.runner.run(started)
    with pytest.raises(SandboxBroken) as caught:
        box.run("true")
    assert caught.value.reason == "capacity"


def test_a_full_server(full_server: Server, make: Make) -> None:
    with pytest.raises(SandboxBroken) as caught:
        make(patience=0.3)
    assert caught.value.reason == "capacity"


def test_no_server(nowhere: None, make: Make) -> None:
    with pytest.raises(SandboxBroken) as caught:
        make(patience=0)
    assert caught.value.reason == "unreachable"


@pytest.mark.parametrize("options", [{"language": "klingon"}, {"limits": {"memory_mb": 1}}])
def test_what_no_server_offers(server: Server, make: Make, options: dict[str, Any]) -> None:
    with pytest.raises(SandboxBroken) as caught:
        make(**options)
    assert caught.value.reason == "refused"


def test_a_wrong_token(server: Server, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLKEEP_TOKEN", "wrong")
    with pytest.raises(SandboxBroken) as caught:
        make()
    assert caught.value.reason == "refused"


def test_a_session_is_adopted_and_left(server: Server) -> None:
    first = Box.create()
    first.write("/workspace/f", b"kept")
    with Box.adopt(first.id) as second:
        assert second.read("/workspace/f") == b"kept"
    with pytest.raises(SandboxBroken, match="dead"):
        Box.adopt(first.id)
    first.leave()
    assert first.id not in session_ids()


def test_what_is_cancelled_is_killed(server: Server) -> None:
    async def main() -> None:
        async with await AsyncBox.create() as box:
            task = asyncio.create_task(box.run("touch begun; exec sleep 77"))
            while "begun" not in (await box.run("ls")).out:
                pass
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # Linux takes a process apart after it was killed.
            while (await box.run("pgrep sleep")).out:
                pass

    asyncio.run(main())
