# SPDX-License-Identifier: Apache-2.0
"""The archive of an image, the system in it, and the files that say how it is run."""

import json
import os
import re
import shutil
import tarfile
from pathlib import Path

import pytest
from image_layout import read_layout
from tree import EPOCH, ROOT, sources

import archive
import image
import oci
import sbom
import system_root
from debian import names_of
from files import PackagingError

# What nothing in a container may ask of the kernel, whoever asks: modules, other kernels, clocks, other processes'
# memory, programs in the kernel, rings, files by handle.
REFUSED = (
    "add_key",
    "adjtimex",
    "bpf",
    "clock_settime",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kexec_file_load",
    "kexec_load",
    "name_to_handle_at",
    "open_by_handle_at",
    "perf_event_open",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "reboot",
    "request_key",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "userfaultfd",
)


def write_tree(folder: Path) -> Path:
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "usr/bin/program").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "usr/bin/program").chmod(0o755)
    (folder / "bin").symlink_to("usr/bin")
    return folder


def write(folder: Path, tree: Path) -> Path:
    folder.mkdir()
    layers = [
        oci.make_layer(tree, EPOCH, folder / "low.gz", "low", archive.AS_IT_IS),
        oci.make_layer(tree / "usr", EPOCH, folder / "high.gz", "high"),
    ]
    made = folder / "image.tar"
    oci.write_image(
        oci.Image("localhost/small", "1.2.3", EPOCH, layers, image.settings(sources())), made
    )
    return made


def test_the_layout_is_one_of_the_specification(tmp_path: Path) -> None:
    layout = read_layout(write(tmp_path / "made", write_tree(tmp_path / "tree")))
    (entry,) = layout.index["manifests"]
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == "1.2.3"
    assert entry["annotations"]["io.containerd.image.name"] == "localhost/small:1.2.3"
    assert layout.names[:2] == ["oci-layout", "index.json"]
    assert (layout.config["os"], layout.config["architecture"]) == ("linux", "amd64")
    assert [step["created_by"] for step in layout.config["history"]] == ["low", "high"]
    assert layout.config["created"] == "2023-11-14T22:13:20Z"


def test_the_same_tree_gives_the_same_bytes(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree")
    first = write(tmp_path / "one", tree)
    (tree / "usr/bin/program").touch()
    assert write(tmp_path / "two", tree).read_bytes() == first.read_bytes()


@pytest.mark.parametrize("change", ["contents", "mode", "name", "link", "older"])
def test_another_tree_gives_another_image(change: str, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree")
    first = write(tmp_path / "one", tree)
    program = tree / "usr/bin/program"
    if change == "contents":
        program.write_text("#!/bin/bash\n", encoding="utf-8")
    elif change == "mode":
        program.chmod(0o700)
    elif change == "name":
        program.rename(tree / "usr/bin/another")
    elif change == "link":
        (tree / "bin").unlink()
    else:
        os.utime(program, (1, 1))
    assert write(tmp_path / "two", tree).read_bytes() != first.read_bytes()


def test_a_layer_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackagingError, match="was not made"):
        oci.make_layer(tmp_path / "nothing", EPOCH, tmp_path / "layer.gz", "")
    for failing in (("false",), ("sh", "-c", "cat; exit 3")):
        with pytest.raises(PackagingError, match="was not made"):
            archive.pack(write_tree(tmp_path / failing[0]), ".", EPOCH, tmp_path / "layer.gz", failing)


def test_a_container_is_an_ordinary_user_s_server(tmp_path: Path) -> None:
    config = image.settings(sources())
    assert config["User"] == "10001:10001"
    assert (config["Entrypoint"], config["Cmd"][0]) == (["/usr/bin/cellkeep"], "serve")
    assert list(config["ExposedPorts"]) == ["8888/tcp"]
    assert config["Labels"]["org.opencontainers.image.version"] == sources().version
    assert not [line for line in config["Env"] if "TOKEN" in line]
    for name in config["Volumes"]:
        assert f"/{image.STATE}" in name or f"/{image.CACHE}" in name


def test_without_root_there_is_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PackagingError, match="only root"):
        image.make_image(sources(), tmp_path, tmp_path / "out")


def test_without_mmdebstrap_there_is_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(PackagingError, match="mmdebstrap is missing"):
        image.make_image(sources(), tmp_path, tmp_path / "out")


def test_a_mmdebstrap_that_fails_makes_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mmdebstrap").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (tmp_path / "mmdebstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(PackagingError, match="made no root file system"):
        system_root.make_system(tmp_path / "root", ["adduser"], EPOCH)


