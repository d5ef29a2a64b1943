# SPDX-License-Identifier: Apache-2.0
"""The private environment image: no inode of the host's is seen from inside."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness import Server, Session, binary

# Every regular file and directory inside, by device and inode; not the sandbox's own file systems.
WALK = """
import os, json
found = set()
for top in ("/usr", "/etc", "/opt"):
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            about = os.lstat(os.path.join(folder, name))
            found.add((about.st_dev, about.st_ino))
print(json.dumps([len(found), sorted({device for device, inode in found})]))
"""


@pytest.fixture(scope="module")
def inside(server: Server) -> Session:
    return server.create()


def control(info: dict) -> dict:
    return next(c for c in info["isolation"]["controls"] if c["name"] == "private_image")


def image(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [binary(), "image", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_the_digest_is_recorded_with_the_session(inside: Session) -> None:
    listed = json.loads(image("list", "--json").stdout)
    digest = inside.info["environment"]["digest"]
    used = [entry for entry in listed if entry["digest"] == digest]
    assert used and used[0]["kind"] == "environment" and used[0]["in_use"]
    assert control(inside.info)["state"] == "applied"
    assert digest in control(inside.info)["mechanism"]
    doctor = json.loads(
        subprocess.run([binary(), "doctor", "--json"], capture_output=True, check=False).stdout
    )
    row = next(c for c in doctor["controls"] if c["name"] == "private_image")
    assert row["state"] == "applied" and digest in row["mechanism"]


def test_no_file_inside_is_the_hosts(inside: Session) -> None:
    walked = inside.execute(WALK)
    assert walked["status"] == "ok", walked
    count, devices = json.loads(walked["stdout"])
    assert count > 1000
    of_host = {os.lstat(path).st_dev for path in ("/", "/usr", "/etc", binary())}
    if "erofs" in control(inside.info)["mechanism"]:
        # The copies of Cellkeep's own programs lie on the host's file system: compared by inode.
        programs = "__import__('os').stat('/opt/cellkeep/bin/cellkeep-kernel-python')"
        own = inside.value(f"({programs}.st_dev, {programs}.st_ino)")
        kernel = Path(binary()).with_name("cellkeep-kernel-python").stat()
        assert own != repr((kernel.st_dev, kernel.st_ino))
        usr = inside.value("__import__('os').stat('/usr').st_dev")
        assert int(usr) not in of_host and int(usr) in devices
    for path in ("/usr/bin/python3", "/usr/bin/bash", "/etc/ssl/certs/ca-certificates.crt"):
        about = os.stat(path)
        seen = inside.value(f"(lambda s: (s.st_dev, s.st_ino))(__import__('os').stat({path!r}))")
        assert seen != repr((about.st_dev, about.st_ino)), path


def test_a_file_that_changes_on_the_host_does_not_change_inside(inside: Session) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes root to change a file of the system")
    path = Path("/etc/ssl/certs/cellkeep-test-planted.pem")
    path.write_text("planted\n")
    try:
        assert inside.value(f"__import__('os').path.lexists({str(path)!r})") == "False"
    finally:
        path.unlink()


SHELL = """
cat >a.c <<'END'
#include <stdio.h>
int main(void) { return puts("compiled") < 0; }
END
gcc -o a a.c && ./a && git --version && awk 'BEGIN {print 6 * 7}' &&
python3 -m venv --without-pip v && v/bin/python -c 'print(8 * 8)'
"""


def test_programs_and_compilers_work_inside(inside: Session) -> None:
    done = inside.execute(
        "import subprocess\n"
        f"done = subprocess.run(['/bin/sh', '-c', {SHELL!r}], capture_output=True, text=True)\n"
        "print(done.stdout, done.stderr)"
    )
    for word in ("compiled", "git version", "42", "64"):
        assert word in done["stdout"], done["stdout"]


def test_an_image_in_use_cannot_be_removed(inside: Session) -> None:
    refused = image("remove", inside.info["environment"]["digest"])
    assert refused.returncode == 1
    assert "in use" in refused.stderr
    assert inside.value("6 * 7") == "42"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--image", "host"), "--allow-degraded=private_image"),
        (("--image", "sha256:" + "0" * 64), "there is no image"),
        (("--image", ""), "there is no image"),
        (("--image", "ubuntu"), "there is no image"),
    ],
)
def test_an_image_that_cannot_be_had_refuses_the_server(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    command = [binary(), "serve", "--listen", "127.0.0.1:0", "--state-dir", str(tmp_path / "s")]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert words in done.stderr


@pytest.mark.parametrize("command", [("remove",), ("remove", "--unused", "x"), (), ("nonsense",)])
def test_a_wrong_image_command_is_refused(command: tuple[str, ...]) -> None:
    assert image(*command).returncode == 2


def test_the_hosts_own_files_only_if_the_operator_says_so() -> None:
    with Server("--image", "host", "--allow-degraded", "private_image") as server:
        session = server.create()
        row = control(session.info)
        assert row["state"] == "absent" and row["detail"] and row["fix"]
        about = os.stat("/usr/bin/python3")
        seen = session.value("__import__('os').stat('/usr/bin/python3').st_ino")
        assert int(seen) == about.st_ino
