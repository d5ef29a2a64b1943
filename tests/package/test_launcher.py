# SPDX-License-Identifier: Apache-2.0
"""The wheel's command: it unpacks what was packed, once, and nothing else."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
from tree import EPOCH, sources

import wheels
from cellkeep_server import launcher
from cellkeep_server.launcher import LaunchError
from files import settle


def member(name: str, **other: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = 0o755
    for key, value in other.items():
        setattr(info, key, value)
    return info


def write_payload(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> str:
    with gzip.open(path, "wb", 1) as packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


GOOD = (
    (member("ck", type=tarfile.DIRTYPE), b""),
    (member("ck/bin/cellkeep"), b"#!/bin/sh\necho \"ran $*\"\n"),
    (member("ck/bin/python", type=tarfile.SYMTYPE, linkname="/usr/bin/python3"), b""),
    (member("ck/lib64", type=tarfile.SYMTYPE, linkname="lib"), b""),
)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    launcher.open_cache(path)
    return path


def refuses(sentence: str, call: object, *arguments: object) -> None:
    with pytest.raises(LaunchError, match=sentence):
        call(*arguments)


def test_the_server_is_unpacked_once(tmp_path: Path, cache: Path) -> None:
    payload = tmp_path / "payload.tar.gz"
    digest = write_payload(payload, *GOOD)
    tree = launcher.unpack(payload, digest, cache)
    assert os.access(tree / "bin/cellkeep", os.X_OK)
    payload.unlink()
    assert launcher.unpack(payload, digest, cache) == tree
    assert {path.name for path in cache.iterdir()} == {tree.name, ".lock"}


def test_starts_at_once_unpack_once(
    tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    payload = tmp_path / "payload.tar.gz"
    digest = write_payload(payload, *GOOD)
    threads = [
        threading.Thread(target=launcher.unpack, args=(payload, digest, cache)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capfd.readouterr().err.count("unpacking") == 1


def test_what_an_interrupted_start_left_is_thrown_away(tmp_path: Path, cache: Path) -> None:
    (cache / ".draft/ck/bin").mkdir(parents=True)
    (cache / ".draft/ck/bin/cellkeep").write_text("half", encoding="utf-8")
    payload = tmp_path / "payload.tar.gz"
    tree = launcher.unpack(payload, write_payload(payload, *GOOD), cache)
    assert (tree / "bin/cellkeep").read_bytes() == GOOD[1][1]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (member("../ck/file"), "outside"),
        (member("ck/../../file"), "outside"),
        (member("/ck/file"), "outside"),
        (member("ck/link", type=tarfile.SYMTYPE, linkname="/etc"), "leads out"),
        (member("ck/link", type=tarfile.SYMTYPE, linkname="../../etc"), "leads out"),
        (member("ck/link", type=tarfile.LNKTYPE, linkname="ck/bin/cellkeep"), "no file"),
        (member("ck/device", type=tarfile.CHRTYPE), "no file"),
        (member("ck/pipe", type=tarfile.FIFOTYPE), "no file"),
    ],
)
def test_a_member_that_is_none_of_the_tree_is_refused(
    bad: tarfile.TarInfo, sentence: str, tmp_path: Path, cache: Path
) -> None:
    payload = tmp_path / "payload.tar.gz"
    digest = write_payload(payload, *GOOD, (bad, b""))
    refuses(sentence, launcher.unpack, payload, digest, cache)
    assert {path.name for path in cache.iterdir()} == {".lock"}


def test_a_payload_that_is_another_is_refused(tmp_path: Path, cache: Path) -> None:
    payload = tmp_path / "payload.tar.gz"
    digest = write_payload(payload, *GOOD)
    write_payload(payload, *GOOD[:3])
    refuses("is not what was packed", launcher.unpack, payload, digest, cache)


@pytest.mark.parametrize("length", [0, 30, -12])
def test_a_payload_that_was_cut_is_refused(length: int, tmp_path: Path, cache: Path) -> None:
    payload = tmp_path / "payload.tar.gz"
    digest = write_payload(payload, *GOOD)
    payload.write_bytes(payload.read_bytes()[:length])
    refuses("cannot be unpacked|not what was packed", launcher.unpack, payload, digest, cache)
    assert {path.name for path in cache.iterdir()} == {".lock"}


@pytest.mark.parametrize("text", ["", "0" * 63, "g" * 64, "0" * 65])
def test_a_digest_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "digest"
    path.write_text(text, encoding="ascii")
    refuses("holds no SHA-256", launcher.read_digest, path)


def test_a_host_that_cannot_run_it_is_refused(tmp_path: Path) -> None:
    launcher.check_host("x86_64", Path("/"))
    refuses("this machine is aarch64", launcher.check_host, "aarch64", Path("/"))
    refuses("apt-get install python3", launcher.check_host, "x86_64", tmp_path / "nothing")


def test_a_folder_that_others_could_write_to_is_refused(tmp_path: Path, cache: Path) -> None:
    cache.chmod(0o775)
    refuses("other users may write", launcher.open_cache, cache)
    cache.chmod(0o757)
    refuses("other users may write", launcher.open_cache, cache)
    link = tmp_path / "link"
    link.symlink_to(cache)
    refuses("no folder", launcher.open_cache, link)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(cache: Path) -> None:
    os.chown(cache, 65534, 65534)
    refuses("belongs to another user", launcher.open_cache, cache)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a server that says how it was called."""
    folder = tmp_path_factory.mktemp("wheel")
    tree, output = folder / "tree", folder / "made"
    program = tree / "bin/cellkeep"
    program.parent.mkdir(parents=True)
    program.write_bytes(GOOD[1][1])
    program.chmod(0o755)
    licence = tree / "share/doc/cellkeep/licences/cellkeep"
    licence.parent.mkdir(parents=True)
    licence.write_text("Apache License\n", encoding="utf-8")
    settle(tree, EPOCH)
    output.mkdir()
    wheels.make_server_wheel(sources(), tree, output)
    (made,) = output.iterdir()
    return made


def test_the_wheel_installs_and_its_command_becomes_the_server(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    quiet = ["--quiet", "--no-index", "--no-cache-dir"]
    python = ["--python", str(environment / "bin/python")]
    subprocess.run([*pip, *python, "install", *quiet, str(wheel)], check=True)
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for command in ([environment / "bin/cellkeep"], [environment / "bin/python", "-m", "cellkeep_server"]):
        done = subprocess.run(
            [*command, "serve", "--help"], env=variables, capture_output=True, text=True, check=True
        )
        assert done.stdout == "ran serve --help\n"
    subprocess.run([*pip, *python, "uninstall", "--yes", "--quiet", "cellkeep-server"], check=True)
    assert not list(environment.glob("**/cellkeep*"))


def test_every_file_of_the_wheel_is_in_its_record(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        assert packed.testzip() is None
        names = packed.namelist()
        (record,) = [name for name in names if name.endswith("/RECORD")]
        listed = [line.split(",")[0] for line in packed.read(record).decode().splitlines()]
    assert sorted(listed) == sorted(names)
    assert not [name for name in names if "__pycache__" in name]


