# SPDX-License-Identifier: Apache-2.0
"""The image for containers: a minimal Debian 12 with what the Debian package depends on and recommends, above it the
package's files. Beside it come the files that tell Docker, Podman and Kubernetes how to run it.
"""

import os
import shutil
import tempfile
from pathlib import Path

import archive
import oci
import sbom
from debian import needed_packages, stage_files
from files import FILE_MODE, PackagingError, settle
from layout import HERE, Sources
from system_root import add_user, make_system

CONTAINER = HERE / "container"
NAME = "localhost/cellkeep"
USER = "cellkeep"
USER_NUMBER = 10001  # a number, so that Kubernetes can see that it is not root
STATE, CACHE = "var/lib/cellkeep", "var/cache/cellkeep"
PORT = 8888
MANUALS = ("usr/share/man", "usr/share/bash-completion")


def settings(sources: Sources) -> dict:
    """What a container has unless it is told something else."""
    serve = ["serve", "--listen", f"0.0.0.0:{PORT}", "--state-dir", f"/{STATE}/state"]
    return {
        "User": f"{USER_NUMBER}:{USER_NUMBER}",
        "ExposedPorts": {f"{PORT}/tcp": {}},
        "Env": [
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "LC_ALL=C.UTF-8",
            f"HOME=/{STATE}",
            f"CELLKEEP_IMAGE_DIR=/{CACHE}/images",
        ],
        "Entrypoint": ["/usr/bin/cellkeep"],
        "Cmd": serve,
        "Volumes": {f"/{STATE}": {}, f"/{CACHE}": {}},
        "WorkingDir": f"/{STATE}",
        "StopSignal": "SIGTERM",
        "Labels": {
            "org.opencontainers.image.title": "cellkeep",
            "org.opencontainers.image.description": "Persistent, sandboxed interpreters for code that agents write",
            "org.opencontainers.image.version": sources.version,
            "org.opencontainers.image.created": oci.time_of(sources.epoch),
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.vendor": "The Cellkeep authors",
        },
    }


def stage_ours(sources: Sources, tree: Path, package: Path) -> None:
    stage_files(tree, package)
    for name in MANUALS:
        shutil.rmtree(package / name)
    settle(package, sources.epoch)


def copy_container_files(sources: Sources, output: Path) -> None:
    """They name the image by its version."""
    for path in sorted(CONTAINER.iterdir()):
        text = path.read_text(encoding="utf-8").replace(f"{NAME}:VERSION", f"{NAME}:{sources.version}")
        target = output / path.name
        target.write_text(text, encoding="utf-8")
        target.chmod(FILE_MODE)


def make_image(sources: Sources, tree: Path, output: Path) -> None:
    if os.geteuid() != 0:
        raise PackagingError("only root makes the image: its files belong to several users")
    if shutil.which("mmdebstrap") is None:
        raise PackagingError("mmdebstrap is missing; ./scripts/package image installs it")
    with tempfile.TemporaryDirectory(prefix=".image-", dir=output.parent) as folder:
        scratch = Path(folder)
        system, package = scratch / "system", scratch / "package"
        make_system(system, needed_packages(sources), sources.epoch)
        add_user(system, USER, USER_NUMBER, (STATE, CACHE))
        stage_ours(sources, tree, package)
        name = f"cellkeep-{sources.version}-image"
        status = (system / "var/lib/dpkg/status").read_text(encoding="utf-8")
        parts = [*sbom.debian_components([]), *sbom.installed_components(status)]
        bom = sbom.describe(sources, tree, parts)
        (output / f"{name}.cdx.json").write_text(bom, encoding="utf-8")
        layers = [
            oci.make_layer(
                system, sources.epoch, scratch / "system.gz", "mmdebstrap", archive.AS_IT_IS
            ),
            oci.make_layer(package, sources.epoch, scratch / "package.gz", "cellkeep"),
        ]
        image = oci.Image(NAME, sources.version, sources.epoch, layers, settings(sources))
        oci.write_image(image, output / f"{name}-amd64.tar")
    copy_container_files(sources, output)
