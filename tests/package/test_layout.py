# SPDX-License-Identifier: Apache-2.0
"""The tree that every package carries: it works wherever it is put, and what is not whole is not packed."""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tree import EPOCH, PACKAGER, ROOT, sources

import archive
import layout
import libraries
import sbom
from environment import check_stamp, made_at, record_hash, stage_environment
from files import PackagingError, walk
from make import main as make_packages

PACKAGES = "lib/python3.11/site-packages"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without environments: they take minutes, and scripts' environments have tests of their own here."""
    staged = tmp_path_factory.mktemp("staged") / "tree"
    layout.stage(sources(), staged, environments=False)
    moved = tmp_path_factory.mktemp("elsewhere") / "a folder of any name"
    shutil.move(staged, moved)
    return moved


def output(*command: object, **options: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=True, **options
    )
    return done.stdout


def test_the_program_runs_from_any_folder_and_by_a_link(tree: Path, tmp_path: Path) -> None:
    link = tmp_path / "cellkeep"
    link.symlink_to(tree / "bin/cellkeep")
    assert output(link, "version", cwd=tmp_path) == f"cellkeep {layout.read_version(ROOT)}\n"


def test_the_programs_take_the_libraries_that_came_along(tree: Path) -> None:
    for name in layout.DYNAMIC:
        for wanted, path in libraries.needed([tree / "bin" / name]).items():
            brought = tree / "lib/cellkeep/shared" / wanted
            assert brought.exists() == (path == brought), (name, wanted)


def test_every_language_has_its_files_and_their_bytecode(tree: Path) -> None:
    lib = tree / "lib/cellkeep"
    assert {path.name for path in (lib / "kernels").iterdir()} == set(layout.LANGUAGES)
    for name in ("driver/cellkeep_driver", "foreign/bridge/driver", "python/cellkeep_kernel/kernel"):
        source = lib / f"{name}.py"
        compiled = source.parent / f"__pycache__/{source.stem}.cpython-311.pyc"
        assert source.is_file()
        assert compiled.read_bytes()[4:8] == b"\x01\0\0\0", "by hash, unchecked (PEP 552)"


def test_nothing_in_it_names_this_tree_or_depends_on_this_user(tree: Path) -> None:
    for path in walk(tree):
        info = path.lstat()
        assert info.st_mtime == EPOCH, path
        assert path.is_symlink() or info.st_mode & 0o7777 in (0o644, 0o755), path
        if path.is_file() and path.suffix != ".md":
            assert str(ROOT).encode() not in path.read_bytes(), path


def test_the_licence_of_everything_compiled_in_or_brought_is_there(tree: Path) -> None:
    licences = tree / "share/doc/cellkeep/licences"
    assert "Apache License" in (licences / "cellkeep").read_text(encoding="utf-8")
    have = {path.name for path in (licences / "debian").iterdir()}
    assert {"libzmq5", "libpython3.11", "libboost1.81-dev"} <= have
    assert have >= set(libraries.names_in(PACKAGER / "built-in.txt"))


def test_links_between_the_documents_hold(tree: Path) -> None:
    documents = tree / "share/doc/cellkeep"
    for path in documents.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), (path.relative_to(documents), target)


def test_the_manual_page_and_the_completion_know_every_command(tree: Path) -> None:
    page = (tree / "share/man/man1/cellkeep.1").read_text(encoding="utf-8")
    commands = re.findall(r"^  ([a-z]+) {2,}", output(tree / "bin/cellkeep", "--help"), re.M)
    assert len(commands) > 10
    assert not [name for name in commands if f"\n.B {name}\n" not in page]
    script = tree / "share/bash-completion/completions/cellkeep"
    ask = f". '{script}'; COMP_WORDS=(cellkeep k); COMP_CWORD=1; _cellkeep; echo ${{COMPREPLY[*]}}"
    variables = {**os.environ, "PATH": f"{tree}/bin:{os.environ['PATH']}"}
    assert output("bash", "-c", ask, env=variables).split() == ["kernel", "kernelspec"]


def test_an_archive_of_the_same_tree_has_the_same_bytes(tree: Path, tmp_path: Path) -> None:
    small = tree / "lib/cellkeep/kernels"
    copy = tmp_path / "copy"
    shutil.copytree(small, copy)
    copy.chmod(0o700)
    (copy / "bash").touch()
    layout.settle(copy, EPOCH)
    for number, folder in enumerate((small, copy)):
        archive.pack(folder, "kernels", EPOCH, tmp_path / f"{number}.tar.zst", archive.ZSTD)
    assert (tmp_path / "0.tar.zst").read_bytes() == (tmp_path / "1.tar.zst").read_bytes()


def make_environment(folder: Path, lock: Path) -> Path:
    """A small one, as scripts/lib/environments.sh leaves it."""
    environment = folder / "environment"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", environment], check=True)
    program = environment / "bin/tool"
    program.write_text(f"#!{environment}/bin/python\n", encoding="utf-8")
    program.chmod(0o755)
    about = environment / PACKAGES / "tool-1.dist-info"
    about.mkdir()
    old = record_hash(program.read_bytes())
    (about / "RECORD").write_text(f"../../../bin/tool,{old},9\ntool-1.dist-info/RECORD,,\n", "utf-8")
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    (environment / ".made-from").write_text(f"{digest}\nrecipe\n", encoding="utf-8")
    return environment


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.lock"
    path.write_text("tool==1 --hash=sha256:0\n", encoding="utf-8")
    return path


