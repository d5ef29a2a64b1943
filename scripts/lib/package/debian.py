# SPDX-License-Identifier: Apache-2.0
"""The Debian package: the tree below /usr/lib/cellkeep, without the libraries that Debian has, a service and
the file of its options."""

import gzip
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from files import PROGRAM_MODE, PackagingError, copy_file, copy_tree, link_file, settle, walk
from layout import DYNAMIC, HERE, Sources

PREFIX = "usr/lib/cellkeep"
OURS = HERE / "debian"
SCRIPTS = ("postinst", "prerm", "postrm")
CONFFILES = ("etc/cellkeep/cellkeep.toml",)
MAINTAINER = "The Cellkeep authors <maintainers@cellkeep.invalid>"
# Not libraries: the interpreter of sessions, the service's user, erofs images of a server of root's.
DEPENDS = ("adduser", "ca-certificates", "python3 (>= 3.11)", "python3 (<< 3.12)", "python3.11")
# What sessions have of the system when it is there (image_recipe.cpp), as far as it is small.
RECOMMENDS = (
    "bzip2",
    "curl",
    "erofs-utils",
    "file",
    "fontconfig",
    "fonts-dejavu-core",
    "git",
    "jq",
    "less",
    "make",
    "nodejs (>= 18)",
    "openssl",
    "patch",
    "procps",
    "shared-mime-info",
    "sqlite3",
    "tzdata",
    "unzip",
    "wget",
    "xz-utils",
    "zip",
    "zstd",
)
SUGGESTS = ("g++", "gcc", "libc6-dev", "pkg-config", "python3-venv")
DESCRIPTION = """kernel server with sandboxed sessions for AI agents and Jupyter
 Each session is an interpreter in a sandbox of its own. Its variables, imports,
 files and plots stay from one execution to the next. Agents use sessions over
 an HTTP API or the Model Context Protocol. People attach JupyterLab or another
 Jupyter client to the same session."""


def library_depends(sources: Sources) -> list[str]:
    """By dpkg-shlibdeps, which wants a source package around it."""
    with tempfile.TemporaryDirectory() as folder:
        control = Path(folder, "debian/control")
        control.parent.mkdir()
        control.write_text("Source: cellkeep\n\nPackage: cellkeep\nArchitecture: amd64\n", encoding="utf-8")
        programs = [f"-e{sources.binaries / name}" for name in DYNAMIC]
        done = subprocess.run(
            ["dpkg-shlibdeps", "-O", *programs], cwd=folder, capture_output=True, text=True
        )
    prefix = "shlibs:Depends="
    found = [line for line in done.stdout.splitlines() if line.startswith(prefix)]
    if done.returncode != 0 or not found:
        raise PackagingError(f"dpkg-shlibdeps: {done.stderr.strip()}")
    return found[0].removeprefix(prefix).split(", ")


def names_of(relations: Iterable[str]) -> list[str]:
    """Of packages, from fields like Depends: without versions, the first where there is a choice."""
    return sorted({re.match(r"[^ (|]+", relation)[0] for relation in relations})


def needed_packages(sources: Sources) -> list[str]:
    """What `apt install` brings along: what the package depends on, and what it recommends."""
    return names_of([*library_depends(sources), *DEPENDS, *RECOMMENDS])


def write_control(sources: Sources, package: Path) -> None:
    size = sum(path.stat().st_size for path in walk(package) if path.is_file())
    depends = sorted({*library_depends(sources), *DEPENDS})
    fields = {
        "Package": "cellkeep",
        "Version": sources.version,
        "Architecture": "amd64",
        "Maintainer": MAINTAINER,
        "Installed-Size": str((size + 1023) // 1024),
        "Depends": ", ".join(depends),
        "Recommends": ", ".join(RECOMMENDS),
        "Suggests": ", ".join(SUGGESTS),
        "Section": "science",
        "Priority": "optional",
        "Description": DESCRIPTION,
    }
    text = "".join(f"{name}: {value}\n" for name, value in fields.items())
    control = package / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(text, encoding="utf-8")
    conffiles = "".join(f"/{name}\n" for name in CONFFILES)
    (control / "conffiles").write_text(conffiles, encoding="utf-8")
    for name in SCRIPTS:
        copy_file(OURS / name, control / name)
        (control / name).chmod(PROGRAM_MODE)


def write_md5sums(package: Path) -> None:
    lines = []
    for path in walk(package):
        name = path.relative_to(package).as_posix()
        if path.is_file() and not path.is_symlink() and not name.startswith(("DEBIAN/", "etc/")):
            digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            lines.append(f"{digest}  {name}\n")
    (package / "DEBIAN/md5sums").write_text("".join(lines), encoding="utf-8")


def compress(path: Path) -> None:
    """As Debian's policy wants manual pages and changelogs."""
    target = path.with_name(path.name + ".gz")
    target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    path.unlink()


def is_elsewhere(path: Path) -> bool:
    """Debian has the libraries; the rest goes to the places of /usr/share."""
    return path.parts[0] == "share" or path.parts[:3] == ("lib", "cellkeep", "shared")


def stage_files(tree: Path, package: Path) -> None:
    """Where a Debian system has a package's files."""
    copy_tree(tree, package / PREFIX, is_elsewhere, link_file)
    copy_tree(tree / "share", package / "usr/share", lambda _: False, link_file)
    documents = package / "usr/share/doc/cellkeep"
    licence = (documents / "licences/cellkeep").read_text(encoding="utf-8")
    (documents / "copyright").write_text(licence, encoding="utf-8")
    compress(package / "usr/share/man/man1/cellkeep.1")
    program = package / "usr/bin/cellkeep"
    program.parent.mkdir()
    program.symlink_to("../lib/cellkeep/bin/cellkeep")


def stage_package(tree: Path, package: Path) -> None:
    stage_files(tree, package)
    copy_file(OURS / "cellkeep.service", package / "lib/systemd/system/cellkeep.service")
    for name in CONFFILES:
        copy_file(OURS / Path(name).name, package / name)


def make_deb(sources: Sources, tree: Path, output: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".deb-", dir=output.parent) as scratch:
        package = Path(scratch, "package")
        stage_package(tree, package)
        write_control(sources, package)
        write_md5sums(package)
        settle(package, sources.epoch)
        deb = output / f"cellkeep_{sources.version}_amd64.deb"
        command = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z3", "--threads-max=2"]
        done = subprocess.run(
            [*command, "--build", package, deb],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(sources.epoch), "LC_ALL": "C"},
            stdout=subprocess.DEVNULL,
        )
    if done.returncode != 0:
        raise PackagingError(f"dpkg-deb made no {deb.name}")
