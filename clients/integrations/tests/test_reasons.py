# SPDX-License-Identifier: Apache-2.0
"""What counts as a broken sandbox, and what as a program's own failure. Needs no server."""

import doctest
import json
from collections.abc import Callable

import httpx
import pytest

import cellkeep_integrations.commands
import cellkeep_integrations.reasons
from cellkeep import Client, Event, ProcessInfo, Result
from cellkeep.errors import ConnectionFailed, ProtocolError, problem_error
from cellkeep_integrations import Box, Ran, SandboxBroken
from cellkeep_integrations.commands import Gathering, absolute, check_file, order
from cellkeep_integrations.creation import MARK
from cellkeep_integrations.reasons import broken_by, check_end, check_result

SESSION = {
    "id": "ses_1",
    "kernel_id": "k",
    "state": "idle",
    "language": "python",
    "limits": {},
}


def test_the_examples_of_the_modules_are_true() -> None:
    for module in (cellkeep_integrations.reasons, cellkeep_integrations.commands):
        failed, tried = doctest.testmod(module)
        assert tried > 0 and failed == 0


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (404, "unknown-session", "dead"),
        (404, "unknown-process", "dead"),
        (410, "session-ended", "dead"),
        (429, "limit-reached", "capacity"),
        (429, "budget-exhausted", "capacity"),
        (429, "circuit-open", "capacity"),
        (503, "unavailable", "capacity"),
        (413, "workspace-full", "disk_full"),
        (413, "too-large", "refused"),
        (401, "unauthorized", "refused"),
        (403, "read-only-role", "refused"),
        (409, "conflict", "refused"),
        (422, "invalid-request", "refused"),
        (500, "internal-error", "unreachable"),
        (504, "timeout", "unreachable"),
    ],
)
def test_a_refused_request_has_a_reason(status: int, kind: str, reason: str) -> None:
    problem = problem_error(status, {"type": f"/problems/{kind}", "title": "t"}, 2.0)
    assert broken_by(problem).reason == reason
    assert broken_by(problem).retry_after == 2.0


@pytest.mark.parametrize("error", [ConnectionFailed("gone"), ProtocolError("not JSON")])
def test_a_server_that_does_not_answer_is_unreachable(error: Exception) -> None:
    assert broken_by(error).reason == "unreachable"


@pytest.mark.parametrize("status", ["oom", "timeout", "dead", "disk_full"])
def test_what_the_sandbox_did_to_code_is_no_result(status: str) -> None:
    with pytest.raises(SandboxBroken) as caught:
        check_result(Result.from_wire({"status": status}))
    assert caught.value.reason == status


@pytest.mark.parametrize("status", ["ok", "error", "interrupted", "output_limit", "denied"])
def test_what_code_did_itself_is_a_result(status: str) -> None:
    result = Result.from_wire({"status": status})
    assert check_result(result) is result


def ended(reason: str, code: int | None = None, signal: str | None = None) -> ProcessInfo:
    more = {"label": None, "argv": ["x"], "cwd": "/", "pid": 2, "state": "exited", "error": None}
    known = {"output_bytes": 0, "stdin_open": False}
    return ProcessInfo(id="prc_1", reason=reason, exit_code=code, signal=signal, **more, **known)


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        (ended("session_ended"), "dead"),
        (ended("oom"), "oom"),
        (ended("signal", signal="SIGKILL"), "oom"),
        (ended("exited", 137), "oom"),
    ],
)
def test_a_command_that_was_ended_has_no_exit_code(info: ProcessInfo, reason: str) -> None:
    with pytest.raises(SandboxBroken) as caught:
        check_end(info)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "info", [ended("exited", 0), ended("exited", 1), ended("exited", 139), ended("signal", signal="SIGTERM")]
)
def test_a_command_that_ended_itself_has_one(info: ProcessInfo) -> None:
    check_end(info)


def test_output_without_an_end_is_no_result() -> None:
    with pytest.raises(SandboxBroken, match="dead"):
        Gathering(10).result()


