# SPDX-License-Identifier: Apache-2.0
"""What the messaging specification (5.5) and the JEPs ask, beyond Jupyter's kernel test suite."""

import json
import re
from pathlib import Path

import pytest
import zmq
from jupyter_client.session import Session as WireSession

from harness import Client, Session, stream_text

ISO_8601 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")


def ask(client: Client, channel: str, msg_type: str, content: dict) -> dict:
    """Sends on shell or control and returns the reply to it."""
    message = client.kernel.session.msg(msg_type, content)
    getattr(client.kernel, f"{channel}_channel").send(message)
    while True:
        reply = getattr(client.kernel, f"get_{channel}_msg")(timeout=30)
        if reply["parent_header"]["msg_id"] == message["header"]["msg_id"]:
            return reply


def test_headers_are_complete(client: Client) -> None:
    reply = ask(client, "shell", "kernel_info_request", {})
    header = reply["header"]
    assert {"msg_id", "session", "username", "date", "msg_type", "version"} <= set(header)
    assert header["version"] == "5.5"
    raw = client.kernel.session.msg("kernel_info_request")
    assert reply["parent_header"]["session"] == raw["header"]["session"]


@pytest.mark.parametrize("channel", ["shell", "control"])
def test_kernel_info_says_the_same_on_shell_and_control(client: Client, channel: str) -> None:
    info = ask(client, channel, "kernel_info_request", {})["content"]
    assert info["status"] == "ok"
    assert info["protocol_version"] == "5.5"
    assert info["language_info"]["name"] == "python"
    assert info["language_info"]["mimetype"] == "text/x-python"
    assert info["language_info"]["file_extension"] == ".py"
    assert info["implementation"] and info["implementation_version"] and info["banner"]
    assert info["help_links"] == [] or all({"text", "url"} <= set(e) for e in info["help_links"])
    # JEP 91: nothing is promised that is not there.
    assert "kernel subshells" not in info.get("supported_features", [])


def test_busy_and_idle_enclose_every_request(client: Client) -> None:
    for msg_type, content in (
        ("kernel_info_request", {}),
        ("complete_request", {"code": "zi", "cursor_pos": 2}),
        ("comm_info_request", {}),
    ):
        reply = ask(client, "shell", msg_type, content)
        states = []
        while states[-1:] != ["idle"]:
            message = client.kernel.get_iopub_msg(timeout=30)
            if message["parent_header"].get("msg_id") == reply["parent_header"]["msg_id"]:
                assert message["msg_type"] == "status"
                states.append(message["content"]["execution_state"])
        assert states == ["busy", "idle"]


def test_the_order_of_one_executions_output(client: Client) -> None:
    reply, outputs = client.run("print('a')\n'b'")
    kinds = [message["msg_type"] for message in outputs]
    assert kinds == ["status", "execute_input", "stream", "execute_result", "status"]
    count = reply["execution_count"]
    assert outputs[1]["content"]["execution_count"] == count
    assert outputs[3]["content"]["execution_count"] == count
    parents = {message["parent_header"]["msg_id"] for message in outputs}
    assert len(parents) == 1


def test_silent_and_unstored_executions_do_not_count(client: Client) -> None:
    before = client.run("1")[0]["execution_count"]
    reply, outputs = client.run("print('x')\n2", silent=True)
    assert reply["status"] == "ok" and "execution_count" in reply
    assert [m["msg_type"] for m in outputs if m["msg_type"] != "status"] in ([], ["stream"])
    client.run("3", store_history=False)
    assert client.run("4")[0]["execution_count"] == before + 1


def test_user_expressions(client: Client) -> None:
    reply, _ = client.run("x = 6", user_expressions={"good": "x * 7", "bad": "nothing"})
    good, bad = reply["user_expressions"]["good"], reply["user_expressions"]["bad"]
    assert good["status"] == "ok" and good["data"]["text/plain"] == "42"
    assert bad["status"] == "error" and bad["ename"] == "NameError"


def test_an_error_has_all_its_fields_in_reply_and_output(client: Client) -> None:
    reply, outputs = client.run("1 / 0")
    error = next(m["content"] for m in outputs if m["msg_type"] == "error")
    for content in (reply, error):
        assert content["ename"] == "ZeroDivisionError"
        assert content["evalue"] == "division by zero"
        assert content["traceback"]
    assert reply["status"] == "error" and reply["execution_count"] > 0


def test_a_failure_aborts_what_waits_behind_it(client: Client) -> None:
    kernel = client.kernel
    first = kernel.execute("import time; time.sleep(0.5); 1 / 0", stop_on_error=True)
    waiting = [kernel.execute("never = 1"), kernel.execute("never = 2")]
    replies = {}
    while len(replies) < 3:
        reply = kernel.get_shell_msg(timeout=30)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]
    assert replies[first]["ename"] == "ZeroDivisionError"
    for sent in waiting:
        assert replies[sent]["status"] in ("error", "aborted")
        assert "execution_count" in replies[sent]
    assert client.run("'never' in globals()")[1][2]["content"]["data"]["text/plain"] == "False"


def test_a_failure_aborts_nothing_with_stop_on_error_false(client: Client) -> None:
    kernel = client.kernel
    kernel.execute("import time; time.sleep(0.5); 1 / 0", stop_on_error=False)
    second = kernel.execute("done = 1")
    while True:
        reply = kernel.get_shell_msg(timeout=30)
        if reply["parent_header"]["msg_id"] == second:
            break
    assert reply["content"]["status"] == "ok"


