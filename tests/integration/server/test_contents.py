# SPDX-License-Identifier: Apache-2.0
"""/api/contents of a live server: the files of sessions, as Jupyter's clients read and write them."""

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import nbformat
import pytest
import requests
from harness import LEAN, Server, Session
from modes import ModeServer, give_to

pytestmark = pytest.mark.both_modes

# What jupyter_server's validate_model() wants of every model.
MEMBERS = {
    "name", "path", "type", "writable", "created", "last_modified", "mimetype", "content", "format",
    "size", "hash", "hash_algorithm",
}
TOKENS = [
    {"name": "ada", "role": "agent", "token": "a" * 32},
    {"name": "bob", "role": "agent", "token": "b" * 32},
]


@pytest.fixture(scope="module")
def server(mode: str, folder: Path) -> Iterator[Server]:
    inputs = folder / "inputs"
    inputs.mkdir(mode=0o755)
    (inputs / "prices.csv").write_text("tea,3\n", encoding="utf-8")
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps({"principals": TOKENS}), encoding="utf-8")
    tokens.chmod(0o600)
    give_to(mode, tokens)
    arguments = ["--inputs", str(inputs), "--token-file", str(tokens)]
    with ModeServer(mode, *LEAN, "--log-format", "text", *arguments) as running:
        yield running


