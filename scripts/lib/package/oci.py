# SPDX-License-Identifier: Apache-2.0
"""An image layout of the OCI image specification 1.1 as a tar archive: what `podman load`, `docker load`,
`ctr images import` and skopeo read.

https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
"""

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import archive
from files import sha256_of

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True)
class Layer:
    blob: Path  # gzip
    diff_id: str  # the SHA-256 of the tar within, which the configuration names
    made_by: str  # for the history


@dataclass(frozen=True)
class Image:
    name: str  # as `docker images` shows it
    tag: str
    epoch: int
    layers: list[Layer]  # the lowest first
    settings: dict  # "config" of the configuration: User, Entrypoint, Labels …


def make_layer(
    tree: Path, epoch: int, blob: Path, made_by: str, entries: tuple[str, ...] = archive.OF_ROOT
) -> Layer:
    diff_id = archive.pack(tree, ".", epoch, blob, archive.GZIP, entries)
    return Layer(blob, diff_id, made_by)


def time_of(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def text_of(document: dict) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def descriptor(media_type: str, content: bytes) -> dict:
    digest = hashlib.sha256(content).hexdigest()
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def layer_descriptor(layer: Layer) -> dict:
    digest = f"sha256:{sha256_of(layer.blob)}"
    return {"mediaType": LAYER, "digest": digest, "size": layer.blob.stat().st_size}


def configuration(image: Image) -> dict:
    created = time_of(image.epoch)
    return {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": image.settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.diff_id}" for layer in image.layers]},
        "history": [{"created": created, "created_by": layer.made_by} for layer in image.layers],
    }


def index(image: Image, manifest: bytes) -> dict:
    entry = descriptor(MANIFEST, manifest)
    entry["platform"] = {"architecture": "amd64", "os": "linux"}
    entry["annotations"] = {
        "org.opencontainers.image.ref.name": image.tag,
        # What containerd, Docker and Podman take the whole name from.
        "io.containerd.image.name": f"{image.name}:{image.tag}",
    }
    return {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}


class Archive:
    """Writes the entries of a layout, every one with the release's time."""

    def __init__(self, file: tarfile.TarFile, epoch: int) -> None:
        self._file = file
        self._epoch = epoch

    def _entry(self, name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.mtime = kind, mode, self._epoch
        return entry

    def folder(self, name: str) -> None:
        self._file.addfile(self._entry(name, tarfile.DIRTYPE, 0o755))

    def text(self, name: str, content: bytes) -> None:
        entry = self._entry(name, tarfile.REGTYPE, 0o644)
        entry.size = len(content)
        self._file.addfile(entry, io.BytesIO(content))

    def copy(self, name: str, source: Path) -> None:
        entry = self._entry(name, tarfile.REGTYPE, 0o644)
        entry.size = source.stat().st_size
        with source.open("rb") as content:
            self._file.addfile(entry, content)


def blob_name(about: dict) -> str:
    return f"blobs/sha256/{about['digest'].removeprefix('sha256:')}"


def write_image(image: Image, output: Path) -> None:
    config = text_of(configuration(image))
    layers = [layer_descriptor(layer) for layer in image.layers]
    about_config = descriptor(CONFIG, config)
    manifest = text_of(
        {"schemaVersion": 2, "mediaType": MANIFEST, "config": about_config, "layers": layers}
    )
    with tarfile.open(output, "w", format=tarfile.USTAR_FORMAT) as file:
        packed = Archive(file, image.epoch)
        packed.text("oci-layout", text_of({"imageLayoutVersion": "1.0.0"}))
        packed.text("index.json", text_of(index(image, manifest)))
        packed.folder("blobs")
        packed.folder("blobs/sha256")
        packed.text(blob_name(about_config), config)
        packed.text(blob_name(descriptor(MANIFEST, manifest)), manifest)
        for about, layer in zip(layers, image.layers, strict=True):
            packed.copy(blob_name(about), layer.blob)
