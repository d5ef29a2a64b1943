# SPDX-License-Identifier: Apache-2.0
"""An archive of small packages of Debian on this machine (deb(5), deb822(5)), and settings with which
apt-get knows it and no other."""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Contents = bytes | str


@dataclass
class Member:
    """An entry of a package that is more than a file of text."""

    contents: bytes = b""
    mode: int = 0o644
    kind: bytes = tarfile.REGTYPE
    link: str = ""


def pack_tar(members: Mapping[str, Member]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        for name, member in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.type = len(member.contents), member.mode, member.kind
            entry.linkname, entry.mtime = member.link, 1_600_000_000
            archive.addfile(entry, io.BytesIO(member.contents))
    return buffer.getvalue()


def pack_ar(parts: Mapping[str, bytes]) -> bytes:
    packed = b"!<arch>\n"
    for name, contents in parts.items():
        packed += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(contents):<10}`\n".encode()
        packed += contents + b"\n" * (len(contents) % 2)
    return packed


@dataclass
class DebianArchive:
    """Publish, then refresh(). What apt-get reads is readable for every user."""

    folder: Path
    stanzas: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("archive", "lists/partial"):
            (self.folder / name).mkdir(parents=True)
        lines = [
            f'Dir::Etc::sourcelist "{self.folder}/sources.list";',
            'Dir::Etc::sourceparts "/dev/null";',
            'Dir::Etc::preferences "/dev/null";',
            'Dir::Etc::preferencesparts "/dev/null";',
            f'Dir::State::lists "{self.folder}/lists";',
            'Acquire::Languages "none";',
            'APT::Sandbox::User "root";',
        ]
        self.settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
        source = f"deb [trusted=yes] file:{self.folder}/archive ./\n"
        (self.folder / "sources.list").write_text(source, encoding="utf-8")

    @property
    def settings(self) -> Path:
        return self.folder / "apt.conf"

    def publish(
        self,
        name: str,
        version: str,
        files: Mapping[str, Member | Contents],
        scripts: Mapping[str, str] | None = None,
        said: Mapping[str, str] | None = None,
        architecture: str = "amd64",
        **fields: str,
    ) -> None:
        """said: what the package says of itself besides what the list says of it."""
        about = {
            "Package": name,
            "Version": version,
            "Architecture": architecture,
            "Maintainer": "Nobody <nobody@example.invalid>",
            "Description": "of a test",
            **{key.replace("_", "-"): value for key, value in fields.items()},
        }
        own = {**about, **(said or {})}
        control = {"./control": Member("".join(f"{k}: {v}\n" for k, v in own.items()).encode())}
        for script, text in (scripts or {}).items():
            control[f"./{script}"] = Member(text.encode(), mode=0o755)
        data: dict[str, Member] = {}
        for path, member in files.items():
            text = member.encode() if isinstance(member, str) else member
            data[path] = text if isinstance(text, Member) else Member(text)
        packed = pack_ar(
            {
                "debian-binary": b"2.0\n",
                "control.tar.gz": pack_tar(control),
                "data.tar.gz": pack_tar(data),
            }
        )
        file = self.folder / "archive" / f"{name}_{version}_{architecture}.deb"
        file.write_bytes(packed)
        digest = hashlib.sha256(packed).hexdigest()
        about |= {"Filename": f"./{file.name}", "Size": str(len(packed)), "SHA256": digest}
        self.stanzas.append("".join(f"{key}: {value}\n" for key, value in about.items()))

    def refresh(self) -> None:
        listed = "\n".join(self.stanzas).encode()
        (self.folder / "archive/Packages").write_bytes(listed)
        (self.folder / "archive/Packages.gz").write_bytes(gzip.compress(listed))
        variables = {**os.environ, "APT_CONFIG": str(self.settings)}
        subprocess.run(["apt-get", "-qq", "update"], env=variables, check=True, capture_output=True)
        for path in [self.folder, *self.folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