class Contents:
    """The files of one session, by the contents API."""

    def __init__(self, session: Session) -> None:
        self.server = session.server
        self.root = session.info["id"]

    def ask(self, method: str, path: str = "", **more: object) -> requests.Response:
        where = f"/api/contents/{self.root}" + (f"/{quote(path)}" if path else "")
        return self.server.request(method, where, **more)

    def get(self, path: str = "", **query: object) -> dict:
        answer = self.ask("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def save(self, path: str, content: object, kind: str = "file", form: str = "text") -> int:
        body = {"type": kind, "format": form, "content": content}
        return self.ask("PUT", path, json=body).status_code


def status_of(server: Server, target: str) -> int:
    """Of a GET whose target is sent as it is: requests would take dots out of it."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.request("GET", target, headers={"Authorization": server.http.headers["Authorization"]})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.fixture
def contents(session: Session) -> Contents:
    return Contents(session)


def check_model(model: dict, with_content: bool) -> dict:
    assert set(model) == MEMBERS
    assert (model["content"] is not None) == with_content
    assert (model["format"] is not None) == with_content
    return model


def test_a_saved_notebook_runs_in_its_session(server: Server, session: Session, contents: Contents) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("open('x', 'w')")])
    assert contents.save("d/n.ipynb", notebook, "notebook", "json") == 201
    model = check_model(contents.get("d/n.ipynb"), with_content=True)
    nbformat.validate(nbformat.from_dict(model["content"]))
    assert json.loads(session.execute("print(open('d/n.ipynb').read())")["stdout"]) == notebook
    # The form in which nbformat writes notebooks.
    session.execute(
        "import json\nn = json.load(open('d/n.ipynb'))\nn['cells'][0]['source'] = ['a\\n', 'b']\n"
        "json.dump(n, open('d/m.ipynb', 'w'), indent=1)"
    )
    written = nbformat.reads(json.dumps(contents.get("d/m.ipynb")["content"]), 4)
    assert written.cells[0].source == "a\nb"
    document = server.post("/api/sessions", {"path": model["path"], "type": "notebook"})
    assert document.status_code == 201, document.text
    assert document.json()["kernel"]["id"] == session.info["kernel_id"]
    assert server.request("DELETE", "/api/sessions/" + document.json()["id"]).status_code == 204
    assert session.value("1 + 1") == "2"


def test_the_guests_files_are_seen_and_owned_by_it(session: Session, contents: Contents) -> None:
    session.execute("import os\nopen('a.bin', 'wb').write(b'\\xff\\x00')\nos.mkdir('d')\nopen('.h', 'w').close()")
    listed = check_model(contents.get(), with_content=True)["content"]
    assert [check_model(each, with_content=False)["name"] for each in listed] == ["a.bin", "d"]
    assert contents.get("a.bin")["content"] == base64.b64encode(b"\xff\x00").decode()
    assert contents.save("d/new.txt", "ü\n") == 201
    assert session.execute("open('d/new.txt', 'a').write('more'); print(open('d/new.txt').read())")["stdout"] == "ü\nmore\n"
    roots = contents.server.get("/api/contents").json()["content"]
    assert contents.root in [each["name"] for each in roots]


def test_an_upload_in_pieces_as_jupyterlab_sends_it(session: Session, contents: Contents) -> None:
    whole = bytes(range(256)) * 20_000
    size = 1 << 20
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    for number, piece in enumerate(pieces, 1):
        body = {
            "type": "file", "format": "base64", "content": base64.b64encode(piece).decode(),
            "chunk": -1 if number == len(pieces) else number,
        }
        answer = contents.ask("PUT", "big.bin", json=body)
        assert answer.status_code == (201 if number == 1 else 200), answer.text
    assert session.value("open('big.bin', 'rb').read() == bytes(range(256)) * 20_000") == "True"
    assert base64.b64decode(contents.get("big.bin")["content"]) == whole


def test_what_the_guest_lays_out_leads_nowhere(session: Session, contents: Contents) -> None:
    session.execute(
        "import os\nos.symlink('/etc', 'etc')\nos.symlink('/etc/passwd', 'passwd.txt')\n"
        "os.symlink('..', 'up')\nos.mkfifo('fifo')\nos.mkdir('d')\nopen('d/ok', 'w').write('ok')\n"
        "os.makedirs('.ipynb_checkpoints')\nos.symlink('/etc/passwd', '.ipynb_checkpoints/a-checkpoint.txt')\n"
        "open('a.txt', 'w').close()"
    )
    assert contents.get("d/ok")["content"] == "ok"
    for path in ["etc", "etc/passwd", "passwd.txt", "up", "up/etc/passwd", "fifo"]:
        assert contents.ask("GET", path).status_code == 404, path
        assert contents.save(path, "x") in (400, 404), path
        assert contents.ask("DELETE", path).status_code == 404, path
        assert contents.ask("POST", path + "/checkpoints").status_code in (400, 404), path
    assert contents.ask("POST", "a.txt/checkpoints/checkpoint").status_code == 404
    assert contents.ask("POST", "a.txt/checkpoints").status_code == 201
    assert [each["name"] for each in contents.get()["content"]] == ["a.txt", "d"]
    for path in ["..", "../x", "d/../../x", "%2e%2e/x", "d/.", "d/..%2fa.txt", "a%00.txt", "d//ok"]:
        assert status_of(contents.server, f"/api/contents/{contents.root}/{path}") == 400, path
    assert status_of(contents.server, f"/api/contents/{contents.root}/d/ok") == 200


@pytest.mark.parametrize("body", [
    "", "null", "[]", "{", '{"type":"file","format":"text","content":"\\ud800"}',
    '{"type":"file","format":"text"}', '{"type":"file","content":"x"}',
    '{"type":"file","format":"json","content":"x"}', '{"type":"file","format":"text","content":[]}',
    '{"type":"file","format":"base64","content":"%%%"}', '{"type":"notebook","content":"{}"}',
    '{"type":"notebook","content":{"a":}}', '{"type":"notebook","format":"text","content":{}}',
    '{"type":"file","format":"text","content":"x","chunk":0}', '{"format":"text","content":"x"}',
])
def test_a_bad_body_changes_nothing(contents: Contents, body: str) -> None:
    assert contents.save("a.txt", "kept") == 201
    assert contents.ask("PUT", "a.txt", data=body.encode()).status_code == 400
    assert contents.get("a.txt")["content"] == "kept"
    assert [each["name"] for each in contents.get()["content"]] == ["a.txt"]


def test_what_is_not_what_it_is_taken_for(session: Session, contents: Contents) -> None:
    session.execute("open('a.txt', 'wb').write(b'\\xff')\nopen('n.ipynb', 'w').write('no json')\nimport os\nos.mkdir('d')")
    for path, query in [("a.txt", {"format": "text"}), ("a.txt", {"type": "directory"}), ("a.txt", {"type": "notebook"}),
                        ("n.ipynb", {}), ("d", {"type": "file"}), ("a.txt", {"format": "xml"}), ("a.txt", {"content": 2})]:
        answer = contents.ask("GET", path, params=query)
        assert answer.status_code == 400, (path, query)
        assert answer.json()["message"]
    assert contents.get("n.ipynb", type="file")["content"] == "no json"
    assert contents.ask("DELETE", "d").status_code == 204


def test_a_full_workspace_and_files_that_are_too_large(server: Server) -> None:
    session = server.create(limits={"disk_mb": 50})
    contents = Contents(session)
    session.execute("open('big', 'wb').truncate(33 << 20)")
    assert contents.ask("GET", "big").status_code == 413
    assert contents.get("big", content=0)["size"] == 33 << 20
    # Not even the body's end is waited for.
    assert contents.ask("PUT", "c.txt", data=b"x" * (33 << 20)).status_code == 413
    session.execute("open('big', 'wb').write(bytes(40 << 20))")
    assert contents.save("b.txt", "x" * (20 << 20)) == 413
    assert [each["name"] for each in contents.get()["content"]] == ["big"]
    assert session.delete() == 204
    assert contents.ask("GET", "big").status_code == 404


def test_files_of_another_principal_do_not_exist(server: Server) -> None:
    def ask(token: str, method: str, path: str, body: object = None) -> requests.Response:
        return requests.request(
            method, server.url + "/api/contents" + path, json=body, timeout=60,
            headers={"Authorization": "token " + token * 32},
        )

    made = ask("a", "POST", "", {"type": "directory"})
    assert made.status_code == 201, made.text
    name = "/" + made.json()["path"]
    saved = {"type": "file", "format": "text", "content": "ada's"}
    assert ask("a", "PUT", name + "/a.txt", saved).status_code == 201
    assert ask("a", "GET", name + "/a.txt").json()["content"] == "ada's"
    own = ask("b", "POST", "", {"type": "directory"}).json()["path"]
    assert [each["path"] for each in ask("b", "GET", "").json()["content"]] == [own]
    for method, path, body in [
        ("GET", name, None), ("GET", name + "/a.txt", None), ("PUT", name + "/a.txt", saved),
        ("POST", name, {"type": "file"}), ("DELETE", name + "/a.txt", None),
        ("POST", name + "/a.txt/checkpoints", None), ("PATCH", name + "/a.txt", {"path": own + "/b"}),
        ("POST", "/" + own, {"copy_from": name + "/a.txt"}),
    ]:
        assert ask("b", method, path, body).status_code == 404, (method, path)
    assert requests.get(server.url + "/api/contents" + name, timeout=60).status_code == 401
    for each in server.get("/api/kernels").json():
        assert server.request("DELETE", "/api/kernels/" + each["id"]).status_code == 204


def test_inputs_are_read_only(server: Server) -> None:
    session = server.create(files=[{"path": "data/prices.csv", "from": "prices.csv"}])
    contents = Contents(session)
    model = contents.get("data/prices.csv")
    assert (model["content"], model["writable"]) == ("tea,3\n", False)
    assert contents.save("data/prices.csv", "x") == 409
    assert contents.ask("DELETE", "data/prices.csv").status_code == 409
    assert session.delete() == 204


def test_an_input_in_a_directory_that_the_guest_moved_stays_mounted(server: Server) -> None:
    session = server.create(files=[{"path": "data/prices.csv", "from": "prices.csv"}])
    moved = session.execute("import os\nos.rename('data', 'moved')\nopen('moved/own', 'w').close()")
    assert moved["status"] == "ok", moved
    for path in ("moved?recursive=true", "moved/prices.csv"):
        removed = server.request("DELETE", session.path + "/files/" + path)
        assert removed.status_code == 403, removed.text
    assert session.value("open('moved/prices.csv').read()") == repr("tea,3\n")
    assert server.request("DELETE", session.path + "/files/moved/own").status_code in (204, 404)
    assert session.delete() == 204