@pytest.fixture
def environment(tmp_path: Path, lock: Path) -> Path:
    return make_environment(tmp_path, lock)


def test_an_environment_is_packed_as_sessions_see_it(
    environment: Path, lock: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    stage_environment(environment, lock, target, "/opt/inside")
    program = (target / "bin/tool").read_bytes()
    assert program == b"#!/opt/inside/bin/python\n"
    record = (target / PACKAGES / "tool-1.dist-info/RECORD").read_text(encoding="utf-8")
    assert record.splitlines()[0] == f"../../../bin/tool,{record_hash(program)},{len(program)}"
    assert made_at(target) == "/opt/inside"
    stamp = (target / ".made-from").read_text(encoding="utf-8").split()
    assert stamp[0] == hashlib.sha256(lock.read_bytes()).hexdigest()


def refuses(sentence: str, call: object, *arguments: object, **options: object) -> None:
    with pytest.raises(PackagingError, match=sentence):
        call(*arguments, **options)


def test_an_environment_that_is_not_whole_is_refused(environment: Path, lock: Path) -> None:
    check_stamp(environment, lock)
    (environment / ".made-from").write_text("", encoding="utf-8")
    refuses("was not made from", check_stamp, environment, lock)
    (environment / ".made-from").unlink()
    refuses("not finished", check_stamp, environment, lock)
    refuses("not there", check_stamp, environment / "nothing", lock)


def test_an_environment_of_another_lock_is_refused(environment: Path, lock: Path) -> None:
    lock.write_text("tool==2 --hash=sha256:0\n", encoding="utf-8")
    refuses("was not made from requirements.lock", check_stamp, environment, lock)


def test_an_environment_that_names_its_folder_elsewhere_is_refused(
    environment: Path, lock: Path, tmp_path: Path
) -> None:
    (environment / PACKAGES / "tool.py").write_text(f"HERE = '{environment}'\n", encoding="utf-8")
    refuses("tool.py names", stage_environment, environment, lock, tmp_path / "t", "/opt/inside")


def test_an_environment_of_unknown_origin_is_refused(environment: Path) -> None:
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")
    refuses("does not say where", made_at, environment)


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refuses("is not empty", layout.stage, sources(), tmp_path)


@pytest.mark.parametrize("name", layout.PROGRAMS)
def test_a_missing_program_is_refused(name: str, tmp_path: Path) -> None:
    build = tmp_path / "bin"
    build.mkdir()
    for other in set(layout.PROGRAMS) - {name}:
        (build / other).symlink_to(sources().binaries / other)
    refuses(name, layout.stage, sources(binaries=build), tmp_path / "tree", environments=False)


def test_a_program_that_names_its_folder_is_refused(tmp_path: Path) -> None:
    build = tmp_path / "bin"
    build.mkdir()
    code = f'const char* place = "{tmp_path}/kernels"; int main() {{ return place[0] == 0; }}'
    command = ["gcc", "-x", "c", "-", "-o", build / layout.PROGRAMS[0]]
    subprocess.run(command, input=code, text=True, check=True)
    own = dataclasses.replace(sources(binaries=build), root=tmp_path)
    refuses("names the folder", layout.stage_programs, own, tmp_path / "tree")


def test_a_library_without_a_package_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "libown.so.1"
    library.touch()
    bash = Path("/usr/bin/bash").resolve()
    refuses("belongs to no package", libraries.owners_of, [bash, library])
    assert libraries.owners_of([bash])[bash][0] == "bash"


def test_a_licence_that_is_missing_is_refused(tmp_path: Path) -> None:
    refuses("licence of no-such", layout.stage_licences, ["no-such"], tmp_path)


@pytest.mark.parametrize("text", ["", "yesterday", "-1", "1e9", "12", "170000000000000"])
def test_a_time_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    refuses("is no time", layout.read_epoch, ROOT)


def test_a_time_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert layout.read_epoch(ROOT) == EPOCH


def test_a_tree_without_a_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(cellkeep)\n", encoding="utf-8")
    refuses("names no version", layout.read_version, tmp_path)


@pytest.mark.parametrize("words", [["rpm"], ["tarball", "rpm"], ["--output"]])
def test_a_kind_that_is_none_is_refused(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["make.py", *words])
    with pytest.raises(SystemExit) as ended:
        make_packages()
    assert ended.value.code == 2


def test_the_list_of_parts_names_what_came_along(tree: Path) -> None:
    brought = libraries.brought(
        libraries.libraries_of([sources().binaries / name for name in layout.DYNAMIC]),
        libraries.names_in(libraries.SYSTEM_LIBRARIES),
    )
    bom = json.loads(sbom.describe(sources(), tree, sbom.debian_components(brought)))
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    names = {part["name"] for part in bom["components"]}
    assert {"libzmq5", "nlohmann-json3-dev"} <= names
    references = [part["bom-ref"] for part in bom["components"]]
    assert len(set(references)) == len(references)
    files = bom["metadata"]["component"]["components"]
    program = hashlib.sha256((tree / "bin/cellkeep").read_bytes()).hexdigest()
    assert {"alg": "SHA-256", "content": program} in files[0]["hashes"] + files[1]["hashes"]