@pytest.mark.parametrize(
    ("ran", "error"),
    [
        (Ran(117, b"", b"2"), FileNotFoundError),
        (Ran(117, b"", b"13"), PermissionError),
        (Ran(117, b"", b"21"), IsADirectoryError),
        (Ran(117, b"", b"20"), NotADirectoryError),
        (Ran(117, b"", b"36"), OSError),
        (Ran(117, b"", b"28"), SandboxBroken),
        (Ran(117, b"", b"122"), SandboxBroken),
        (Ran(117, b"", b"12"), SandboxBroken),
        (Ran(117, b"", b"words"), SandboxBroken),
        (Ran(1, b"", b"Traceback"), SandboxBroken),
        (Ran(0, b"", b""), SandboxBroken),
        (Ran(0, b"cut", b""), SandboxBroken),
    ],
)
def test_a_file_that_cannot_be_used(ran: Ran, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_file("/x", ran)


def test_a_file_that_came_whole() -> None:
    assert check_file("/x", Ran(0, b"a\n\n", b"")) == b"a\n"
    assert check_file("/x", Ran(0, b"\n", b"")) == b""


def test_lost_output_is_no_result() -> None:
    gathering = Gathering(10)
    gathering.add(Event("gap", {"bytes": 3}, None))
    process = {"id": "prc_1", "label": None, "argv": ["x"], "cwd": "/", "pid": 2, "state": "exited"}
    end = {"reason": "exited", "exit_code": 0, "signal": None, "error": None}
    more = {"end": end, "tty": None, "output": {"bytes": 3}, "stdin": "closed"}
    gathering.add(Event("exited", {"process": {**process, **more}}, None))
    with pytest.raises(SandboxBroken, match="3 bytes"):
        gathering.result()


@pytest.mark.parametrize("command", ["", [], [""], "a\0b", ["a", "b\0"]])
def test_no_system_can_start_this(command: str | list[str]) -> None:
    with pytest.raises(ValueError):
        order(command)


@pytest.mark.parametrize("more", [{"cwd": "/a\0"}, {"env": {"A": "\0"}}, {"env": {"A\0": ""}}])
def test_nor_with_this(more: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        order("ls", **more)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_this_is_no_path(path: str) -> None:
    with pytest.raises(ValueError):
        absolute(path, "/workspace")


def test_what_a_request_cannot_hold_goes_through_a_file() -> None:
    assert order(["x"] * 256).uploads == ()
    assert len(order(["x"] * 257).uploads) == 1
    assert order("y" * (32 << 10)).uploads == ()
    assert len(order("y" * ((32 << 10) + 1)).uploads) == 1
    assert order("ls", env={f"V{n}": "" for n in range(128)}).uploads == ()
    assert len(order("ls", env={f"V{n}": "" for n in range(129)}).uploads) == 1
    assert order("ls", stdin=bytes(512 << 10)).uploads == ()
    assert len(order("ls", stdin=bytes((512 << 10) + 1)).uploads) == 2


def fake(answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    return Client("http://test", "t", retries=0, transport=httpx.MockTransport(answer))


def problem(status: int, kind: str, after: str = "0") -> httpx.Response:
    document = {"type": f"/problems/{kind}", "title": "t", "status": status}
    return httpx.Response(status, json=document, headers={"Retry-After": after})


def test_a_full_server_is_asked_again() -> None:
    answers = [problem(429, "limit-reached"), problem(503, "unavailable"), httpx.Response(201, json=SESSION)]
    with fake(lambda _: answers.pop(0)) as client:
        assert Box.create(client).id == "ses_1"
    assert answers == []


def test_but_not_for_ever() -> None:
    with fake(lambda _: problem(429, "limit-reached", "0.01")) as client:
        with pytest.raises(SandboxBroken) as caught:
            Box.create(client, patience=0.05)
    assert caught.value.reason == "capacity"


@pytest.mark.parametrize("status", [401, 403, 422, 500])
def test_what_does_not_change_is_not_asked_again(status: int) -> None:
    answers = [problem(status, "x")]
    with fake(lambda _: answers.pop(0)) as client, pytest.raises(SandboxBroken):
        Box.create(client)
    assert answers == []


def cut_off(found: bool) -> tuple[Client, list[str]]:
    """A server whose answer to the creation gets lost on the way."""
    marks: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            marks.append(json.loads(request.content)["metadata"][MARK])
            raise httpx.ReadError("cut off")
        if request.url.path == "/v1/sessions":
            assert request.url.params[f"metadata.{MARK}"] == marks[0]
            return httpx.Response(200, json={"sessions": [SESSION] if found else [], "next": None})
        return httpx.Response(200, json=SESSION)

    return fake(answer), marks


def test_a_session_whose_creation_was_cut_off_is_found_again() -> None:
    client, marks = cut_off(True)
    assert Box.create(client, metadata={"task": "t"}).id == "ses_1"
    assert len(marks) == 1


def test_unless_there_is_none() -> None:
    client, marks = cut_off(False)
    with pytest.raises(SandboxBroken) as caught:
        Box.create(client)
    assert caught.value.reason == "unreachable"
    assert len(marks) == 1
