# SPDX-License-Identifier: Apache-2.0
"""The relocatable tree: what every package of ours unpacks to, below a folder of any name.

bin/cellkeep finds the rest from where it is itself (kernel-manager/languages/installation.cpp):

  bin/                  the server, the programs that it starts, and the Python kernel as a module (.so)
  lib/cellkeep/         kernels as files: python, driver, kernels, foreign; environments; shared, the libraries
  share/                documents, licences, the manual page, the list of parts (SBOM)
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import bytecode
import libraries
from environment import STAMP, stage_environment
from files import PackagingError, copy_file, copy_tree, settle
from libraries import Library, output_of

HERE = Path(__file__).parent
DYNAMIC = ("cellkeep", "cellkeep-host.abi3.so", "cellkeep-kernel-driver", "cellkeep-kernel-python")
PROGRAMS = (*DYNAMIC, "cellkeep-sandbox")
LANGUAGES = ("bash", "javascript", "sql", "typescript")
DOCUMENT_FOLDERS = ("clients", "docs", "kernel-manager", "kernels", "protocol", "sandbox")
DOCUMENT_SUFFIXES = {".md", ".png", ".svg", ".json"}
LICENCE = Path("/usr/share/common-licenses/Apache-2.0")
VERSION = re.compile(r"project\(cellkeep VERSION (\d+\.\d+\.\d+) ")
INSIDE = "/opt/cellkeep"  # where sessions see it (kernel_catalog.cpp)


@dataclass(frozen=True)
class Sources:
    root: Path  # the source tree
    binaries: Path  # build/release/bin
    environments: Path  # build/environments
    version: str
    epoch: int  # seconds: the time of everything in a package


def read_version(root: Path) -> str:
    found = VERSION.search((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if found is None:
        raise PackagingError("CMakeLists.txt names no version")
    return found[1]


def read_epoch(root: Path) -> int:
    """SOURCE_DATE_EPOCH, or the time of the commit."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    text = told if told is not None else output_of("git", "-C", root, "log", "-1", "--format=%ct")
    if not re.fullmatch(r"[0-9]{9,11}", text.strip()):
        raise PackagingError(f"{text.strip()!r} is no time in seconds (SOURCE_DATE_EPOCH)")
    return int(text)


def stage_programs(sources: Sources, target: Path) -> None:
    """Without symbols, lines and the id of the build: what depends on the build tree's path."""
    for name in PROGRAMS:
        built = sources.binaries / name
        if not built.is_file():
            raise PackagingError(f"{built} is missing; ./scripts/package builds it")
        program = target / "bin" / name
        copy_file(built, program)
        output_of("strip", "--strip-all", "--remove-section=.note.gnu.build-id", program)
        if sources.root.as_posix().encode() in program.read_bytes():
            raise PackagingError(f"{name} names the folder that it was built in")


def stage_libraries(brought: list[Library], target: Path) -> None:
    for library in brought:
        copy_file(library.path, target / "lib/cellkeep/shared" / library.name)


def is_no_part(path: Path) -> bool:
    """Of a language's folder, what its driver does not read."""
    return path.parts[0] == "environment" or path.name == "__pycache__"


def stage_kernels(sources: Sources, target: Path) -> None:
    kernels = sources.root / "kernels"
    lib = target / "lib/cellkeep"
    copy_tree(kernels / "python/cellkeep_kernel", lib / "python/cellkeep_kernel", is_no_part)
    copy_file(kernels / "driver/cellkeep_driver.py", lib / "driver/cellkeep_driver.py")
    copy_tree(kernels / "foreign/bridge", lib / "foreign/bridge", is_no_part)
    for language in LANGUAGES:
        copy_tree(kernels / language, lib / "kernels" / language, is_no_part)
    for folder, inside in (
        ("python", "python"),
        ("driver", "driver"),
        ("kernels", "kernels"),
        ("foreign", "kernels/foreign"),
    ):
        bytecode.compile_tree(lib / folder, f"{INSIDE}/{inside}")


def is_of_no_session(path: Path) -> bool:
    """Of Node's packages, what npm wrote for itself: it names where the packages came from."""
    return path.name in (".npmrc", ".package-lock.json", "package-lock.json", STAMP)


def stage_environments(sources: Sources, target: Path) -> None:
    places = {"python": f"{INSIDE}/environment", "foreign": f"{INSIDE}/packages/foreign"}
    environments = target / "lib/cellkeep/environments"
    for name, inside in places.items():
        lock = sources.root / "kernels" / name / "environment/requirements.lock"
        staged = environments / name
        stage_environment(sources.environments / name, lock, staged, inside)
        bytecode.compile_tree(staged, inside)
    node = sources.environments / "javascript"
    if not (node / STAMP).is_file():
        raise PackagingError(f"{node} is not there or not finished; ./scripts/package makes it")
    copy_tree(node, environments / "javascript", is_of_no_session)


def is_no_document(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "node_modules" for part in path.parts)
    return hidden or (path.suffix not in DOCUMENT_SUFFIXES and "." in path.name)


def stage_documents(sources: Sources, target: Path) -> None:
    """Where they are in the source tree, so that the links between them hold."""
    documents = target / "share/doc/cellkeep"
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        copy_file(sources.root / name, documents / name)
    for folder in DOCUMENT_FOLDERS:
        for path in sorted((sources.root / folder).rglob("*.md")):
            if not is_no_document(path.relative_to(sources.root)):
                copy_file(path, documents / path.relative_to(sources.root))
    copy_tree(sources.root / "docs", documents / "docs", is_no_document)
    openapi = "kernel-manager/api/openapi.json"
    copy_file(sources.root / openapi, documents / openapi)
    copy_file(HERE / "cellkeep.1", target / "share/man/man1/cellkeep.1")
    copy_file(
        HERE / "completion.bash", target / "share/bash-completion/completions/cellkeep"
    )


def stage_licences(packages: list[str], target: Path) -> None:
    """Ours, and those of Debian's packages whose code is in the programs or beside them. Python's and
    Node's packages have theirs with them."""
    licences = target / "share/doc/cellkeep/licences"
    copy_file(LICENCE, licences / "cellkeep")
    for package in packages:
        copyright_file = Path("/usr/share/doc", package, "copyright")
        if not copyright_file.is_file():
            raise PackagingError(f"{copyright_file} is missing: the licence of {package}")
        copy_file(copyright_file, licences / "debian" / package)


def stage(sources: Sources, target: Path, *, environments: bool = True) -> list[Library]:
    """Makes the tree in an empty folder. Says which libraries it brings."""
    if target.exists() and any(target.iterdir()):
        raise PackagingError(f"{target} is not empty")
    used = libraries.libraries_of([sources.binaries / name for name in DYNAMIC])
    brought = libraries.brought(used, libraries.names_in(libraries.SYSTEM_LIBRARIES))
    stage_programs(sources, target)
    stage_libraries(brought, target)
    stage_kernels(sources, target)
    if environments:
        stage_environments(sources, target)
    stage_documents(sources, target)
    built_in = libraries.names_in(HERE / "built-in.txt")
    stage_licences(sorted({library.package for library in brought} | set(built_in)), target)
    settle(target, sources.epoch)
    return brought
