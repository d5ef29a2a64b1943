# SPDX-License-Identifier: Apache-2.0
"""/api/kernels/{id}/channels: what clients over WebSocket rely on."""

import base64
import json
import socket
import struct
from collections.abc import Iterator

import pytest
import requests
import websocket

from channels_client import ChannelsClient, pack_v1, states, types
from harness import TOKEN, Server, Session


@pytest.fixture(params=[True, False], ids=["v1", "legacy"])
def client(request: pytest.FixtureRequest, session: Session) -> Iterator[ChannelsClient]:
    with ChannelsClient(session, v1=request.param).connect() as connected:
        yield connected


def test_a_cell_runs(client: ChannelsClient) -> None:
    assert states([client.receive()]) == ["idle"]
    messages = client.run("print('out')\n1 + 1")
    assert types(messages) == [
        "status",
        "execute_input",
        "stream",
        "execute_result",
        "execute_reply",
        "status",
    ]
    assert [each["channel"] for each in messages] == ["iopub"] * 4 + ["shell", "iopub"]
    assert messages[3]["content"]["data"]["text/plain"] == "2"
    assert messages[4]["content"]["status"] == "ok"
    if not client.v1:
        assert all(each["msg_type"] == each["header"]["msg_type"] for each in messages)
        assert all(each["msg_id"] == each["header"]["msg_id"] for each in messages)
        assert all(each["buffers"] == [] for each in messages)


def test_buffers_go_both_ways(client: ChannelsClient) -> None:
    client.run(
        "from comm import get_comm_manager\n"
        "def opened(comm, message):\n"
        "    comm.on_msg(lambda m: comm.send({'n': 1}, buffers=[bytes(b) for b in m['buffers']]))\n"
        "get_comm_manager().register_target('echo', opened)"
    )
    client.send("comm_open", {"comm_id": "c", "target_name": "echo", "data": {}})
    sent = [b"\x00\xff\x80", b"", b"x" * 100_000]
    request = client.send("comm_msg", {"comm_id": "c", "data": {}}, buffers=sent)
    answer = client.receive_until("comm_msg", request)[-1]
    assert [bytes(each) for each in answer["buffers"]] == sent


def test_input_is_asked_and_answered(client: ChannelsClient) -> None:
    request = client.execute("print(input('name? '))")
    asked = client.receive_until("input_request", request)[-1]
    assert asked["channel"] == "stdin"
    assert asked["content"]["prompt"] == "name? "
    client.send("input_reply", {"value": "Ada"}, "stdin", parent=asked["header"])
    assert "Ada\n" in [
        each["content"]["text"]
        for each in client.receive_until_idle(request)
        if each["header"]["msg_type"] == "stream"
    ]


def test_a_running_cell_is_interrupted(client: ChannelsClient) -> None:
    request = client.execute("print('begun', flush=True)\nwhile True: pass")
    client.receive_until("stream", request)
    interrupt = client.send("interrupt_request", {}, "control")
    reply = client.receive_until("execute_reply", request)
    assert reply[-1]["content"]["ename"] == "KeyboardInterrupt"
    answered = [each["parent_header"].get("msg_id") for each in reply]
    if interrupt not in answered:
        client.receive_until("interrupt_reply", interrupt)


def test_a_busy_kernel_accepts_connections_and_tells_about_itself(session: Session) -> None:
    with ChannelsClient(session).connect() as runner:
        request = runner.execute("print('begun', flush=True)\nwhile True: pass")
        runner.receive_until("stream", request)
        with ChannelsClient(session).connect() as late:
            replayed = late.receive_until("stream")
            assert types(replayed) == ["status", "execute_input", "stream"]
            assert {each["parent_header"]["msg_id"] for each in replayed} == {request}
            assert states([late.receive()]) == ["busy"]
            info = late.send("kernel_info_request", {}, "control")
            late.receive_until("kernel_info_reply", info)
            late.send("interrupt_request", {}, "control")
        runner.receive_until("execute_reply", request)


def test_answers_wait_for_a_client_that_comes_back(session: Session) -> None:
    client = ChannelsClient(session).connect()
    request = client.execute("while True: pass")
    client.receive_until("execute_input", request)
    client.socket.close()
    assert session.post("interrupt").status_code == 204
    assert session.value("1") == "1"
    with client.connect():
        messages = client.receive_until_idle(request)
        assert types(messages).count("execute_reply") == 1
        assert types(messages).count("execute_input") == 0
        assert types(messages).count("error") == 1


def test_a_client_that_lost_its_state_is_asked_again(session: Session) -> None:
    client = ChannelsClient(session).connect()
    request = client.execute("print('got', input('name? '))")
    question = client.receive_until("input_request", request)[-1]
    client.socket.close()
    with client.connect("&replay=running"):
        again = client.receive_until("input_request", request)[-1]
        assert again["header"]["msg_id"] == question["header"]["msg_id"]
        client.send("input_reply", {"value": "me"}, "stdin", parent=again["header"])
        assert "got me" in json.dumps([each["content"] for each in client.receive_until_idle(request)])


