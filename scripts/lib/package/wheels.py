# SPDX-License-Identifier: Apache-2.0
"""The wheel that carries the server, and the packages of the two clients."""

import base64
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

import archive
from files import PackagingError, copy_tree, settle, sha256_of
from layout import HERE, Sources

LAUNCHER = HERE / "cellkeep_server"
TAG = "py3-none-linux_x86_64"
SUMMARY = "Cellkeep's server: persistent, sandboxed interpreters for code that agents and people write"
ENTRY_POINTS = "[console_scripts]\ncellkeep = cellkeep_server.launcher:main\n"
STORED_MIN = 1 << 20  # larger files are compressed already


def metadata_of(sources: Sources) -> str:
    readme = (HERE / "cellkeep_server/README.md").read_text(encoding="utf-8")
    fields = {
        "Metadata-Version": "2.1",
        "Name": "cellkeep-server",
        "Version": sources.version,
        "Summary": SUMMARY,
        "License": "Apache-2.0",
        "Requires-Python": ">=3.9",
        "Description-Content-Type": "text/markdown",
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items()) + "\n" + readme


def record_line(name: str, path: Path) -> str:
    digest = base64.urlsafe_b64encode(bytes.fromhex(sha256_of(path))).rstrip(b"=").decode()
    return f"{name},sha256={digest},{path.stat().st_size}\n"


def write_zip(folder: Path, epoch: int, wheel: Path) -> None:
    """A zip knows no years before 1980 and no time zone."""
    stamp = time.gmtime(max(epoch, 315532800))[:6]
    with zipfile.ZipFile(wheel, "w") as packed:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), stamp)
            info.external_attr = (0o100000 | path.stat().st_mode & 0o777) << 16
            is_large = path.stat().st_size >= STORED_MIN
            info.compress_type = zipfile.ZIP_STORED if is_large else zipfile.ZIP_DEFLATED
            with path.open("rb") as file, packed.open(info, "w", force_zip64=is_large) as entry:
                shutil.copyfileobj(file, entry, 1 << 20)


def make_server_wheel(sources: Sources, tree: Path, output: Path) -> None:
    name = f"cellkeep_server-{sources.version}"
    with tempfile.TemporaryDirectory(prefix=".wheel-", dir=output.parent) as scratch:
        folder = Path(scratch, "wheel")
        package, about = folder / "cellkeep_server", folder / f"{name}.dist-info"
        copy_tree(LAUNCHER, package, lambda path: path.name in ("__pycache__", "README.md"))
        payload = package / "payload.tar.gz"
        archive.pack(tree, f"cellkeep-{sources.version}", sources.epoch, payload, archive.GZIP)
        (package / "payload.sha256").write_text(sha256_of(payload) + "\n", encoding="ascii")
        about.mkdir()
        (about / "METADATA").write_text(metadata_of(sources), encoding="utf-8")
        wheel_text = f"Wheel-Version: 1.0\nGenerator: cellkeep\nRoot-Is-Purelib: false\nTag: {TAG}\n"
        (about / "WHEEL").write_text(wheel_text, encoding="utf-8")
        (about / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
        shutil.copyfile(tree / "share/doc/cellkeep/licences/cellkeep", about / "LICENSE")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        lines = [record_line(path.relative_to(folder).as_posix(), path) for path in files]
        record = f"{name}.dist-info/RECORD"
        (folder / record).write_text("".join(lines) + f"{record},,\n", encoding="utf-8")
        settle(folder, sources.epoch)
        write_zip(folder, sources.epoch, output / f"{name}-{TAG}.whl")


def run(folder: Path, sources: Sources, *command: object) -> None:
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(sources.epoch), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise PackagingError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")


def is_no_client(path: Path) -> bool:
    return path.parts[0] in ("node_modules", "dist") or path.name == "__pycache__"


def make_client_wheel(sources: Sources, _tree: Path, output: Path) -> None:
    python = sources.environments / "clients/bin/python"
    with tempfile.TemporaryDirectory(prefix=".client-", dir=output.parent) as scratch:
        source = Path(scratch, "client")
        copy_tree(sources.root / "clients/python", source, is_no_client)
        settle(source, sources.epoch)
        options = ("--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir")
        run(source, sources, python, "-m", "pip", "wheel", *options, "--wheel-dir", output, source)


def make_npm_tarball(sources: Sources, _tree: Path, output: Path) -> None:
    compiler = sources.environments / "typescript/node_modules"
    with tempfile.TemporaryDirectory(prefix=".client-", dir=output.parent) as scratch:
        source = Path(scratch, "client")
        copy_tree(sources.root / "clients/typescript", source, is_no_client)
        (source / "node_modules").symlink_to(compiler)
        run(source, sources, "node", compiler / "typescript/bin/tsc", "--project", "tsconfig.json")
        options = ("--ignore-scripts", "--offline", f"--pack-destination={output}")
        run(source, sources, "npm", "pack", *options)
