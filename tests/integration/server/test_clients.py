# SPDX-License-Identifier: Apache-2.0
"""Stock Jupyter clients attached to sessions that the session API made, and the other way round."""

import base64
import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import zmq
from jupyter_client import AsyncKernelClient, KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from harness import LEAN, Client, Server, Session, stream_text

Attach = Callable[[Session], Client]

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()"


def pictures(outputs: list[dict]) -> list[bytes]:
    return [
        base64.b64decode(message["content"]["data"]["image/png"])
        for message in outputs
        if message["msg_type"] == "display_data" and "image/png" in message["content"]["data"]
    ]


def test_the_connection_file_is_private_and_complete(session: Session) -> None:
    path = Path(session.info["connection_file"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    connection = json.loads(path.read_text(encoding="utf-8"))
    assert connection["transport"] == "ipc"
    assert connection["signature_scheme"] == "hmac-sha256"
    assert len(connection["key"]) == 64
    assert stat.S_IMODE(Path(connection["ip"]).parent.stat().st_mode) == 0o700
    ports = [connection[f"{name}_port"] for name in ("shell", "iopub", "stdin", "control", "hb")]
    assert len(set(ports)) == 5


def test_each_side_sees_the_variables_of_the_other(session: Session, attach: Attach) -> None:
    session.execute("from_api = 'made by the API'")
    client = attach(session)
    assert client.value("from_api") == "'made by the API'"
    client.run("from_client = [1, 2, 3]")
    assert session.value("from_client") == "[1, 2, 3]"


def test_a_plot_made_by_the_api_appears_at_the_client(session: Session, attach: Attach) -> None:
    client = attach(session)
    result = session.execute(PLOT)
    assert len(result["displays"]) == 1
    message = client.wait_for_output("display_data")
    seen = base64.b64decode(message["content"]["data"]["image/png"])
    assert seen == base64.b64decode(result["displays"][0]["data"]["image/png"])
    assert seen.startswith(b"\x89PNG\r\n")


def test_a_plot_made_by_a_client_appears_at_the_other(session: Session, attach: Attach) -> None:
    maker, watcher = attach(session), attach(session)
    _, outputs = maker.run(PLOT)
    message = watcher.wait_for_output("display_data")
    assert [base64.b64decode(message["content"]["data"]["image/png"])] == pictures(outputs)
    saved = session.execute("figure = plt.figure()\nplt.plot([2, 1])\nfigure.savefig('p.png')")
    assert saved["status"] == "ok"
    assert session.server.get(f"{session.path}/files/p.png").content.startswith(b"\x89PNG")


def test_two_clients_at_once_get_their_own_answers(session: Session, attach: Attach) -> None:
    clients = [attach(session) for _ in range(4)]
    session.execute("seen = []")
    wrong: list[str] = []

    def work(number: int) -> None:
        for step in range(25):
            tag = f"{number}-{step}"
            _, outputs = clients[number].run(f"seen.append('{tag}'); print('{tag}')")
            if stream_text(outputs) != tag + "\n":
                wrong.append(tag)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(clients))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)
    assert wrong == []
    assert session.value("len(set(seen)), len(seen)") == "(100, 100)"


def test_a_client_sees_who_ran_what(session: Session, attach: Attach) -> None:
    watcher = attach(session)
    session.execute("40 + 2")
    assert watcher.wait_for_output("execute_input")["content"]["code"] == "40 + 2"
    result = watcher.wait_for_output("execute_result")
    assert result["content"]["data"]["text/plain"] == "42"


def test_input_is_asked_of_the_client_that_runs_the_cell(session: Session, attach: Attach) -> None:
    asked: list[dict] = []
    client, other = attach(session), attach(session)

    def answer(message: dict) -> None:
        asked.append(message["content"])
        client.kernel.input(f"answer {len(asked)}")

    reply, _ = client.run(
        "import getpass\na = input('name? ')\nb = getpass.getpass('secret? ')",
        allow_stdin=True,
        stdin_hook=answer,
    )
    assert reply["status"] == "ok", reply
    assert asked == [
        {"prompt": "name? ", "password": False},
        {"prompt": "secret? ", "password": True},
    ]
    assert session.value("a, b") == "('answer 1', 'answer 2')"
    assert not other.kernel.stdin_channel.msg_ready()


def test_input_without_stdin_is_an_error_not_a_hang(session: Session, attach: Attach) -> None:
    reply, _ = attach(session).run("input()", allow_stdin=False)
    assert reply["status"] == "error"
    assert reply["ename"] == "StdinNotImplementedError"


def test_a_client_interrupts_by_message(session: Session, attach: Attach) -> None:
    runner, stopper = attach(session), attach(session)
    sent = runner.kernel.execute("print('begun', flush=True)\nwhile True: pass")
    stopper.wait_for_output("stream")
    control = stopper.kernel.control_channel
    control.send(stopper.kernel.session.msg("interrupt_request", {}))
    assert stopper.kernel.get_control_msg(timeout=10)["content"]["status"] == "ok"
    reply = runner.kernel.get_shell_msg(timeout=10)
    assert reply["parent_header"]["msg_id"] == sent
    assert reply["content"]["ename"] == "KeyboardInterrupt"


