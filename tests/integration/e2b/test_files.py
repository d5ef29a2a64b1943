# SPDX-License-Identifier: Apache-2.0
"""E2B's client for Python, over the server: files, directories, signed addresses."""

import io
from pathlib import Path
from urllib.parse import unquote

import pytest
import requests
from e2b import (
    FilesystemEventType,
    FileType,
    InvalidArgumentException,
    NotFoundException,
    SandboxException,
)
from e2b_code_interpreter import Sandbox
from harness import wait_until


def test_what_is_written_is_read(shared: Sandbox) -> None:
    written = shared.files.write("notes.txt", "käse\n")
    assert written.path == "/home/user/notes.txt" and written.name == "notes.txt"
    assert shared.files.read("notes.txt") == "käse\n"
    assert shared.files.read("/workspace/notes.txt") == "käse\n"
    assert shared.run_code("open('notes.txt').read()").text == "käse\\n"
    assert shared.commands.run("cat /home/user/notes.txt").stdout == "käse\n"
    assert shared.files.read("notes.txt", format="bytes") == "käse\n".encode()
    assert b"".join(shared.files.read("notes.txt", format="stream")) == "käse\n".encode()
    shared.files.write("notes.txt", b"")
    assert shared.files.read("notes.txt") == ""


def test_large_and_odd_contents_survive(shared: Sandbox) -> None:
    contents = bytes(range(256)) * 8192 + b"\r\n--not-the-boundary--\r\n"
    shared.files.write("deep/er/data.bin", contents)
    assert shared.files.read("deep/er/data.bin", format="bytes") == contents
    shared.files.write("stream.bin", io.BytesIO(contents))
    assert shared.files.read("stream.bin", format="bytes") == contents
    shared.files.write('a "quoted" name', "x")
    assert shared.files.exists('a "quoted" name') or shared.files.exists("a %22quoted%22 name")


def test_many_files_in_one_request(shared: Sandbox) -> None:
    entries = [{"path": f"many/{number}.txt", "data": str(number)} for number in range(20)]
    assert len(shared.files.write_files(entries)) == 20
    names = [entry.name for entry in shared.files.list("many")]
    assert sorted(names) == sorted(f"{number}.txt" for number in range(20))
    assert shared.files.read("many/7.txt") == "7"


def test_entries_are_described(shared: Sandbox) -> None:
    shared.files.write("d/sub/file", "12345")
    shared.commands.run("ln -s file d/sub/link; chmod 640 d/sub/file", cwd="/home/user")
    info = shared.files.get_info("d/sub/file")
    assert info.type == FileType.FILE and info.size == 5
    assert info.permissions == "-rw-r-----" and info.mode == 0o640
    assert info.path == "/home/user/d/sub/file" and info.owner == "user"
    link = shared.files.get_info("d/sub/link")
    assert link.symlink_target == "file"
    shallow = {entry.path for entry in shared.files.list("d")}
    assert shallow == {"/home/user/d/sub"}
    deep = {entry.path for entry in shared.files.list("d", depth=2)}
    assert deep >= {"/home/user/d/sub", "/home/user/d/sub/file"}


def test_directories_moves_and_removal(shared: Sandbox) -> None:
    assert shared.files.make_dir("made/here") is True
    assert shared.files.make_dir("made/here") is False
    shared.files.write("made/a", "1")
    moved = shared.files.rename("made/a", "made/here/b")
    assert moved.path == "/home/user/made/here/b"
    assert not shared.files.exists("made/a") and shared.files.exists("made/here/b")
    shared.files.remove("made")
    assert not shared.files.exists("made")
    with pytest.raises(NotFoundException):
        shared.files.rename("made/a", "made/b")
    with pytest.raises(SandboxException):
        shared.files.remove("/home/user")


def test_a_move_replaces_a_file_or_leaves_it(shared: Sandbox) -> None:
    shared.files.write("move/a", "new")
    shared.files.write("move/b", "old")
    assert shared.files.rename("move/a", "move/b").path == "/home/user/move/b"
    assert shared.files.read("move/b") == "new"
    shared.files.write("move/a/kept", "inside")
    shared.commands.run("mkdir move/ro && echo s > move/ro/s && chmod 500 move/ro")
    for source, target in (
        ("move/a", "move/a/kept"),
        ("move/a", "move/b"),
        ("move/ro/s", "move/b"),
        ("move/none", "move/b"),
    ):
        with pytest.raises(SandboxException):
            shared.files.rename(source, target)
    assert shared.files.read("move/a/kept") == "inside"
    assert shared.files.read("move/b") == "new"
    assert shared.files.read("move/ro/s") == "s\n"
    shared.commands.run("chmod 700 move/ro")


