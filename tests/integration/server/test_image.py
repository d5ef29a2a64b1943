# SPDX-License-Identifier: Apache-2.0
"""The private environment image: no inode of the host's is seen from inside.

An ordinary user's is of copies, and made here for the test.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import LEAN, Server, Session, binary
from modes import ModeServer, open_folder, prefix_of, skip_if_out_of_reach

# To pack an ordinary user's image takes its time.
pytestmark = [pytest.mark.both_modes, pytest.mark.timeout(400)]

# Every file and directory, by device and inode.
WALK = """
import os, json
found = set()
for top in ("/usr", "/etc", "/opt"):
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            about = os.lstat(os.path.join(folder, name))
            found.add((about.st_dev, about.st_ino))
"""

Image = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="module")
def images(mode: str) -> Iterator[Path | None]:
    """The directory of an ordinary user's images; root's are in their usual place."""
    if not prefix_of(mode):
        yield None
        return
    skip_if_out_of_reach(mode)
    with open_folder(mode) as folder:
        place = folder / "images"
        command = [*prefix_of(mode, place), binary(), "image", "build"]
        subprocess.run(command, cwd="/", check=True, capture_output=True, timeout=300)
        yield place


@pytest.fixture(scope="module")
def server(mode: str, images: Path | None) -> Iterator[Server]:
    with ModeServer(mode, *LEAN, "--log-format", "text", images=images) as running:
        yield running


@pytest.fixture(scope="module")
def inside(server: Server) -> Session:
    return server.create()


@pytest.fixture(scope="module")
def image(mode: str, images: Path | None) -> Image:
    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*prefix_of(mode, images), binary(), *arguments],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def control(info: dict) -> dict:
    return next(c for c in info["isolation"]["controls"] if c["name"] == "private_image")


def test_the_digest_is_recorded_with_the_session(
    mode: str, inside: Session, image: Image
) -> None:
    listed = json.loads(image("image", "list", "--json").stdout)
    digest = inside.info["environment"]["digest"]
    used = [entry for entry in listed if entry["digest"] == digest]
    assert used and used[0]["kind"] == "environment" and used[0]["in_use"]
    assert control(inside.info)["state"] == "applied"
    assert digest in control(inside.info)["mechanism"]
    if mode == "ordinary_user":
        assert "private copy " + digest in control(inside.info)["mechanism"]
    doctor = json.loads(image("doctor", "--json").stdout)
    row = next(c for c in doctor["controls"] if c["name"] == "private_image")
    assert row["state"] == "applied" and digest in row["mechanism"]


def test_no_file_inside_is_the_hosts(inside: Session) -> None:
    walked = inside.execute(WALK + "json.dump(sorted(found), open('seen.json', 'w'))")
    assert walked["status"] == "ok", walked
    seen = {tuple(one) for one in inside.server.get(inside.path + "/files/seen.json").json()}
    assert len(seen) > 1000
    of_host: dict = {}
    exec(WALK, of_host)  # the same walk outside
    assert len(of_host["found"]) > 1000
    assert not seen & of_host["found"]
    # Cellkeep's own programs are copies, too.
    kernel = Path(binary()).with_name("cellkeep-kernel-python").stat()
    assert (kernel.st_dev, kernel.st_ino) not in seen
    if "erofs" in control(inside.info)["mechanism"]:
        devices = {os.lstat(path).st_dev for path in ("/", "/usr", "/etc", binary())}
        assert int(inside.value("__import__('os').stat('/usr').st_dev")) not in devices
    for path in ("/usr/bin/python3", "/usr/bin/bash", "/etc/ssl/certs/ca-certificates.crt"):
        about = os.stat(path)
        seen = inside.value(f"(lambda s: (s.st_dev, s.st_ino))(__import__('os').stat({path!r}))")
        assert seen != repr((about.st_dev, about.st_ino)), path


def test_a_file_that_changes_on_the_host_does_not_change_inside(inside: Session) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes root to change a file of the system")
    # The packages' versions stand for this folder's files: a server that starts meanwhile, for another
    # test, finds the image that it knows. A file beside the certificates would make it build one.
    path = Path("/usr/lib/python3.11/cellkeep-test-planted.txt")
    assert inside.value(f"__import__('os').path.isdir({str(path.parent)!r})") == "True"
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


def test_an_image_in_use_cannot_be_removed(inside: Session, image: Image) -> None:
    refused = image("image", "remove", inside.info["environment"]["digest"])
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
    folder: Path, image: Image, arguments: tuple[str, ...], words: str
) -> None:
    state = ["--state-dir", str(folder / "state")]
    done = image("serve", "--listen", "127.0.0.1:0", *state, *arguments)
    assert done.returncode == 1
    assert words in done.stderr


@pytest.mark.parametrize("command", [("remove",), ("remove", "--unused", "x"), (), ("nonsense",)])
def test_a_wrong_image_command_is_refused(image: Image, command: tuple[str, ...]) -> None:
    assert image("image", *command).returncode == 2


def test_the_hosts_own_files_only_if_the_operator_says_so(
    mode: str, images: Path | None
) -> None:
    host = ("--image", "host", "--allow-degraded", "private_image")
    with ModeServer(mode, *LEAN, *host, images=images) as server:
        session = server.create()
        row = control(session.info)
        assert row["state"] == "absent" and row["detail"] and row["fix"]
        about = os.stat("/usr/bin/python3")
        seen = session.value("__import__('os').stat('/usr/bin/python3').st_ino")
        assert int(seen) == about.st_ino
