# SPDX-License-Identifier: Apache-2.0
"""Programs that draw on a whole terminal, in `cellkeep shell`, seen through tmux: their size, colours
and keys, and how much can be pasted into them.

The server shows the host's files, because the private image has none of these editors."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import LEAN, Server, Session, binary, wait_until
from screen import PATIENCE_SECONDS, Screen

COLUMNS, ROWS = 100, 30
LATER_COLUMNS, LATER_ROWS = 120, 40
PASTED_BYTES = 1 << 20
Open = Callable[..., Screen]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    host = ("--image", "host", "--allow-degraded", "private_image")
    with Server(*LEAN, "--log-format", "text", *host) as running:
        yield running


@pytest.fixture
def shell(session: Session, tmp_path: Path) -> Iterator[Open]:
    opened: list[Screen] = []

    def open_screen(*command: str) -> Screen:
        state = ["--state-dir", str(session.server.state_dir)]
        words = [binary(), "shell", *state, session.info["id"], "--", *command]
        opened.append(Screen(tmp_path, words, COLUMNS, ROWS))
        return opened[-1]

    yield open_screen
    for screen in opened:
        screen.__exit__()


def text_of_a_megabyte(folder: Path) -> Path:
    line = "".join(chr(ord("a") + n % 26) for n in range(63)) + "\n"
    file = folder / "pasted"
    file.write_text(line * (PASTED_BYTES // len(line)), encoding="ascii")
    assert file.stat().st_size == PASTED_BYTES
    return file


def content_inside(session: Session, name: str) -> bytes:
    """Nothing, if there is no such file yet."""
    answer = session.server.get(f"{session.path}/files/{name}")
    assert answer.status_code in (200, 404), answer.text
    return answer.content if answer.status_code == 200 else b""


def digest_inside(session: Session, name: str) -> str:
    return hashlib.sha256(content_inside(session, name)).hexdigest()


def test_an_interpreter_has_its_size_colours_and_keys(shell: Open) -> None:
    screen = shell("python3", "-q", "-i")
    screen.wait_for(r"^>>> *$")
    screen.enter("import os, time; os.get_terminal_size()")
    screen.wait_for(rf"columns={COLUMNS}, lines={ROWS}")
    screen.resize(LATER_COLUMNS, LATER_ROWS)
    screen.enter("os.get_terminal_size()")
    screen.wait_for(rf"columns={LATER_COLUMNS}, lines={LATER_ROWS}")
    screen.enter(r"print('\033[31m' + 'r' + 'ed\033[0m and \033[44m' + 'b' + 'lue\033[0m')")
    screen.wait_for("^red and blue")
    screen.wait_for_colours(r"\x1b\[[0-9;]*31mred")
    screen.wait_for_colours(r"\x1b\[[0-9;]*44mblue")
    # The key Up brings the line back: the interpreter has a terminal that can edit.
    screen.enter("kept = 6 * 7; print('kept is', kept)")
    screen.wait_for("^kept is 42")
    screen.press("Up", "Enter")
    screen.wait_for(r"^kept is 42\n(?:.*\n)*?kept is 42")
    screen.enter("print('be' + 'gun'); time.sleep(600)")
    screen.wait_for("^begun")
    screen.press("C-c")
    screen.wait_for("KeyboardInterrupt")
    screen.enter("print('still', kept)")
    screen.wait_for("^still 42")
    assert screen.end_input(">>> ") == 0


def test_a_shell_stops_and_continues_its_jobs(shell: Open) -> None:
    screen = shell("bash", "--norc", "-i")
    screen.enter("PS1='ready> '")
    screen.wait_for("^ready> *$")
    screen.enter("sh -c 'echo be''gun; exec sleep 600'")
    screen.wait_for("^begun")
    screen.press("C-z")
    screen.wait_for("Stopped")
    screen.enter("jobs | wc -l; echo code=$?")
    screen.wait_for("^1\ncode=0")
    screen.enter("fg")
    screen.wait_for(r"^sh -c .*\n*\Z")
    screen.press("C-c")
    screen.enter("echo code=$?")
    screen.wait_for("^code=130")
    assert screen.end_input("ready> ") == 0


def test_a_megabyte_is_pasted_whole(session: Session, shell: Open, tmp_path: Path) -> None:
    file = text_of_a_megabyte(tmp_path)
    screen = shell("bash", "--norc", "-i")
    screen.enter("PS1='ready> '")
    screen.wait_for("^ready> *$")
    screen.enter("echo be''gun; cat > copy; echo $? > code")
    screen.wait_for("^begun")
    screen.paste(file)
    screen.press("C-d")
    # The terminal's echo may come behind what is printed after it, and without its last lines: no screen tells of the end.
    wait_until(lambda: content_inside(session, "code") == b"0\n", PATIENCE_SECONDS, "cat has ended")
    assert screen.blocks()
    screen.enter("")
    assert digest_inside(session, "copy") == hashlib.sha256(file.read_bytes()).hexdigest()
    assert screen.end_input("ready> ") == 0


def test_an_editor_draws_is_stopped_and_takes_a_megabyte(
    session: Session, shell: Open, tmp_path: Path
) -> None:
    file = text_of_a_megabyte(tmp_path)
    screen = shell("bash", "--norc", "-i")
    screen.enter("PS1='ready> '")
    screen.wait_for("^ready> *$")
    screen.enter("vim -u NONE -N -i NONE new.txt")
    screen.wait_for(r'"new\.txt" \[New\]')
    screen.wait_for(r"(?:^~ *\n){%d}" % (ROWS - 2))
    screen.resize(LATER_COLUMNS, LATER_ROWS)
    screen.wait_for(r"(?:^~ *\n){%d}" % (LATER_ROWS - 2))
    screen.enter(":set hlsearch paste")
    screen.type("ione two one")
    screen.press("Escape")
    screen.enter("/two")
    screen.wait_for("^one two one")
    # A match is shown in another colour than what is around it.
    screen.wait_for_colours(r"one (?:\x1b\[[0-9;]*m)+two(?:\x1b\[[0-9;]*m)+ one")
    screen.press("C-z")
    screen.wait_for("Stopped")
    screen.enter("fg")
    screen.wait_for("^one two one")
    screen.enter(":1delete")
    screen.type("i")
    screen.paste(file)
    screen.press("Escape")
    screen.enter(":wq")
    screen.wait_for("^ready> *$")
    screen.enter("echo code=$?")
    screen.wait_for("^code=0")
    # The editor keeps the empty line that it began with.
    wanted = hashlib.sha256(file.read_bytes() + b"\n").hexdigest()
    assert digest_inside(session, "new.txt") == wanted


def test_a_monitor_fills_the_screen_and_ends(shell: Open) -> None:
    # htop is none for a sandbox: it ends at once where there is no /proc/stat.
    screen = shell("bash", "--norc", "-i")
    screen.enter("PS1='ready> '")
    screen.wait_for("^ready> *$")
    screen.enter("top")
    screen.wait_for("^ *PID USER")
    screen.wait_for_colours(r"\x1b\[[0-9;]*7m")
    screen.resize(LATER_COLUMNS, LATER_ROWS)
    screen.wait_for("^ *PID USER")
    screen.press("q")
    screen.wait_for("^ready> *$")
    screen.enter("top")
    screen.wait_for("^ *PID USER")
    screen.press("C-c")
    screen.wait_for("^ready> *$")  # top throws away what was typed before its end
    screen.enter("echo en''ded")
    screen.wait_for("^ended")
