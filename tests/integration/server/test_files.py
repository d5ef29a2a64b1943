# SPDX-License-Identifier: Apache-2.0
"""Files over the API: conditions, directories, archives, the operator's inputs."""

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from harness import LEAN, Server, Session
from modes import ModeServer

pytestmark = pytest.mark.both_modes

BIG = bytes(range(256)) * 200_000


@pytest.fixture(scope="module")
def inputs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    (folder / "d").mkdir()
    (folder / "d" / "big.bin").write_bytes(BIG)
    (folder / "small.csv").write_text("a,b\n", encoding="utf-8")
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("not for you", encoding="utf-8")
    (folder / "link").symlink_to(secret)
    for path in (folder / "d", folder / "d" / "big.bin", folder / "small.csv"):
        path.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def input_server(mode: str, inputs: Path) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, "--log-format", "text", "--inputs", str(inputs)) as running:
        yield running


def unpack(zst: bytes) -> dict[str, tarfile.TarInfo]:
    tar = subprocess.run(
        ["zstd", "-d", "-c"], input=zst, stdout=subprocess.PIPE, check=True
    ).stdout
    return {member.name: member for member in tarfile.open(fileobj=io.BytesIO(tar))}


def test_conditions_and_versions(server: Server, session: Session) -> None:
    path = session.path + "/files/a.txt"
    first = server.request("PUT", path, data=b"1", headers={"If-None-Match": "*"})
    assert first.status_code == 201
    tag = first.headers["ETag"]
    assert server.request("PUT", path, data=b"2", headers={"If-None-Match": "*"}).status_code == 412
    assert server.request("GET", path, headers={"If-None-Match": tag}).status_code == 304
    session.execute("open('a.txt', 'w').write('guest')")
    assert server.request("PUT", path, data=b"3", headers={"If-Match": tag}).status_code == 412
    now = server.request("HEAD", path)
    assert now.status_code == 200 and now.headers["Content-Length"] == "5" and now.content == b""
    put = server.request("PUT", path, data=b"3", headers={"If-Match": now.headers["ETag"]})
    assert put.status_code == 200
    part = server.request("GET", path, headers={"Range": "bytes=0-0", "If-Range": tag})
    assert part.status_code == 200 and part.content == b"3"


def test_directories(server: Server, session: Session) -> None:
    made = server.request("PUT", session.path + "/files/d/e/")
    assert made.status_code == 201 and made.json()["kind"] == "directory"
    session.execute("import os\nfor i in range(100): open(f'd/e/{i}', 'w').close()\n"
                    "os.symlink('/workspace', 'd/up')")
    assert server.request("DELETE", session.path + "/files/d").status_code == 409
    gone = server.request("DELETE", session.path + "/files/d?recursive=true")
    assert gone.status_code == 204, gone.text
    assert session.value("os.path.exists('d')") == "False"


def test_an_upload_that_is_too_large_leaves_nothing(server: Server) -> None:
    session = server.create(limits={"disk_mb": 1})
    put = server.request("PUT", session.path + "/files/big", data=b"x" * 2_000_000)
    assert put.status_code == 413, put.text
    assert server.get(session.path + "/files").json()["entries"] == []
    assert session.delete() == 204


def test_the_workspace_as_an_archive(server: Server, session: Session) -> None:
    session.execute(
        "import os\nos.makedirs('d/e')\nopen('d/e/x', 'w').write('x' * 1_000_000)\n"
        "open('a', 'w').write('1')\nos.link('a', 'b')\nos.symlink('/etc/passwd', 'l')\n"
        "os.mkfifo('p')\nopen(b'\\xff', 'w').close()"
    )
    got = server.get(session.path + "/files.tar.zst")
    assert got.status_code == 200
    assert got.headers["Content-Type"] == "application/zstd"
    members = unpack(got.content)
    assert members["d/e/x"].size == 1_000_000
    assert members["l"].issym() and members["l"].linkname == "/etc/passwd"
    assert members["b"].islnk() and members["b"].linkname == "a"
    assert "\udcff" in members
    assert "p" not in members
    assert ".cellkeep/archive-notes.txt" in members
    below = unpack(server.get(session.path + "/files.tar.zst?path=d").content)
    assert set(below) == {"d/e", "d/e/x"}
    head = server.request("HEAD", session.path + "/files.tar.zst")
    assert head.status_code == 200 and head.content == b""


def test_an_archive_of_holes_does_not_stop_the_server(server: Server, session: Session) -> None:
    session.execute("for i in range(50):\n    with open(f's{i}', 'w') as f: f.truncate(1 << 31)")
    got = server.get(session.path + "/files.tar.zst")
    assert got.status_code == 200
    assert "s0" not in unpack(got.content)
    assert server.get("/healthz").status_code == 200


def test_an_archive_of_a_session_that_ends_breaks_off(server: Server) -> None:
    session = server.create()
    session.execute("import os\nopen('x', 'wb').write(os.urandom(100_000_000))\nNone")
    answer = server.request("GET", session.path + "/files.tar.zst", stream=True)
    pieces = answer.iter_content(65536)
    assert next(pieces)
    assert session.delete() == 204
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        for _ in pieces:
            pass
    answer.close()