def test_displays_can_be_updated(client: Client) -> None:
    code = (
        "from IPython.display import display\n"
        "handle = display({'text/plain': 'one'}, raw=True, display_id='d')\n"
        "handle.update({'text/plain': 'two'}, raw=True)"
    )
    _, outputs = client.run(code)
    shown = next(m["content"] for m in outputs if m["msg_type"] == "display_data")
    updated = next(m["content"] for m in outputs if m["msg_type"] == "update_display_data")
    assert shown["transient"]["display_id"] == updated["transient"]["display_id"] == "d"
    assert updated["data"]["text/plain"] == "two"


def test_comms_open_talk_and_close(client: Client) -> None:
    client.run(
        "from IPython import get_ipython\nsaid = []\n"
        "def opened(comm, message):\n"
        "    comm.on_msg(lambda m: comm.send({'echo': m['content']['data']}))\n"
        "get_ipython().kernel.comm_manager.register_target('echo', opened)"
    )
    kernel = client.kernel
    shell = kernel.shell_channel
    opening = {"comm_id": "c1", "target_name": "echo", "data": {}}
    shell.send(kernel.session.msg("comm_open", opening))
    shell.send(kernel.session.msg("comm_msg", {"comm_id": "c1", "data": {"n": 1}}))
    assert client.wait_for_output("comm_msg")["content"]["data"] == {"echo": {"n": 1}}
    known = ask(client, "shell", "comm_info_request", {"target_name": "echo"})["content"]
    assert known["comms"] == {"c1": {"target_name": "echo"}}
    unknown = {"comm_id": "c2", "target_name": "nobody", "data": {}}
    shell.send(kernel.session.msg("comm_open", unknown))
    assert client.wait_for_output("comm_close")["content"]["comm_id"] == "c2"


def test_unknown_requests_do_not_hang_the_kernel(client: Client) -> None:
    kernel = client.kernel
    kernel.shell_channel.send(kernel.session.msg("nonsense_request", {}))
    kernel.control_channel.send(kernel.session.msg("nonsense_request", {}))
    assert client.run("1")[0]["status"] == "ok"
    assert ask(client, "control", "kernel_info_request", {})["content"]["status"] == "ok"


def test_each_subscription_is_welcomed(session: Session) -> None:
    """JEP 65, with the signature checked by Jupyter's own code."""
    info = json.loads(Path(session.info["connection_file"]).read_text(encoding="utf-8"))
    wire = WireSession(key=info["key"].encode(), signature_scheme=info["signature_scheme"])
    with zmq.Context() as context, context.socket(zmq.SUB) as iopub:
        iopub.linger = 0
        iopub.connect(f"ipc://{info['ip']}-{info['iopub_port']}")
        for topic in (b"", b"kernel."):
            iopub.subscribe(topic)
            assert iopub.poll(10_000)
            identities, frames = wire.feed_identities(iopub.recv_multipart())
            message = wire.deserialize(frames)
            assert identities == [topic]
            assert message["msg_type"] == "iopub_welcome"
            assert message["content"] == {"subscription": topic.decode()}
            assert message["parent_header"] == {}


def test_dates_are_iso_8601_with_an_offset(session: Session) -> None:
    info = json.loads(Path(session.info["connection_file"]).read_text(encoding="utf-8"))
    with zmq.Context() as context, context.socket(zmq.SUB) as iopub:
        iopub.linger = 0
        iopub.connect(f"ipc://{info['ip']}-{info['iopub_port']}")
        iopub.subscribe(b"")
        assert iopub.poll(10_000)
        iopub.recv_multipart()
        session.execute("print(1)")
        seen = 0
        while iopub.poll(1000):
            header = json.loads(iopub.recv_multipart()[3])
            assert ISO_8601.fullmatch(header["date"]), header
            seen += 1
        assert seen >= 4


def test_a_restart_shows_in_the_kernels_session(session: Session, client: Client) -> None:
    before = ask(client, "shell", "kernel_info_request", {})["header"]["session"]
    client.run("x = 1")
    assert session.post("restart").status_code == 200
    after = ask(client, "shell", "kernel_info_request", {})["header"]["session"]
    assert before != after
    assert client.run("x")[0]["ename"] == "NameError"
    assert client.run("1")[0]["execution_count"] <= 2


def test_what_is_asked_after_a_restart_waits_for_the_fresh_kernel(client: Client) -> None:
    client.run("open('kept', 'w').close()")
    for _ in range(5):
        client.run("x = 1")
        reply = ask(client, "control", "shutdown_request", {"restart": True})["content"]
        assert reply == {"status": "ok", "restart": True}
        assert client.run("x")[0]["ename"] == "NameError"
    _, outputs = client.run("import os; print(os.path.exists('kept'))")
    assert stream_text(outputs) == "True\n"


def test_a_shutdown_ends_the_session_and_is_answered(session: Session, client: Client) -> None:
    reply = ask(client, "control", "shutdown_request", {"restart": False})["content"]
    assert reply == {"status": "ok", "restart": False}
    assert session.server.get(session.path).status_code == 410
    assert not Path(session.info["connection_file"]).exists()