def test_nothing_of_the_machine_and_of_apt_stays_in_the_system(tmp_path: Path) -> None:
    gone = ["etc/apt/sources.list.d/debian.sources", "etc/hostname", "etc/passwd-", "var/log/apt/term.log"]
    gone += ["var/lib/dpkg/status-old", "var/cache/apt/pkgcache.bin", "tmp/left", "dev/null", "var/lib/apt/lists/x"]
    stays = ["etc/passwd", "var/lib/dpkg/status", "var/lib/dpkg/info/bash.list", "usr/bin/bash"]
    for name in gone + stays:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "etc/resolv.conf").symlink_to("/run/elsewhere")
    system_root.prune(tmp_path)
    system_root.prune(tmp_path)
    assert [name for name in gone if (tmp_path / name).exists()] == []
    assert not (tmp_path / "etc/resolv.conf").is_symlink()
    assert [name for name in stays if not (tmp_path / name).exists()] == []
    for name in ("dev", "tmp", "var/log"):
        assert (tmp_path / name).is_dir()


def test_names_of_packages_are_taken_from_their_relations() -> None:
    relations = ["libc6 (>= 2.36)", "python3 (>= 3.11)", "python3 (<< 3.12)", "b | a"]
    assert names_of(relations) == ["b", "libc6", "python3"]


def test_the_list_of_parts_names_the_packages_of_the_system() -> None:
    status = "Package: bash\nStatus: install ok installed\nVersion: 5.2-2\n\nPackage: zlib1g\nVersion: 1:1\n\n"
    parts = sbom.installed_components(status)
    assert [part["purl"] for part in parts] == [
        "pkg:deb/debian/bash@5.2-2?arch=amd64",
        "pkg:deb/debian/zlib1g@1%3A1?arch=amd64",
    ]
    assert sbom.installed_components("") == []


def profile() -> dict:
    return json.loads((image.CONTAINER / "seccomp.json").read_text(encoding="utf-8"))


def allowed_calls() -> set[str]:
    return {name for rule in profile()["syscalls"] for name in rule["names"]}


def calls_of_sessions() -> set[str]:
    """What the sandbox's own filter allows whatever the arguments, from its source."""
    source = (ROOT / "sandbox/policy/seccomp_policy.cpp").read_text(encoding="utf-8")
    text = source.partition("kAllowed =")[2].partition(";\n")[0]
    calls = {name for part in re.findall(r'"([^"]*)"', text) for name in part.split()}
    assert len(calls) > 190
    return calls | set(re.findall(r'filter\.allow\("([a-z0-9_]+)"', source))


def test_the_container_s_filter_allows_what_that_of_a_session_allows() -> None:
    assert calls_of_sessions() - allowed_calls() == set()


def test_the_container_s_filter_allows_what_the_server_calls_by_number() -> None:
    called = set()
    for room in ("sandbox", "kernel-manager", "kernels", "protocol"):
        for path in (ROOT / room).rglob("*.cpp"):
            called |= set(re.findall(r"\bSYS_([a-z0-9_]+)", path.read_text("utf-8")))
    assert {"clone3", "pivot_root", "keyctl"} <= called
    assert called - allowed_calls() == set()


def test_the_container_s_filter_refuses_what_nobody_needs() -> None:
    assert profile()["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {rule["action"] for rule in profile()["syscalls"]} == {"SCMP_ACT_ALLOW"}
    assert sorted(allowed_calls() & set(REFUSED)) == []


def test_the_container_s_filter_knows_four_families_of_sockets() -> None:
    rules = [rule for rule in profile()["syscalls"] if "socket" in rule["names"]]
    assert [rule["args"][0]["value"] for rule in rules] == [1, 2, 10, 16]
    assert [rule for rule in profile()["syscalls"] if "args" in rule] == rules


def test_the_files_for_containers_name_the_packed_version(tmp_path: Path) -> None:
    image.copy_container_files(sources(version="9.8.7"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"compose.yaml", "kubernetes.yaml", "seccomp.json"}
    for name in ("compose.yaml", "kubernetes.yaml"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "image: localhost/cellkeep:9.8.7\n" in text
        assert "cellkeep:VERSION" not in text


def test_a_layer_s_entries_are_whose_they_are(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree")
    if os.geteuid() == 0:
        os.chown(tree / "usr/bin/program", 10001, 10001)
    owner = (tree / "usr/bin/program").stat().st_uid
    for entries, wanted in ((archive.AS_IT_IS, owner), (archive.OF_ROOT, 0)):
        oci.make_layer(tree, EPOCH, tmp_path / "layer.gz", "", entries)
        with tarfile.open(tmp_path / "layer.gz") as file:
            assert file.getmember("./usr/bin/program").uid == wanted