def test_a_busy_kernel_answers_on_control(session: Session, attach: Attach) -> None:
    client = attach(session)
    client.kernel.execute("print('begun', flush=True)\nwhile True: pass")
    client.wait_for_output("stream")
    message = client.kernel.session.msg("kernel_info_request", {})
    client.kernel.control_channel.send(message)
    reply = client.kernel.get_control_msg(timeout=5)
    assert reply["parent_header"]["msg_id"] == message["header"]["msg_id"]
    assert reply["content"]["language_info"]["name"] == "python"
    assert session.post("interrupt").status_code == 204


def test_completion_inspection_and_history(session: Session, attach: Attach) -> None:
    kernel = attach(session).kernel
    session.execute("some_long_name = 3")
    completed = kernel.complete("some_lo", reply=True, timeout=30)["content"]
    assert "some_long_name" in completed["matches"]
    inspected = kernel.inspect("some_long_name", reply=True, timeout=30)["content"]
    assert inspected["found"] and "int" in inspected["data"]["text/plain"]
    asked = kernel.is_complete("for x in y:")
    whole = kernel.get_shell_msg(timeout=30)
    assert whole["parent_header"]["msg_id"] == asked
    assert whole["content"]["status"] == "incomplete"
    history = kernel.history(hist_access_type="tail", n=1, reply=True, timeout=30)["content"]
    assert history["history"][-1][2] == "some_long_name = 3"


def test_the_heartbeat_beats_and_stops_with_the_kernel(session: Session, attach: Attach) -> None:
    client = attach(session)
    assert client.kernel.is_alive()
    connection = json.loads(Path(session.info["connection_file"]).read_text(encoding="utf-8"))
    context = zmq.Context()
    with context.socket(zmq.REQ) as heart:
        heart.setsockopt(zmq.LINGER, 0)
        heart.connect(f"ipc://{connection['ip']}-{connection['hb_port']}")
        heart.send(b"ping")
        assert heart.poll(5000) and heart.recv() == b"ping"
    context.term()


def test_a_client_with_another_key_is_never_answered(session: Session) -> None:
    client = Client.__new__(Client)
    connection = json.loads(Path(session.info["connection_file"]).read_text(encoding="utf-8"))
    kernel = KernelManager().client()
    kernel.load_connection_info({**connection, "key": "0" * 64})
    kernel.start_channels(hb=False)
    client.kernel = kernel
    try:
        kernel.kernel_info()
        kernel.execute("stolen = 1")
        # A good request behind them proves that they have been looked at.
        assert session.execute("'stolen' in globals()")["result"]["text/plain"] == "False"
        assert not kernel.shell_channel.msg_ready()
    finally:
        client.close()
    assert session.execute("'stolen' in globals()")["result"]["text/plain"] == "False"


def test_a_session_over_tcp() -> None:
    with Server(*LEAN, "--zmq-transport", "tcp", "--log-format", "text") as server:
        session = server.create()
        connection = json.loads(Path(session.info["connection_file"]).read_text(encoding="utf-8"))
        assert connection["transport"] == "tcp" and connection["ip"] == "127.0.0.1"
        client = Client(session)
        assert client.value("6 * 7") == "42"
        client.close()


class ExistingKernelManager(KernelManager):
    """A manager for nbclient, of a kernel that another program owns."""

    client_class = "jupyter_client.asynchronous.AsyncKernelClient"

    @property
    def has_kernel(self) -> bool:
        return True

    async def is_alive(self) -> bool:
        return True

    async def shutdown_kernel(self, *_: object, **__: object) -> None:
        return


def run_notebook(session: Session, cells: list[str]) -> nbformat.NotebookNode:
    manager = ExistingKernelManager()
    manager.load_connection_file(session.info["connection_file"])
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code) for code in cells]
    )
    client = NotebookClient(notebook, km=manager, timeout=60)
    client.kc = AsyncKernelClient()
    client.kc.load_connection_file(session.info["connection_file"])
    client.kc.start_channels()
    try:
        client.execute(reset_kc=False)
    finally:
        client.kc.stop_channels()
    nbformat.validate(notebook)
    return notebook


def test_nbclient_executes_a_notebook(session: Session) -> None:
    session.execute("base = 40")
    notebook = run_notebook(session, ["x = base + 2\nprint(x)", "x", PLOT])
    printed, value, plot = [cell.outputs for cell in notebook.cells]
    assert printed[0].text == "42\n"
    assert value[0].data["text/plain"] == "42"
    assert any("image/png" in output.get("data", {}) for output in plot)
    assert session.value("x") == "42"


def test_nbclient_stops_at_a_failing_cell(session: Session) -> None:
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run_notebook(session, ["1 / 0", "never = 1"])
    assert session.execute("never")["error"]["name"] == "NameError"


def test_what_a_kernel_is_waits_for_the_end_of_code_that_failed_but_not_for_ever(
    session: Session, attach: Attach
) -> None:
    """Code that has caught what it shows goes on: its end comes after the answer here, or never."""
    kernel = attach(session).kernel
    shown = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()\n"
    request = kernel.execute(shown + "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)")
    while kernel.get_iopub_msg(timeout=60)["msg_type"] != "error":
        pass
    asked = kernel.kernel_info()
    reply = kernel.get_shell_msg(timeout=60)
    assert (reply["msg_type"], reply["parent_header"]["msg_id"]) == ("kernel_info_reply", asked)
    assert session.server.request("PUT", session.path + "/files/go", data=b"").ok
    reply = kernel.get_shell_msg(timeout=60)
    assert (reply["msg_type"], reply["parent_header"]["msg_id"]) == ("execute_reply", request)
