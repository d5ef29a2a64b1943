# SPDX-License-Identifier: Apache-2.0
"""Reads an archive of an image and holds it to the OCI image specification 1.1: every descriptor, digest and size."""

import gzip
import hashlib
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

import oci

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Layout:
    names: list[str]  # of the archive's entries, in their order
    index: dict
    manifest: dict
    config: dict


def check_blob(file: tarfile.TarFile, about: dict) -> None:
    digest, size = hashlib.sha256(), 0
    with file.extractfile(oci.blob_name(about)) as content:
        while chunk := content.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    assert about["digest"] == f"sha256:{digest.hexdigest()}"
    assert about["size"] == size


def check_layer(file: tarfile.TarFile, about: dict, diff_id: str) -> None:
    assert about["mediaType"] == oci.LAYER
    digest = hashlib.sha256()
    with file.extractfile(oci.blob_name(about)) as packed, gzip.open(packed) as content:
        while chunk := content.read(CHUNK_BYTES):
            digest.update(chunk)
    assert diff_id == f"sha256:{digest.hexdigest()}"


def read_layout(path: Path) -> Layout:
    with tarfile.open(path) as file:
        read = lambda name: json.loads(file.extractfile(name).read())  # noqa: E731
        names = file.getnames()
        assert read("oci-layout") == {"imageLayoutVersion": "1.0.0"}
        index = read("index.json")
        assert (index["schemaVersion"], index["mediaType"]) == (2, oci.INDEX)
        (entry,) = index["manifests"]
        assert entry["mediaType"] == oci.MANIFEST
        manifest = read(oci.blob_name(entry))
        assert (manifest["schemaVersion"], manifest["mediaType"]) == (2, oci.MANIFEST)
        assert manifest["config"]["mediaType"] == oci.CONFIG
        config = read(oci.blob_name(manifest["config"]))
        blobs = [entry, manifest["config"], *manifest["layers"]]
        for about in blobs:
            check_blob(file, about)
        for about, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            check_layer(file, about, diff_id)
    assert sorted(name for name in names if name.startswith("blobs/sha256/")) == sorted(
        {oci.blob_name(about) for about in blobs}
    )
    return Layout(names, index, manifest, config)
