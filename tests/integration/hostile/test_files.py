# SPDX-License-Identifier: Apache-2.0
"""What a guest plants where the server reads and writes for it: links, pipes, sockets, deep trees.

The server answers, follows no link, waits for no guest, and reads or writes no file of the host.
"""

import os
from pathlib import Path

import pytest

from attacker import Attacker

SECRET = "bytes-of-the-host"


@pytest.fixture(scope="module")
def host_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("host") / "secret"
    path.write_text(SECRET, encoding="utf-8")
    for folder in (path, *list(path.parents)[:2]):
        folder.chmod(0o755)
    return path


# trap: the code that plants it at /workspace/trap; {host} is a readable file of the host's
TRAPS = {
    "absolute link": "os.symlink({host!r}, 'trap')",
    "relative link": "os.symlink('../../../../../../..' + {host!r}, 'trap')",
    "link to the environment": "os.symlink('/usr/bin/env', 'trap')",
    "link to itself": "os.symlink('trap', 'trap')",
    "link to a descriptor of its reader": "os.symlink('/proc/self/fd/3', 'trap')",
    "link to the root of its reader": "os.symlink('/proc/self/root' + {host!r}, 'trap')",
    "link to the environment of its reader": "os.symlink('/proc/self/environ', 'trap')",
    "fifo": "os.mkfifo('trap')",
    "socket": "s = socket.socket(socket.AF_UNIX); s.bind('trap')",
    "directory": "os.mkdir('trap')",
    "file without permissions": "open('trap', 'w').close(); os.chmod('trap', 0)",
}


def clear(attacker: Attacker) -> None:
    attacker.python(
        "import os, shutil, socket\nif os.path.lexists('trap'):\n"
        "    shutil.rmtree('trap') if os.path.isdir('trap') and not os.path.islink('trap')\\\n"
        "        else os.unlink('trap')"
    )


@pytest.mark.parametrize("trap", TRAPS)
def test_a_planted_trap_is_not_followed(attacker: Attacker, host_file: Path, trap: str) -> None:
    clear(attacker)
    attacker.python(TRAPS[trap].format(host=str(host_file)))
    server, path = attacker.server, attacker.session.path + "/files/trap"
    read = server.get(path)
    assert SECRET not in read.text and "CELLKEEP_TOKEN" not in read.text
    if trap != "file without permissions":
        assert 400 <= read.status_code < 500, read.text
    wrote = server.request("PUT", path, data=b"overwritten")
    assert wrote.status_code < 500, wrote.text
    listed = server.get(attacker.session.path + "/files")
    assert listed.status_code == 200
    assert SECRET not in listed.text
    assert host_file.read_text(encoding="utf-8") == SECRET
    assert server.request("DELETE", path).status_code < 500
    assert host_file.exists()
    clear(attacker)


@pytest.mark.parametrize("folder", ["/etc", "/proc/self/cwd", "..", "/workspace/.."])
def test_a_linked_directory_is_not_entered(attacker: Attacker, folder: str) -> None:
    clear(attacker)
    attacker.python(f"os.symlink({folder!r}, 'trap')")
    server, session = attacker.server, attacker.session
    for method in ("GET", "PUT", "DELETE"):
        answer = server.request(method, session.path + "/files/trap/hosts", data=b"x")
        assert 400 <= answer.status_code < 500, (method, answer.text)
    inside = server.get(session.path + "/files?path=trap")
    assert inside.status_code in (400, 404, 409, 422) or inside.json()["entries"] == []
    clear(attacker)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "%2fetc%2fpasswd",
        "a/../../../etc/passwd",
        "x%00y",
        "a" * 5000,
        "/".join(["d"] * 5000),
    ],
)
def test_no_name_leads_out(attacker: Attacker, name: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        answer = attacker.server.request(
            method, f"{attacker.session.path}/files/{name}", data=b"x"
        )
        assert 400 <= answer.status_code < 500, (method, answer.status_code)
        assert "root:" not in answer.text
    assert os.path.exists("/etc/passwd")


def test_where_long_output_is_saved_no_link_is_followed(
    victim: Attacker, host_file: Path
) -> None:
    before = sorted(os.listdir(host_file.parent))
    victim.python(f"import os\nos.symlink({str(host_file.parent)!r}, '.cellkeep')")
    result = victim.session.execute("print('x' * 3_000_000)")
    assert result["status"] in ("ok", "output_limit"), result
    assert sorted(os.listdir(host_file.parent)) == before
    assert victim.is_well()


def test_a_tree_deeper_than_any_path_does_not_hold_the_server(victim: Attacker) -> None:
    victim.python(
        "import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\nos.chdir('/workspace')"
    )
    assert victim.server.get(victim.session.path + "/files").status_code == 200
    assert victim.session.delete() == 204
    assert victim.server.get("/healthz").status_code == 200


def test_names_that_are_no_text_do_not_break_the_list(victim: Attacker) -> None:
    victim.python(
        "for name in (b'\\xff\\xfe', b'new\\nline', b'\"quoted\"', b'<b>', b'x' * 255):\n"
        "    open(b'/workspace/' + name, 'w').close()"
    )
    listed = victim.server.get(victim.session.path + "/files")
    assert listed.status_code == 200
    assert listed.json()["entries"]
    assert victim.is_well()
