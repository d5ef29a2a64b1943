# SPDX-License-Identifier: Apache-2.0
"""Kernels of others do what sessions do: each its own language's result, plot, error, interrupt, completion …"""

import base64
import os
import subprocess
from pathlib import Path

import pytest
from harness import Client, Server, Session, wait_for
from kernels import KERNELS, AtInterrupt

PATIENCE_SECONDS = 60
ASKED_MOST = 3
# What the others do as well, by another transport or in another implementation of Python.
REPEATS = ("ipykernel-ipc", "xpython")
WITH_REPEATS = "CELLKEEP_FOREIGN_REPEATS" in os.environ
every = pytest.mark.parametrize("name", [n for n in KERNELS if WITH_REPEATS or n not in REPEATS])


def shown(answer: dict) -> list[dict]:
    """The data of everything that was shown: some kernels show results as displays."""
    return [display["data"] for display in answer["displays"]] + [answer["result"] or {}]


def texts(answer: dict) -> list[str]:
    assert answer["status"] == "ok", answer
    return [data.get("text/plain", "").strip() for data in shown(answer)]


def shows(session: Session, name: str, asked: tuple[str, str]) -> bool:
    code, value = asked
    return value in texts(session.execute(code))


@pytest.mark.parametrize("name", KERNELS)
def test_results_and_streams(shared, name: str) -> None:
    kernel, session = KERNELS[name], shared(name)
    assert shows(session, name, kernel.value)
    code, text = kernel.text
    answer = session.execute(code)
    assert (answer["status"], answer["stdout"]) == ("ok", text)
    assert session.execute(kernel.define)["status"] == "ok"
    assert shows(session, name, kernel.use)


@every
def test_plots(shared, name: str) -> None:
    code, media, begins = KERNELS[name].plot
    answer = shared(name).execute(code)
    assert answer["status"] == "ok", answer
    assert answer["artifacts"] == []
    (picture,) = [data[media] for data in shown(answer) if media in data]
    is_text = media == "image/svg+xml"
    assert (picture.encode() if is_text else base64.b64decode(picture)).startswith(begins)


@every
def test_errors(shared, name: str) -> None:
    fails = KERNELS[name].error
    answer = shared(name).execute(fails.code)
    assert answer["status"] == "error", answer
    error = answer["error"]
    assert fails.name in error["name"] and fails.message in error["message"]
    assert error["line"] == fails.line
    assert error["traceback"]


@every
def test_an_interrupt(shared, name: str) -> None:
    """Sent when the cell says that it has begun, however long that takes."""
    kernel, session = KERNELS[name], shared(name)
    assert session.execute(kernel.define)["status"] == "ok"
    events = session.events(kernel.endless)
    assert "begun" in wait_for(events, "stdout")["text"]
    assert session.post("interrupt").status_code == 204
    answer = wait_for(events, "finished")["execution"]
    assert (answer["status"], answer["state"]) == kernel.at_interrupt.value, answer
    assert shows(session, name, kernel.value)
    if kernel.at_interrupt is AtInterrupt.KEEPS:
        assert shows(session, name, kernel.use)


@every
def test_a_deadline(shared, name: str) -> None:
    """The answer is true, also if a busy machine leaves the kernel no time to obey the interrupt."""
    kernel, session = KERNELS[name], shared(name)
    session.execute(kernel.define)
    answer = session.execute(kernel.endless, timeout_ms=2000)
    assert answer["status"] == "timeout", answer
    if answer["state"] == "kept":
        assert shows(session, name, kernel.use)
    else:
        assert answer["state"] == "lost", answer
        assert session.execute(kernel.use[0])["status"] == "error"
    assert shows(session, name, kernel.value)


def complete(client: Client, code: str) -> dict:
    """Asks again if the kernel left it unanswered: its first completion reads much, for which a busy machine may
    take longer than the bridge waits (ANSWER_SECONDS)."""
    for _ in range(ASKED_MOST):
        reply = client.kernel.complete(code, reply=True, timeout=PATIENCE_SECONDS)["content"]
        if reply["status"] == "ok" or "does not answer" not in reply["evalue"]:
            break
    assert reply["status"] == "ok", reply
    return reply


@every
def test_completion_and_its_kin(shared, name: str) -> None:
    kernel = KERNELS[name]
    client = Client(shared(name))
    try:
        code, match = kernel.complete
        reply = complete(client, code)
        assert match in reply["matches"] and reply["cursor_start"] <= reply["cursor_end"]
        inspected = client.kernel.inspect(match, reply=True, timeout=PATIENCE_SECONDS)["content"]
        assert (inspected["status"], inspected["found"]) == ("ok", kernel.inspects)
        asked = client.kernel.is_complete(kernel.incomplete)
        reply = client.kernel.get_shell_msg(timeout=PATIENCE_SECONDS)
        while reply["parent_header"]["msg_id"] != asked:
            reply = client.kernel.get_shell_msg(timeout=PATIENCE_SECONDS)
        assert reply["content"]["status"] == "incomplete"
        info = client.kernel.kernel_info(reply=True, timeout=PATIENCE_SECONDS)["content"]
        assert info["language_info"]["name"].lower() == kernel.language
    finally:
        client.close()


@every
def test_the_first_question_is_answered(shared, name: str) -> None:
    code, answer, said = KERNELS[name].ask
    result = shared(name).execute(code, stdin=answer + "\n")
    assert result["status"] == "ok", result
    assert result["stdout"].endswith(said)


@every
def test_a_restart_gives_a_fresh_kernel(shared, name: str) -> None:
    kernel, session = KERNELS[name], shared(name)
    session.execute(kernel.define)
    assert session.post("restart").status_code == 200
    assert session.execute(kernel.use[0])["status"] == "error"
    assert shows(session, name, kernel.value)


