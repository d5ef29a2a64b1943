# SPDX-License-Identifier: Apache-2.0
"""history_request over the life of a session: the cells of interpreters that are gone."""

from collections.abc import Callable

from harness import Client, Session

Attach = Callable[[Session], Client]


def history(client: Client, **question: object) -> list:
    msg_id = client.kernel.history(**question)
    while True:
        reply = client.kernel.get_shell_msg(timeout=60)
        if reply["parent_header"].get("msg_id") == msg_id:
            assert reply["content"]["status"] == "ok"
            return reply["content"]["history"]


def restart(session: Session, client: Client) -> None:
    assert session.post("restart").status_code < 300
    assert client.value("'ready'") == "'ready'"


def test_history_outlives_the_interpreter(session: Session, attach: Attach) -> None:
    client = attach(session)
    for code in ("1 + 1", "%time pass", "'é😀'"):
        client.run(code)
    client.run("'not stored'", store_history=False)
    restart(session, client)
    client.run("1 + 1")
    before = [[1, 1, ["1 + 1", "2"]], [1, 2, ["%time pass", None]], [1, 3, ["'é😀'", "'é😀'"]]]
    assert history(client, hist_access_type="range", session=-1, start=1, output=True) == before
    assert history(client, hist_access_type="range", session=1, start=2, stop=3) == [
        [1, 2, "%time pass"]
    ]
    assert history(client, hist_access_type="range", session=1, start=2, stop=3, raw=False) == [
        [1, 2, "get_ipython().run_line_magic('time', 'pass')"]
    ]
    now = [[2, 1, "'ready'"], [2, 2, "1 + 1"]]
    assert history(client, hist_access_type="range", session=0, start=1) == now
    assert history(client, hist_access_type="tail", n=3) == [[1, 3, "'é😀'"], *now]
    pattern = {"hist_access_type": "search", "pattern": "1 ?*"}
    assert history(client, **pattern) == [[1, 1, "1 + 1"], [2, 2, "1 + 1"]]
    assert history(client, **pattern, n=1) == [[2, 2, "1 + 1"]]
    assert history(client, **pattern, unique=True) == [[2, 2, "1 + 1"]]
    assert client.value("In[-1]") == "'In[-1]'"


def test_a_history_file_that_was_tampered_with_does_no_harm(
    session: Session, attach: Attach
) -> None:
    client = attach(session)
    client.run("kept = 1")
    client.run(
        "import json\n"
        "rows = ['', '{', '[1, 2]', '[0, 1, \"a\", \"a\", null]', '[true, 1, \"a\", \"a\", null]',\n"
        "        '[1, 99999999999, \"a\", \"a\", null]', '[1, 9, \"a\", 3, null]', '[' * 100000,\n"
        "        '[7, 1, \"theirs\", \"theirs\", \"8\"]', '[7, 1, \"twice\", \"twice\", null]', '\\xff']\n"
        "with open('/tmp/.cellkeep_history', 'ab') as file:\n"
        "    for row in rows:\n"
        "        file.write(row.encode('latin-1') + b'\\n')"
    )
    restart(session, client)
    rows = history(client, hist_access_type="tail", n=100)
    assert [row for row in rows if row[1] == 1] == [
        [1, 1, "kept = 1"], [7, 1, "twice"], [8, 1, "'ready'"],
    ]  # fmt: skip
    # In its place: something that cannot be read, or written, or that would make the kernel wait.
    for replace in ("os.mkdir(name)", "os.mkfifo(name)", "os.symlink('/dev/zero', name)"):
        client.run(
            "import os, shutil\nname = '/tmp/.cellkeep_history'\n"
            "shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)\n" + replace
        )
        assert client.run("2 + 2")[0]["status"] == "ok"
        restart(session, client)
        assert history(client, hist_access_type="tail", n=100) == [[1, 1, "'ready'"]]


def test_the_history_file_is_bounded(session: Session, attach: Attach) -> None:
    client = attach(session)
    client.run("import os\nsize = lambda: os.path.getsize('/tmp/.cellkeep_history')")
    most = 8 << 20
    for number in range(10):
        reply, _ = client.run(f"# {number} " + "x" * (1 << 20) + "\nassert size() <= 8 << 20")
        assert reply["status"] == "ok", reply
    assert most // 4 < int(client.value("size()")) <= most
    restart(session, client)
    newest = history(client, hist_access_type="tail", n=3)
    assert newest[0][2].startswith("# 9 ")
