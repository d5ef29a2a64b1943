# SPDX-License-Identifier: Apache-2.0
"""SWE-ReX's own runtime client, unchanged, on the server's routes for each session."""

import asyncio
import zipfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from swerex.exceptions import (
    BashIncorrectSyntaxError,
    CommandTimeoutError,
    NonZeroExitCodeError,
    SessionDoesNotExistError,
    SessionExistsError,
    SwerexException,
)
from swerex.runtime.abstract import (
    BashAction,
    BashInterruptAction,
    CloseBashSessionRequest,
    Command,
    CreateBashSessionRequest,
    ReadFileRequest,
    UploadRequest,
    WriteFileRequest,
)
from swerex.runtime.remote import RemoteRuntime

from harness import LEAN, TOKEN, Server
from upgrades import BARE, Asked

SHELLS_MAX = 8  # kShellsMax in kernel-manager/swerex/limits.hpp
Use = Callable[[RemoteRuntime], Coroutine[None, None, None]]


def runtime_of(server: Server, session_id: str, token: str = TOKEN) -> RemoteRuntime:
    return RemoteRuntime(host=f"{server.url}/swe-rex/{session_id}", auth_token=token, timeout=30)


@asynccontextmanager
async def sandbox(server: Server) -> AsyncIterator[RemoteRuntime]:
    session = server.create()
    runtime = runtime_of(server, session.info["id"])
    try:
        yield runtime
    finally:
        await runtime.close()
        assert session.delete() in (404, 410)


def use(server: Server, what: Use) -> None:
    async def in_sandbox() -> None:
        async with sandbox(server) as runtime:
            await what(runtime)

    asyncio.run(in_sandbox())


async def shell(runtime: RemoteRuntime, name: str = "default") -> None:
    await runtime.create_session(CreateBashSessionRequest(session=name, startup_timeout=30))


def test_a_shell_keeps_its_state(server: Server) -> None:
    async def work(runtime: RemoteRuntime) -> None:
        assert (await runtime.is_alive()).is_alive
        await shell(runtime)

        async def say(command: str, **more: object) -> str:
            return (await runtime.run_in_session(BashAction(command=command, timeout=60, **more))).output

        assert await say("echo hello") == "hello\n"
        assert await say("x='a b'; cd /tmp; export Y=1") == ""
        assert await say('echo "$x" $PWD; sh -c \'echo $Y\'') == "a b /tmp\n1\n"
        assert await say("printf 'no end'") == "no end"
        assert await say("for i in 1 2; do\n  echo $i\ndone\ncat <<EOF\nin a\n$x\nEOF\n# end") == "1\n2\nin a\na b\n"
        assert await say("echo err >&2") == "err\n"
        assert await say("printf '\\033[31mred\\033[0m\\n'") == "red\n"
        assert await say("") == ""
        assert len(await say("seq 20000")) == len("".join(f"{n}\n" for n in range(1, 20001)))
        # What a command sets as its prompt does not hide the end.
        assert await say("PS1='other> '; PROMPT_ODD=1; echo set") == "set\n"
        assert await say("echo still here") == "still here\n"

    use(server, work)


def test_exit_codes_and_errors_are_the_clients_own(server: Server) -> None:
    async def work(runtime: RemoteRuntime) -> None:
        await shell(runtime)
        silent = await runtime.run_in_session(BashAction(command="echo out; (exit 7)", check="silent"))
        assert (silent.exit_code, silent.output) == (7, "out\n")
        ignored = await runtime.run_in_session(BashAction(command="false", check="ignore"))
        assert ignored.exit_code is None
        with pytest.raises(NonZeroExitCodeError, match="why: .*exit code 1"):
            await runtime.run_in_session(BashAction(command="false", error_msg="why"))
        with pytest.raises(BashIncorrectSyntaxError) as wrong:
            await runtime.run_in_session(BashAction(command="if true; then"))
        assert "syntax error" in wrong.value.extra_info["bash_stderr"]
        with pytest.raises(SessionDoesNotExistError):
            await runtime.run_in_session(BashAction(command="true", session="other"))
        with pytest.raises(SessionExistsError):
            await shell(runtime)
        with pytest.raises(CommandTimeoutError):
            await runtime.run_in_session(BashAction(command="echo begun; sleep 600", timeout=1))
        stopped = await runtime.run_in_session(BashInterruptAction(timeout=30))
        assert stopped.exit_code == 0 and "begun" in stopped.output
        after = await runtime.run_in_session(BashAction(command="echo after", timeout=60))
        assert after.output == "after\n"
        with pytest.raises(SwerexException, match="has ended"):
            await runtime.run_in_session(BashAction(command="exit 3", timeout=60))
        await shell(runtime)
        assert (await runtime.run_in_session(BashAction(command="echo new"))).output == "new\n"

    use(server, work)