@every
def test_a_death_is_reported_with_its_reason(shared, name: str) -> None:
    kernel, session = KERNELS[name], shared(name)
    code, how = kernel.end
    answer = session.execute(code)
    assert (answer["status"], answer["state"]) == ("dead", "lost"), answer
    assert how in str(answer["error"]), answer
    assert shows(session, name, kernel.value)


def test_much_output_arrives_in_order_and_whole(start) -> None:
    session = start("ipykernel", limits={"output_bytes": 10_000_000})
    answer = session.execute("for i in range(20000): print(i)")
    assert answer["stdout"] == "".join(f"{i}\n" for i in range(20000))


def test_output_that_the_idle_has_overtaken_is_in_its_answer(shared) -> None:
    session = shared("deno")
    for number in range(10):
        code = f"for (let i = 0; i < 200; i++) console.log(i); {number}"
        answer = session.execute(code)
        assert answer["stdout"] == "".join(f"{i}\n" for i in range(200))
        assert texts(answer) == [str(number)]


def test_a_kernel_that_never_stops_talking_ends_its_cell(shared) -> None:
    session = shared("deno")
    answer = session.execute("const ticks = setInterval(() => console.log('tick'), 0)")
    assert answer["status"] == "ok", answer
    assert session.execute("clearInterval(ticks)")["status"] == "ok"
    assert shows(session, "deno", KERNELS["deno"].value)


def test_memory_is_the_sessions(start) -> None:
    session = start("ipykernel", limits={"memory_mb": 400})
    answer = session.execute("x = bytearray(2_000_000_000)")
    assert answer["status"] == "oom", answer


def test_comms_pass(shared) -> None:
    client = Client(shared("ipykernel"))
    try:
        reply, outputs = client.run(
            "from comm import create_comm\n"
            "c = create_comm(target_name='t', data={'a': 1}, buffers=[b'\\x00\\xff'])\n"
            "c.on_msg(lambda m: c.send({'back': m['content']['data'], 'raw': m['buffers'][0].hex()}))"
        )
        assert reply["status"] == "ok"
        (opened,) = [one for one in outputs if one["msg_type"] == "comm_open"]
        assert [bytes(buffer) for buffer in opened["buffers"]] == [b"\x00\xff"]
        identity = opened["content"]["comm_id"]
        content = {"comm_id": identity, "data": {"x": 2}}
        message = client.kernel.session.msg("comm_msg", content)
        client.kernel.session.send(client.kernel.shell_channel.socket, message, buffers=[b"\x01\x02"])
        back = client.wait_for_output("comm_msg")
        assert back["content"]["data"] == {"back": {"x": 2}, "raw": "0102"}
        info = client.kernel.comm_info(reply=True, timeout=60)["content"]
        assert identity in info["comms"]
    finally:
        client.close()


def test_variables_reach_the_kernel(start) -> None:
    session = start("ipykernel", env={"MINE": "1"})
    code = "import os; print(os.environ['MINE'], os.environ['SEEN'], 'CELLKEEP_PYTHONPATH' in os.environ)"
    assert session.execute(code)["stdout"] == "1 /workspace/x False\n"


def test_nothing_more_of_the_host_is_seen(shared) -> None:
    session = shared("ipykernel")
    # Of the home folder at most the way to a clone in it is there.
    home, clone = Path.home(), Path(__file__).parents[3]
    way = {clone.relative_to(home).parts[0]} if clone.is_relative_to(home) else set()
    code = f"import os; print(*(os.listdir({str(home)!r}) if os.path.exists({str(home)!r}) else []))"
    answer = session.execute(code)
    assert answer["status"] == "ok" and set(answer["stdout"].split()) <= way
    assert {one.name for one in home.iterdir()} - way, "nothing that could be seen"
    assert session.execute("open('/opt/cellkeep/kernelspecs/ipykernel/x', 'w')")["error"]["name"] == "OSError"


@pytest.mark.parametrize("name", ["ends", "silent"])
def test_a_kernel_that_does_not_start_says_so(server: Server, name: str) -> None:
    answer = server.post("/v1/sessions", {"language": name})
    assert answer.status_code >= 500
    assert answer.headers["Content-Type"].startswith("application/problem+json")


REFUSED = {
    "python3": "taken",
    "no.name": "its name",
    "no-program": "/nonexistent/program",
    "no-argv": "argv is empty",
    "no-transport": "neither tcp nor ipc",
    "no-path": "no absolute path",
    "no-such-path": "/no/p",
    "in-tmp": "belongs to the sandbox",
    "no-json": "kernel.json",
}


@pytest.mark.parametrize("name", REFUSED)
def test_kernelspecs_that_cannot_be_offered_are_reported(server: Server, name: str) -> None:
    lines = [line for line in server.output().splitlines() if f"the language {name} is not offered" in line]
    assert len(lines) == 1 and REFUSED[name] in lines[0], server.output()[:2000]
    # "python3" is Cellkeep's own Python to Jupyter's clients, and no language.
    assert server.post("/v1/sessions", {"language": name}).status_code == 422


def test_jupyter_clients_see_them(server: Server) -> None:
    specs = server.get("/api/kernelspecs").json()["kernelspecs"]
    assert set(KERNELS) <= set(specs)
    assert not set(REFUSED) - {"python3"} & set(specs)
    assert specs["ir"]["spec"]["display_name"] == "R"


def test_a_directory_that_is_none_is_refused(tmp_path) -> None:
    from harness import binary

    done = subprocess.run(
        [binary(), "serve", "--listen", "127.0.0.1:0", "--foreign-kernels", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and "there is no directory" in done.stderr