def test_a_long_directory_is_listed_whole(shared: Sandbox) -> None:
    shared.commands.run("mkdir long && cd long && touch $(seq 1000)")
    assert len(shared.files.list("long")) == 1000
    shared.files.remove("long")


def test_what_is_not_there_is_said(shared: Sandbox) -> None:
    with pytest.raises(NotFoundException):
        shared.files.read("missing")
    with pytest.raises(NotFoundException):
        shared.files.list("missing")
    shared.files.make_dir("a-directory")
    with pytest.raises(InvalidArgumentException):
        shared.files.read("a-directory")
    assert shared.files.exists("missing") is False


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "/home/user/../../etc/passwd"])
def test_no_spelling_of_a_path_leads_out(shared: Sandbox, path: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host", encoding="utf-8")
    with pytest.raises(NotFoundException):
        shared.files.read(path.replace("/etc/passwd", str(secret)))
    own = shared.commands.run("cat /etc/passwd 2>/dev/null || true").stdout
    if own:
        assert shared.files.read(path) == own
    with pytest.raises(SandboxException):
        shared.files.write(path, "x")


def test_files_elsewhere_are_reached_by_programs_inside(shared: Sandbox) -> None:
    assert {"etc", "home", "tmp", "usr"} <= {entry.name for entry in shared.files.list("/")}
    written = shared.files.write("/tmp/deep/er/a 'b' \"c\".txt", "käse")
    assert written.path == "/tmp/deep/er/a 'b' \"c\".txt"
    assert shared.files.read(written.path) == "käse"
    assert shared.commands.run("cat /tmp/deep/er/a*").stdout == "käse"
    info = shared.files.get_info(written.path)
    assert (info.type, info.size, info.name) == (FileType.FILE, 5, written.name)
    shared.commands.run("ln -s er /tmp/deep/link && chmod 640 /tmp/deep/er/a*")
    assert shared.files.get_info("/tmp/deep/link").symlink_target == "er"
    assert shared.files.get_info(written.path).permissions == "-rw-r-----"
    assert {entry.path for entry in shared.files.list("/tmp/deep")} == {"/tmp/deep/er", "/tmp/deep/link"}
    assert written.path in {entry.path for entry in shared.files.list("/tmp/deep", depth=2)}
    assert [entry.name for entry in shared.files.list("/tmp/deep/link")] == [written.name]
    assert shared.files.make_dir("/tmp/deep/made/here") is True
    assert shared.files.make_dir("/tmp/deep/made/here") is False
    # To the workspace and back, and with many bytes.
    assert shared.files.rename(written.path, "here.txt").path == "/home/user/here.txt"
    assert shared.files.read("here.txt") == "käse"
    assert shared.files.rename("here.txt", "/tmp/deep/back.txt").path == "/tmp/deep/back.txt"
    contents = bytes(range(256)) * 8192
    shared.files.write_files(
        [{"path": "/tmp/deep/1", "data": contents}, {"path": "two", "data": b"2"}, {"path": "/tmp/3", "data": b"3"}]
    )
    assert shared.files.read("/tmp/deep/1", format="bytes") == contents
    assert (shared.files.read("two"), shared.files.read("/tmp/3")) == ("2", "3")
    shared.files.remove("/tmp/deep")
    assert not shared.files.exists("/tmp/deep")
    shared.files.remove("/tmp/deep")
    # Nothing of what passed through the workspace is left there.
    assert [e.name for e in shared.files.list("/home/user") if e.name.startswith(".e2b-")] == []


def test_what_cannot_be_done_elsewhere_is_said(shared: Sandbox) -> None:
    for ask in (
        lambda: shared.files.read("/tmp/missing"),
        lambda: shared.files.list("/tmp/missing"),
        lambda: shared.files.get_info("/tmp/missing"),
        lambda: shared.files.rename("/tmp/missing", "/tmp/other"),
    ):
        with pytest.raises(NotFoundException):
            ask()
    for ask in (
        lambda: shared.files.read("/tmp"),
        lambda: shared.files.read("/dev/zero"),
        lambda: shared.files.write("/tmp", "x"),
        lambda: shared.files.list("/etc/ld.so.cache"),
    ):
        with pytest.raises(InvalidArgumentException):
            ask()
    for ask in (
        lambda: shared.files.write("/usr/bin/new", "x"),
        lambda: shared.files.make_dir("/usr/new"),
        lambda: shared.files.remove("/usr/bin"),
        lambda: shared.files.watch_dir("/tmp"),
    ):
        with pytest.raises(SandboxException):
            ask()
    # More than kListedEntriesMax, or kInsideOutputBytesMax.
    with pytest.raises(SandboxException, match="smaller depth|more than can be listed"):
        shared.files.list("/", depth=60)
    assert [e.name for e in shared.files.list("/home/user") if e.name.startswith(".e2b-")] == []


def test_no_link_leads_out(shared: Sandbox) -> None:
    shared.commands.run("ln -sfn /etc out && ln -sfn /etc/passwd pw", cwd="/home/user")
    for path in ("out/passwd", "pw"):
        with pytest.raises(SandboxException):
            shared.files.read(path)
    with pytest.raises(SandboxException):
        shared.files.list("out")


def test_signed_addresses_need_no_token(shared: Sandbox) -> None:
    shared.files.write("shared file.txt", "by address")
    link = shared.download_url("shared file.txt", use_signature_expiration=60)
    headers = {"E2b-Sandbox-Id": shared.sandbox_id, "E2b-Sandbox-Port": "49983"}
    answer = requests.get(link, headers=headers, timeout=30)
    assert (answer.status_code, answer.text) == (200, "by address")
    upload = shared.upload_url("up.txt", use_signature_expiration=60)
    files = {"file": ("up.txt", b"sent by a form")}
    assert requests.post(upload, files=files, headers=headers, timeout=30).status_code == 200
    assert shared.files.read("up.txt") == "sent by a form"
    # It is for that path, that direction and that time only.
    assert requests.post(link, files=files, headers=headers, timeout=30).status_code == 401
    other = link.replace("shared%20file.txt", "up.txt").replace("shared+file.txt", "up.txt")
    assert requests.get(other, headers=headers, timeout=30).status_code == 401
    # No name of a user moves the border between what is signed.
    mixed = shared.download_url("up.txt:write:x", user="user")
    signature = mixed.split("signature=")[1].split("&")[0]
    forged = {"path": "up.txt", "username": "x:read:user", "signature": unquote(signature)}
    where = link.split("?")[0]
    answer = requests.post(where, params=forged, files=files, headers=headers, timeout=30)
    assert answer.status_code == 401
    own = {"path": "up.txt:write:x", "username": "user", "signature": unquote(signature)}
    assert requests.get(where, params=own, headers=headers, timeout=30).status_code == 404
    over = shared.download_url("up.txt", use_signature_expiration=-10)
    expired = requests.get(over, headers=headers, timeout=30)
    assert expired.status_code == 401
    assert expired.json() == {"code": 401, "message": "signature is already expired"}


def test_a_directory_is_watched(shared: Sandbox) -> None:
    shared.files.make_dir("seen")
    handle = shared.files.watch_dir("seen", recursive=True)
    shared.files.write("seen/a.txt", "1")
    shared.commands.run("mkdir seen/in && touch seen/in/b && mv seen/a.txt seen/c.txt")
    found: set[tuple[str, FilesystemEventType]] = set()
    wanted = {
        ("a.txt", FilesystemEventType.CREATE),
        ("in", FilesystemEventType.CREATE),
        ("in/b", FilesystemEventType.CREATE),
        ("a.txt", FilesystemEventType.RENAME),
        ("c.txt", FilesystemEventType.CREATE),
    }

    def all_seen() -> bool:
        found.update((event.name, event.type) for event in handle.get_new_events())
        return wanted <= found

    wait_until(all_seen, 60, "every event has come")
    handle.stop()
    with pytest.raises(SandboxException):
        handle.get_new_events()
    with pytest.raises(NotFoundException):
        shared.files.watch_dir("missing")
    shared.files.write("plain", "1")
    with pytest.raises(InvalidArgumentException):
        shared.files.watch_dir("plain")