def test_shells_are_apart_and_bounded(server: Server) -> None:
    async def work(runtime: RemoteRuntime) -> None:
        for number in range(SHELLS_MAX):
            await shell(runtime, str(number))
            await runtime.run_in_session(BashAction(command=f"x={number}", session=str(number)))
        with pytest.raises(SwerexException, match=str(SHELLS_MAX)):
            await shell(runtime, "one more")
        told = await asyncio.gather(
            *(
                runtime.run_in_session(BashAction(command="echo $x", session=str(number)))
                for number in range(SHELLS_MAX)
            )
        )
        assert [one.output for one in told] == [f"{number}\n" for number in range(SHELLS_MAX)]
        await runtime.close_session(CloseBashSessionRequest(session="3"))
        with pytest.raises(SessionDoesNotExistError):
            await runtime.close_session(CloseBashSessionRequest(session="3"))

    use(server, work)


def test_programs_that_go_on_are_talked_to(server: Server) -> None:
    async def work(runtime: RemoteRuntime) -> None:
        await shell(runtime)
        begun = await runtime.run_in_session(
            BashAction(command="python3 -q", is_interactive_command=True, expect=[">>> "], timeout=60)
        )
        assert begun.expect_string == ">>> "
        summed = await runtime.run_in_session(
            BashAction(command="print(6 * 7)", is_interactive_command=True, expect=[">>> "], timeout=60)
        )
        assert summed.output == "42"
        await runtime.run_in_session(
            BashAction(command="exit()", is_interactive_quit=True, timeout=60)
        )
        back = await runtime.run_in_session(BashAction(command="echo back", timeout=60))
        assert back.output == "back\n"

    use(server, work)


def test_commands_run_beside_the_shells(server: Server) -> None:
    async def work(runtime: RemoteRuntime) -> None:
        done = await runtime.execute(Command(command=["sh", "-c", "echo out; echo err >&2; exit 3"]))
        assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 3)
        done = await runtime.execute(
            Command(command="echo $A; pwd", shell=True, env={"A": "b c"}, cwd="/tmp")
        )
        assert (done.stdout, done.exit_code) == ("b c\n/tmp\n", 0)
        merged = await runtime.execute(
            Command(command="echo a; echo b >&2", shell=True, merge_output_streams=True)
        )
        assert (merged.stdout, merged.stderr) == ("a\nb\n", "")
        killed = await runtime.execute(Command(command="kill -9 $$", shell=True))
        assert killed.exit_code == -9
        with pytest.raises(NonZeroExitCodeError):
            await runtime.execute(Command(command=["false"], check=True))
        with pytest.raises(CommandTimeoutError):
            await runtime.execute(Command(command=["sleep", "600"], timeout=0.5))
        with pytest.raises(FileNotFoundError):
            await runtime.execute(Command(command=["/no/such/program"]))
        with pytest.raises(SwerexException, match="wrote more than"):
            await runtime.execute(Command(command="head -c 3000000 /dev/zero | tr '\\0' x", shell=True))

    use(server, work)


def test_files_are_read_written_and_uploaded(server: Server, tmp_path: Path) -> None:
    async def work(runtime: RemoteRuntime) -> None:
        for path in ("/tmp/deep/er/a.txt", "/workspace/b 'c'.txt"):
            await runtime.write_file(WriteFileRequest(path=path, content="käse\n"))
            assert (await runtime.read_file(ReadFileRequest(path=path))).content == "käse\n"
        await runtime.write_file(WriteFileRequest(path="/tmp/deep/er/a.txt", content=""))
        assert (await runtime.read_file(ReadFileRequest(path="/tmp/deep/er/a.txt"))).content == ""
        with pytest.raises(FileNotFoundError):
            await runtime.read_file(ReadFileRequest(path="/tmp/missing"))
        with pytest.raises(IsADirectoryError):
            await runtime.read_file(ReadFileRequest(path="/tmp"))
        with pytest.raises(PermissionError):
            await runtime.write_file(WriteFileRequest(path="/usr/bin/new", content="x"))
        await runtime.execute(Command(command="printf '\\377' > /tmp/odd", shell=True))
        with pytest.raises(SwerexException, match="UTF-8"):
            await runtime.read_file(ReadFileRequest(path="/tmp/odd"))
        odd = await runtime.read_file(ReadFileRequest(path="/tmp/odd", errors="replace"))
        assert odd.content == "\ufffd"
        contents = bytes(range(256)) * 4096
        (tmp_path / "file").write_bytes(contents)
        await runtime.upload(UploadRequest(source_path=str(tmp_path / "file"), target_path="/tmp/up/file"))
        counted = await runtime.execute(Command(command=["wc", "-c", "/tmp/up/file"]))
        assert counted.stdout.split()[0] == str(len(contents))
        folder = tmp_path / "folder"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub/inner.txt").write_text("inner", encoding="utf-8")
        await runtime.upload(UploadRequest(source_path=str(folder), target_path="/tmp/up/folder"))
        inner = await runtime.read_file(ReadFileRequest(path="/tmp/up/folder/sub/inner.txt"))
        assert inner.content == "inner"
        # Nothing of what passed through the workspace is left there.
        left = await runtime.execute(Command(command="ls -A /workspace | grep -c ^.rex-", shell=True))
        assert left.stdout == "0\n"

    use(server, work)


