# SPDX-License-Identifier: Apache-2.0
"""Lines of real notebooks that import from ipykernel, which is not what runs here."""

from collections.abc import Callable

import pytest

from harness import Client, Session

# As they stand in published notebooks and libraries; each ends in an expression.
LINES = {
    "the version": ("import ipykernel\nipykernel.__version__.split('.')[0]", "'6'"),
    "a comparison of versions": (
        "import ipykernel\nipykernel.version_info >= (6, 0) and ipykernel.version_info[0] < 7",
        "True",
    ),
    "where the kernel is": ("get_ipython().kernel.shell is get_ipython()", "True"),
    "the application": (
        "from ipykernel.kernelapp import IPKernelApp\n"
        "IPKernelApp.initialized() and IPKernelApp.instance().kernel is get_ipython().kernel",
        "True",
    ),
    "is this a notebook": (
        "from ipykernel.zmqshell import ZMQInteractiveShell\n"
        "isinstance(get_ipython(), ZMQInteractiveShell)",
        "True",
    ),
    "which kernel is this": (
        "from ipykernel.ipkernel import IPythonKernel\nfrom ipykernel.kernelbase import Kernel\n"
        "isinstance(get_ipython().kernel, (IPythonKernel, Kernel))",
        "True",
    ),
    "who writes": (
        "import sys\nfrom ipykernel.iostream import OutStream\nisinstance(sys.stdout, OutStream)",
        "True",
    ),
    "comms by their old name": (
        "from ipykernel.comm import Comm, CommManager\nimport comm\n"
        "isinstance(comm.get_comm_manager(), CommManager) and comm.create_comm is Comm",
        "True",
    ),
    "the manager of comms": (
        "from ipykernel.comm import CommManager\n"
        "isinstance(get_ipython().kernel.comm_manager, CommManager)",
        "True",
    ),
    "cleaned JSON": (
        "from ipykernel.jsonutil import json_clean, encode_images\njson_clean({'a': [1]})",
        "{'a': [1]}",
    ),
    "the hook of results": (
        "from ipykernel.displayhook import ZMQShellDisplayHook\n"
        "isinstance(get_ipython().displayhook, ZMQShellDisplayHook)",
        "True",
    ),
    "the parent's header": ("get_ipython().kernel._parent_header['header']['msg_type']", None),
    "the configuration of figures": (
        "from ipykernel.pylab.config import InlineBackend\n"
        "InlineBackend.instance().print_figure_kwargs['bbox_inches']",
        "'tight'",
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_a_notebooks_line_works(session: Session, line: str) -> None:
    code, expected = LINES[line]
    assert session.value(code) == (expected or "'execute_request'")


def test_figures_by_the_old_backend(session: Session) -> None:
    session.execute("import matplotlib\nmatplotlib.use('module://ipykernel.pylab.backend_inline')")
    drawn = session.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert drawn["status"] == "ok", drawn
    assert "image/png" in drawn["displays"][0]["data"]
    flushed = session.execute(
        "from ipykernel.pylab.backend_inline import flush_figures\nplt.plot([2, 1])\nflush_figures()"
    )
    assert flushed["status"] == "ok", flushed
    assert len([d for d in flushed["displays"] if "image/png" in d["data"]]) == 1
    unshown = session.execute("plt.plot([3, 1]);")
    assert len([d for d in unshown["displays"] if "image/png" in d["data"]]) == 1


def test_comms_go_both_ways(session: Session, attach: Callable[[Session], Client]) -> None:
    client = attach(session)
    reply, outputs = client.run(
        "from ipykernel.comm import Comm\nheard = []\n"
        "mine = Comm(target_name='dashboard', data={'a': 1}, metadata={'b': 2})\n"
        "mine.on_msg(lambda message: heard.append(message['content']['data']))\n"
        "mine.send({'c': 3}, buffers=[b'xyz'])"
    )
    assert reply["status"] == "ok", reply
    opened, sent = [m for m in outputs if m["msg_type"].startswith("comm_")]
    assert (opened["msg_type"], sent["msg_type"]) == ("comm_open", "comm_msg")
    assert opened["content"]["target_name"] == "dashboard"
    assert (opened["content"]["data"], opened["metadata"]) == ({"a": 1}, {"b": 2})
    assert sent["content"] == {"comm_id": opened["content"]["comm_id"], "data": {"c": 3}}
    assert [bytes(buffer) for buffer in sent["buffers"]] == [b"xyz"]

    answer = {"comm_id": opened["content"]["comm_id"], "data": {"clicked": True}}
    client.kernel.shell_channel.send(client.kernel.session.msg("comm_msg", answer))
    assert client.value("heard") == "[{'clicked': True}]"


def test_a_front_end_opens_a_comm(session: Session, attach: Callable[[Session], Client]) -> None:
    client = attach(session)
    client.run(
        "opened = []\nget_ipython().kernel.comm_manager.register_target(\n"
        "    'from_page', lambda comm, message: opened.append(message['content']['data']))"
    )
    content = {"comm_id": "c1", "target_name": "from_page", "data": {"x": 1}}
    client.kernel.shell_channel.send(client.kernel.session.msg("comm_open", content))
    assert client.value("opened") == "[{'x': 1}]"


def test_messages_of_the_kernels_own(
    session: Session, attach: Callable[[Session], Client]
) -> None:
    client = attach(session)
    reply, outputs = client.run(
        "kernel = get_ipython().kernel\nprint('before')\n"
        "kernel.send_response(kernel.iopub_socket, 'display_data',\n"
        "    {'data': {'text/plain': 'shown'}, 'metadata': {}})"
    )
    assert reply["status"] == "ok", reply
    kinds = [m["msg_type"] for m in outputs if m["msg_type"] in ("stream", "display_data")]
    assert kinds == ["stream", "display_data"]
    assert client.value("kernel.execution_count == get_ipython().execution_count") == "True"


@pytest.mark.parametrize(
    "line",
    [
        "import ipykernel\nipykernel.get_connection_file()",
        "from ipykernel.connect import get_connection_info\nget_connection_info()",
        "from ipykernel import connect_qtconsole\nconnect_qtconsole()",
    ],
)
def test_what_cannot_be_had_inside_says_where_it_is(session: Session, line: str) -> None:
    failed = session.execute(line)
    assert failed["error"]["name"] == "RuntimeError"
    assert "cellkeep connect" in failed["error"]["message"]


def test_what_there_is_none_of_is_missing(session: Session) -> None:
    failed = session.execute("import ipykernel.eventloops")
    assert failed["error"]["name"] == "ModuleNotFoundError"
    # And no module is imported that the cell did not ask for.
    assert session.value("'ipykernel.comm' in __import__('sys').modules") == "False"