def test_a_reloaded_page_may_answer_the_question_of_the_old_one(session: Session) -> None:
    old = ChannelsClient(session).connect()
    request = old.execute("print('got', input('name? '))")
    old.receive_until("input_request", request)
    old.socket.close()
    with ChannelsClient(session).connect() as page:
        page.send("cellkeep_replay_request", {"msg_ids": [request]}, "control")
        question = page.receive_until("input_request", request)[-1]
        assert question["content"]["prompt"] == "name? "
        page.send("input_reply", {"value": "forged"}, "stdin")
        page.send("input_reply", {"value": "me"}, "stdin", parent=question["header"])
        assert "got me" in json.dumps([each["content"] for each in page.receive_until_idle(request)])


def test_the_newest_of_two_sockets_of_one_client_wins(session: Session) -> None:
    first = ChannelsClient(session).connect()
    with ChannelsClient(session, session_id=first.session_id).connect() as second:
        code, reason = first.close_frame()
        assert code == 1000 and reason
        assert second.run("1")[-1]["content"]["execution_state"] == "idle"


def test_what_was_missed_can_be_asked_for(session: Session) -> None:
    with ChannelsClient(session).connect() as client:
        client.run("'one'")
        last = client.run("'two'")
        result = [each for each in last if each["header"]["msg_type"] == "execute_result"][0]
    msg_id = result["header"]["msg_id"]
    with ChannelsClient(session).connect(f"&since={msg_id}") as client:
        assert states([client.receive(), client.receive()]) == ["idle", "idle"]
    with ChannelsClient(session).connect("&replay=all") as client:
        everything = client.receive_until_idle(result["parent_header"]["msg_id"])
        assert types(everything).count("execute_result") == 2
    with ChannelsClient(session).connect("&replay=none") as client:
        assert states([client.receive()]) == ["idle"]
    with ChannelsClient(session).connect() as client:  # nothing runs
        assert states([client.receive()]) == ["idle"]


def test_bad_messages_do_not_end_the_socket(client: ChannelsClient) -> None:
    good = client.message("kernel_info_request", {})
    if client.v1:
        client.socket.send_binary(pack_v1("shell", {**good, "header": {}}, []))
        client.socket.send_binary(pack_v1("shell", {**good, "content": []}, []))
    else:
        for text in ("", "x", "[]", "{}", json.dumps({"header": {"msg_id": "m"}})):
            client.socket.send(text)
        client.socket.send(json.dumps({**good, "content": [], "channel": None}))
    refused = client.receive_until("kernel_info_reply", good["header"]["msg_id"])[-1]
    assert refused["content"]["status"] == "error"
    assert client.run("1")[-2]["content"]["status"] == "ok"


def test_legacy_messages_may_lack_almost_everything(session: Session) -> None:
    with ChannelsClient(session, v1=False).connect() as client:
        header = {"msg_id": "only", "msg_type": "kernel_info_request"}
        client.socket.send(json.dumps({"header": header, "buffers": {}}))
        assert client.receive_until("kernel_info_reply", "only")[-1]["content"]["status"] == "ok"


def test_broken_framing_ends_the_socket_with_a_reason(client: ChannelsClient) -> None:
    client.socket.send_binary(b"\xff" * 32)
    code, reason = client.close_frame()
    assert code == 1002 and reason


def test_the_death_of_a_kernel_is_reported_with_its_reason(client: ChannelsClient) -> None:
    request = client.execute("import os; os.kill(os.getpid(), 11)")
    messages = client.receive_until("execute_reply", request)
    assert messages[-1]["content"]["status"] == "error"
    assert "signal 11" in json.dumps([each["content"] for each in messages])
    while "restarting" not in states(messages):
        messages.append(client.receive())
    assert client.run("1")[-2]["content"]["status"] == "ok"


def test_the_end_of_a_session_closes_its_sockets(session: Session) -> None:
    with ChannelsClient(session).connect() as client:
        client.run("1")
        assert session.delete() == 204
        assert states(client.receive_until("status"))[-1] == "dead"
        code, reason = client.close_frame()
        assert code == 1000 and reason


def test_who_may_not_or_cannot_connect(server: Server, session: Session) -> None:
    path = f"/api/kernels/{session.info['kernel_id']}/channels"
    plain = server.get(path)
    assert plain.status_code == 400
    assert plain.json()["message"]
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        websocket.create_connection(server.url.replace("http", "ws", 1) + path)
    assert refused.value.status_code in (401, 403)
    unknown = path.replace(session.info["kernel_id"], "00000000-0000-4000-8000-000000000000")
    with pytest.raises(websocket.WebSocketBadStatusException) as missing:
        websocket.create_connection(
            server.url.replace("http", "ws", 1) + unknown, header=[f"Authorization: token {TOKEN}"]
        )
    assert missing.value.status_code == 404
    assert requests.get(server.url + path, timeout=10).status_code in (401, 403)


def test_clients_are_counted_while_they_are_connected(server: Server, session: Session) -> None:
    def connections() -> int:
        return server.get(f"/api/kernels/{session.info['kernel_id']}").json()["connections"]

    assert connections() == 0
    with ChannelsClient(session).connect() as client:
        client.receive()
        assert connections() == 1


def test_a_picture_arrives_whole(client: ChannelsClient) -> None:
    size = 3_000_000
    messages = client.run(
        "import os, base64\nfrom IPython.display import publish_display_data\n"
        f"data = base64.b64encode(os.urandom({size})).decode()\n"
        "publish_display_data({'image/png': data})"
    )
    shown = [each for each in messages if each["header"]["msg_type"] == "display_data"]
    assert len(base64.b64decode(shown[0]["content"]["data"]["image/png"])) == size