def test_a_file_is_sourced_first(server: Server) -> None:
    async def work(runtime: RemoteRuntime) -> None:
        await runtime.write_file(WriteFileRequest(path="/tmp/it's env", content="echo read; FROM=file\n"))
        begun = await runtime.create_session(
            CreateBashSessionRequest(startup_source=["/tmp/it's env"], startup_timeout=30)
        )
        assert begun.output == "read\n"
        assert (await runtime.run_in_session(BashAction(command="echo $FROM"))).output == "file\n"

    use(server, work)


def test_wrong_keys_and_requests_are_refused(server: Server, tmp_path: Path) -> None:
    session = server.create()
    place = f"{server.url}/swe-rex/{session.info['id']}"

    async def refused(runtime: RemoteRuntime) -> int:
        with pytest.raises(aiohttp.ClientResponseError) as told:
            await runtime.execute(Command(command=["true"]))
        return told.value.status

    async def work() -> None:
        for key in ("wrong", TOKEN + "x", TOKEN[:-1], ""):
            other = runtime_of(server, session.info["id"], key)
            assert not (await other.is_alive()).is_alive
            assert await refused(other) == 401
        right = runtime_of(server, session.info["id"])
        assert (await right.execute(Command(command=["true"]))).exit_code == 0
        lost = runtime_of(server, "ses_" + "0" * 24)
        assert not (await lost.is_alive()).is_alive
        assert await refused(lost) == 404

    asyncio.run(work())
    for name, body in (
        ("execute", {}),
        ("execute", {"command": []}),
        ("execute", {"command": ["a\0b"]}),
        ("execute", {"command": "true", "timeout": "soon"}),
        ("execute", {"command": "true", "timeout": -1}),
        ("execute", {"command": "true", "env": {"A=": "x"}}),
        ("execute", []),
        ("run_in_session", {"command": 7}),
        ("run_in_session", {"command": "true", "check": "perhaps"}),
        ("run_in_session", {"action_type": "zsh", "command": "true"}),
        ("run_in_session", {"command": "true", "expect": "x"}),
        ("read_file", {}),
        ("read_file", {"path": ""}),
        ("write_file", {"path": "/tmp/a", "content": 7}),
        ("create_session", {"session": "x" * 129}),
    ):
        answer = server.request("POST", f"/swe-rex/{session.info['id']}/{name}", json=body)
        assert answer.status_code == 422, (name, body, answer.text)
    for name, body in (
        ("create_session", {"session_type": "zsh"}),
        ("read_file", {"path": "/tmp/a", "encoding": "latin-1"}),
    ):
        answer = server.request("POST", f"/swe-rex/{session.info['id']}/{name}", json=body)
        assert answer.status_code == 501 and "This server" in answer.json()["detail"]
    form = {"target_path": (None, "/tmp/x")}
    assert server.request("POST", place.removeprefix(server.url) + "/upload", files=form).status_code == 422
    archive = tmp_path / "odd.zip"
    with zipfile.ZipFile(archive, "w") as odd:
        odd.writestr("../../outside.txt", "x")
    files = {
        "file": ("odd.zip", archive.read_bytes()),
        "target_path": (None, "/tmp/z"),
        "unzip": (None, "true"),
    }
    sent = server.request("POST", place.removeprefix(server.url) + "/upload", files=files)
    assert sent.status_code == 200
    assert session.value("__import__('os').path.exists('/outside.txt')") == "False"
    assert session.delete() == 204


def test_a_shell_goes_on_when_another_program_takes_the_servers_place() -> None:
    with Server(*LEAN, *BARE) as server:

        async def work(runtime: RemoteRuntime) -> None:
            await shell(runtime)
            await runtime.run_in_session(BashAction(command="x='a b'; cd /tmp"))
            Asked(server).wait_until_served()
            assert (await runtime.run_in_session(BashAction(command='echo "$x" $PWD'))).output == "a b /tmp\n"
            with pytest.raises(SessionExistsError):
                await shell(runtime)
            with pytest.raises(SessionDoesNotExistError):
                await runtime.run_in_session(BashAction(command="true", session="other"))

        use(server, work)