def test_inputs_are_mounted_into_a_session(input_server: Server) -> None:
    digest = hashlib.sha256(BIG).hexdigest()
    session = input_server.create(
        files=[
            {"path": "data/big.bin", "from": "d/big.bin", "sha256": digest},
            {"path": "small.csv", "from": "small.csv"},
            {"path": "t.txt", "text": "text"},
        ]
    )
    code = "import hashlib\nhashlib.sha256(open('data/big.bin', 'rb').read()).hexdigest()"
    assert session.execute(code)["result"]["text/plain"] == f"'{digest}'"
    assert session.value("open('small.csv').read() + open('t.txt').read()") == r"'a,b\ntext'"
    denied = session.execute("open('small.csv', 'w')")
    assert denied["status"] != "ok"
    assert session.delete() == 204


def test_mounted_inputs_are_files_that_cannot_be_changed(input_server: Server) -> None:
    session = input_server.create(
        files=[
            {"path": "data/big.bin", "from": "d/big.bin"},
            {"path": "data/t.txt", "text": "text"},
        ]
    )
    path = session.path + "/files/data/big.bin"
    whole = input_server.get(path)
    assert whole.status_code == 200 and whole.content == BIG
    part = input_server.request("GET", path, headers={"Range": "bytes=5-9"})
    assert part.status_code == 206 and part.content == BIG[5:10]
    tag = {"If-None-Match": whole.headers["ETag"]}
    assert input_server.request("GET", path, headers=tag).status_code == 304
    entries = input_server.get(session.path + "/files?path=data").json()["entries"]
    assert [(one["path"], one["bytes"], one.get("read_only")) for one in entries] == [
        ("data/big.bin", len(BIG), True),
        ("data/t.txt", 4, None),
    ]
    members = unpack(input_server.get(session.path + "/files.tar.zst").content)
    assert members["data/big.bin"].size == len(BIG)
    for method, target in (("PUT", path), ("DELETE", path)):
        refused = input_server.request(method, target, data=b"x")
        assert refused.status_code == 409, refused.text
        assert refused.json()["type"] == "/problems/read-only-input"
    target = session.path + "/files/data?recursive=true"
    assert input_server.request("DELETE", target).status_code == 409
    over = {"code": "1", "files": [{"path": "data/big.bin", "text": "mine"}]}
    refused = input_server.post(session.path + "/executions", over)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == "/files/0/path"
    # It is still there for the code, too.
    assert session.value("len(open('data/big.bin', 'rb').read())") == str(len(BIG))
    assert session.delete() == 204


def test_files_without_a_place_refuse_a_session(server: Server) -> None:
    big = {"limits": {"disk_mb": 1}, "files": [{"path": "big", "text": "x" * (2 << 20)}]}
    refused = server.post("/v1/sessions", big)
    assert refused.status_code == 413, refused.text
    assert refused.json()["type"] == "/problems/workspace-full"
    assert refused.json()["errors"][0]["pointer"] == "/files/0"
    assert "Retry-After" not in refused.headers
    files = [{"path": "a", "text": ""}, {"path": "a/b", "text": ""}]
    refused = server.post("/v1/sessions", {"files": files})
    assert refused.status_code == 409, refused.text
    assert refused.json()["errors"][0]["pointer"] == "/files/1"


def test_inputs_are_copied_for_an_execution(input_server: Server) -> None:
    session = input_server.create()
    digest = hashlib.sha256(b"a,b\n").hexdigest()
    done = session.execute(
        "open('x.csv', 'a').write('1,2\\n')\nopen('x.csv').read()",
        files=[{"path": "x.csv", "from": "small.csv", "sha256": digest}],
    )
    assert done["result"]["text/plain"] == r"'a,b\n1,2\n'"
    assert session.delete() == 204


def test_inputs_that_are_not_as_they_should_be(input_server: Server, server: Server) -> None:
    session = input_server.create()
    for wanted, pointer in (
        ({"from": "gone"}, "from"),
        ({"from": "link"}, "from"),
        ({"from": "d"}, "from"),
        ({"from": "../x"}, "from"),
        ({"from": "/etc/passwd"}, "from"),
        ({"from": "small.csv", "sha256": "XY"}, "sha256"),
    ):
        body = {"files": [{"path": "x", **wanted}]}
        refused = input_server.post("/v1/sessions", body)
        assert refused.status_code == 422, (wanted, refused.text)
        assert refused.json()["errors"][0]["pointer"] == f"/files/0/{pointer}"
        refused = input_server.post(session.path + "/executions", {"code": "1", **body})
        assert refused.status_code == 422, (wanted, refused.text)
        assert refused.json()["errors"][0]["pointer"] == f"/files/0/{pointer}"
    # A digest is known when the file has been read: before a session is made, and when the turn of
    # an execution has come.
    wrong = {"files": [{"path": "x", "from": "small.csv", "sha256": "0" * 64}]}
    refused = input_server.post("/v1/sessions", wrong)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == "/files/0/sha256"
    result = session.execute("1", **wrong)
    assert (result["status"], result["error"]["kind"]) == ("error", "files"), result
    assert result["error"]["message"].startswith("files/0/sha256: ")
    too_large = {"code": "1", "files": [{"path": "x", "from": "d/big.bin"}]}
    assert input_server.post(session.path + "/executions", too_large).status_code == 422
    assert input_server.get(session.path + "/files").json()["entries"] == []
    assert session.delete() == 204
    none = server.post("/v1/sessions", {"files": [{"path": "x", "from": "small.csv"}]})
    assert none.status_code == 422, none.text
