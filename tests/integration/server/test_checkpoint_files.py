# SPDX-License-Identifier: Apache-2.0
"""The files of a session's checkpoints: kept once, put back with the memory, compared."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from checkpoints import (
    FILE_BYTES_MAX,
    PATIENCE_SECONDS,
    ask_back,
    checkpoint,
    differences,
    listed,
    listing,
    roll_back,
    run,
)
from harness import Server, Session, wait_until

pytestmark = pytest.mark.both_modes


def test_files_come_back_with_the_memory(session: Session) -> None:
    run(
        session,
        "import os\n"
        "os.makedirs('d/inner'); open('d/inner/kept.txt', 'w').write('before')\n"
        "open('data.bin', 'wb').write(b'x' * 100_000); os.symlink('data.bin', 'link')\n"
        "os.chmod('data.bin', 0o640); file = open('data.bin', 'r+b'); _ = file.seek(5)",
    )
    made = checkpoint(session)
    assert made["file_bytes"] == 100_006
    assert made["files"] == {"count": 5, "complete": True, "unkept_count": 0, "unkept": []}
    run(
        session,
        "import shutil\n"
        "_ = file.write(b'changed'); file.flush(); os.chmod('data.bin', 0o600)\n"
        "shutil.rmtree('d'); os.unlink('link'); os.makedirs('new/one'); open('new/one/f', 'w').close()",
    )
    changed = {
        "d": "deleted",
        "d/inner": "deleted",
        "d/inner/kept.txt": "deleted",
        "data.bin": "modified",
        "link": "deleted",
        "new": "created",
        "new/one": "created",
        "new/one/f": "created",
    }
    assert differences(session, made) == changed
    back = roll_back(session, made)
    assert back["files"]["failed_count"] == 0 and back["files"]["removed"] == 3
    assert differences(session, made) == {}
    assert differences(session, made, back["left_as"]) == changed
    seen = run(
        session,
        "print(open('d/inner/kept.txt').read(), os.readlink('link'), oct(os.stat('data.bin').st_mode),"
        " os.path.exists('new'), file.tell(), set(open('data.bin', 'rb').read()) == set(b'x'))",
    )
    assert seen["stdout"] == "before data.bin 0o100640 False 5 True\n"
    # What is open is the file that came back.
    run(session, "file.write(b'again'); file.flush()")
    assert session.value("open('data.bin', 'rb').read()[:12]") == "b'xxxxxagainxx'"
    # And forth, files and memory.
    assert ask_back(session, back["left_as"]).status_code == 200
    assert differences(session, back["left_as"]) == {}
    assert session.value("os.path.exists('new/one/f'), os.path.exists('d'), 'shutil' in globals()") == (
        "(True, False, True)"
    )


def test_a_turn_that_changed_nothing_makes_no_checkpoint(session: Session) -> None:
    run(session, "x = 1; open('f', 'w').write('one')")
    made = checkpoint(session)
    again = checkpoint(session)
    assert again["unchanged"] and again["id"] == made["id"] and again["evicted"] == []
    assert not checkpoint(session, label="wanted")["unchanged"]
    # By code.
    run(session, "x")
    assert not checkpoint(session)["unchanged"]
    # By files alone.
    before = checkpoint(session)
    assert before["unchanged"]
    put = session.server.request("PUT", session.path + "/files/f", data=b"two")
    assert put.status_code in (200, 201, 204), put.text
    later = checkpoint(session)
    assert not later["unchanged"] and differences(session, before, later) == {"f": "modified"}
    # After a rollback the state is that of the checkpoint, but for new random states.
    roll_back(session, made)
    assert checkpoint(session)["id"] == made["id"]
    assert roll_back(session, made)["left_as"] == made["id"]
    roll_back(session, made, discard=True, reseed=True)
    assert not checkpoint(session)["unchanged"]
    # A fresh interpreter comes from no checkpoint.
    assert session.post("restart").status_code == 200
    assert not checkpoint(session)["unchanged"]


def test_equal_contents_are_stored_once_and_go_with_their_last_checkpoint(session: Session) -> None:
    run(session, "for name in 'ab': open(name, 'wb').write(b'same' * 1000)")
    first = checkpoint(session)
    assert listing(session)["stored_file_bytes"] == 4000
    run(session, "open('c', 'wb').write(b'c' * 500)")
    second = checkpoint(session)
    assert (first["file_bytes"], second["file_bytes"]) == (8000, 8500)
    assert listing(session)["stored_file_bytes"] == 4500
    for made in listed(session):
        assert made["private_bytes"] is None or made["private_bytes"] > 0
    path = f"{session.path}/checkpoints/{second['id']}"
    assert session.server.request("DELETE", path).status_code == 204
    wait_until(lambda: listing(session)["stored_file_bytes"] == 4000, PATIENCE_SECONDS, "dropped")
    roll_back(session, first, discard=True)
    assert session.value("open('a').read() == open('b').read() == 'same' * 1000") == "True"


@pytest.mark.both_modes(False)
def test_for_the_room_of_files_the_oldest_without_a_label_goes(server: Server) -> None:
    session = server.create(limits={"disk_mb": 500, "memory_mb": 1024})
    try:
        # Contents that are not all zeros, and cost little to make.
        fill = "with open('big', 'wb') as file:\n    for _ in range(400): _ = file.write(bytes([%d]) * (1 << 20))"
        made = []
        for number in (1, 2):
            run(session, fill % number)
            made.append(checkpoint(session))
        run(session, fill % 3)
        third = checkpoint(session)
        assert third["evicted"] == [made[0]["id"]]
        assert ask_back(session, made[0]["id"]).json()["reason"] == "evicted"
        back = roll_back(session, made[1], discard=True)
        assert back["files"]["failed_count"] == 0
        assert session.value("open('big', 'rb').read(1)") == "b'\\x02'"
    finally:
        session.delete()


@pytest.mark.parametrize(
    ("status", "query"),
    [
        (400, ""),
        (400, "against="),
        (400, "checkpoint=ckp_1"),
        (404, "against=ckp_1"),
        (404, "against=ckp_1&checkpoint=ckp_2"),
    ],
)
def test_wrong_comparisons(session: Session, status: int, query: str) -> None:
    answer = session.server.get(f"{session.path}/diff?{query}")
    assert answer.status_code == status, answer.text


def test_a_comparison_with_one_that_is_gone(session: Session) -> None:
    first = checkpoint(session, label="first")
    second = checkpoint(session, label="second")
    assert differences(session, first, second) == {}
    assert session.server.request("DELETE", f"{session.path}/checkpoints/{second['id']}").status_code == 204
    path = f"{session.path}/diff?against={first['id']}&checkpoint={second['id']}"
    gone = session.server.get(path)
    assert gone.status_code == 410 and gone.json()["reason"] == "deleted", gone.text


def test_a_cell_that_comes_meanwhile_waits(session: Session) -> None:
    run(session, "open('big', 'wb').write(bytes([7]) * (100 << 20)); x = 'kept'")
    made = checkpoint(session, label="big")
    run(session, "open('big', 'wb').write(bytes([8]) * (100 << 20)); x = 'left'")
    with ThreadPoolExecutor(1) as pool:
        body = {"checkpoint": made["id"], "discard": True}
        coming = pool.submit(session.server.post_apart, session.path + "/rollback", body)
        # Answered by the interpreter that is left or by the one that goes on, never by half.
        answers = []
        while not coming.done():
            result = session.execute("x, open('big', 'rb').read(1)[0]")
            if result["status"] == "ok":
                answers.append(result["result"]["text/plain"])
        assert coming.result().status_code == 200
    assert set(answers) <= {"('left', 8)", "('kept', 7)"}
    assert session.value("x, open('big', 'rb').read(1)[0]") == "('kept', 7)"
    assert made["file_bytes"] < FILE_BYTES_MAX
