# SPDX-License-Identifier: Apache-2.0
"""The list of parts of a package: CycloneDX 1.5, as JSON.

Ours with the hashes of its programs, Debian's libraries that come along or are compiled in, the Python and
the Node packages of the environments.
"""

import json
import uuid
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import quote

from files import sha256_of
from layout import HERE, PROGRAMS, Sources
from libraries import Library, names_in, versions_of

SERIALS = uuid.UUID("6c0f9c1e-6f0e-5f43-9c57-3f1a7f7b2c55")  # ours: names of type uuid5 are below it


def component(kind: str, name: str, version: str, url: str, **more: object) -> dict:
    return {
        "type": kind,
        "bom-ref": url,
        "name": name,
        "version": version,
        "purl": url,
        **more,
    }


def debian_component(package: str, version: str, how: str) -> dict:
    url = f"pkg:deb/debian/{quote(package)}@{quote(version)}?arch=amd64"
    return component(
        "library", package, version, url, properties=[{"name": "cellkeep:use", "value": how}]
    )


def debian_components(brought: list[Library]) -> list[dict]:
    """Libraries that come along, and what is compiled in."""
    found = {library.package: (library.version, "brought") for library in brought}
    for package, version in versions_of(names_in(HERE / "built-in.txt")).items():
        found.setdefault(package, (version, "compiled in"))
    return [debian_component(name, *found[name]) for name in sorted(found)]


def licences_of(metadata: object) -> list[dict]:
    """As the package says it: an expression, or a sentence."""
    if expression := metadata.get("License-Expression"):
        return [{"expression": expression}]
    names = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier", [])
        if text.startswith("License :: OSI Approved :: ")
    ]
    if not names and (text := metadata.get("License")):
        names = [text.splitlines()[0]]
    return [{"license": {"name": name}} for name in names]


def python_components(environment: Path) -> list[dict]:
    found = []
    for path in sorted(environment.glob("lib/python3*/site-packages/*.dist-info/METADATA")):
        metadata = HeaderParser().parsestr(path.read_text(encoding="utf-8"))
        name, version = metadata["Name"], metadata["Version"]
        url = f"pkg:pypi/{quote(name.lower().replace('_', '-'))}@{quote(version)}"
        found.append(
            component("library", name, version, url, licenses=licences_of(metadata))
        )
    return found


def node_components(lock: Path) -> list[dict]:
    found = []
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    for place, about in sorted(packages.items()):
        name = place.rpartition("node_modules/")[2]
        if not name or about.get("optional"):
            continue
        url = f"pkg:npm/{quote(name, safe='/')}@{quote(about['version'])}"
        found.append(component("library", name, about["version"], url))
    return found


def our_component(sources: Sources, tree: Path) -> dict:
    parts = [
        {
            "type": "file",
            "bom-ref": f"bin/{name}",
            "name": f"bin/{name}",
            "hashes": [{"alg": "SHA-256", "content": sha256_of(tree / "bin" / name)}],
        }
        for name in sorted(PROGRAMS)
    ]
    return component(
        "application",
        "cellkeep",
        sources.version,
        f"pkg:generic/cellkeep@{sources.version}",
        licenses=[{"license": {"id": "Apache-2.0"}}],
        components=parts,
    )


def installed_components(status: str) -> list[dict]:
    """Of a root file system, whose dpkg has this status."""
    found = []
    for paragraph in status.split("\n\n"):
        fields = HeaderParser().parsestr(paragraph)
        if fields["Package"]:
            found.append(debian_component(fields["Package"], fields["Version"], "in the image"))
    return found


def describe(sources: Sources, tree: Path, debian: list[dict]) -> str:
    """With what of Debian's comes along."""
    environments = tree / "lib/cellkeep/environments"
    found = [*debian]
    for name in ("python", "foreign"):
        found += python_components(environments / name)
    if (environments / "javascript").is_dir():
        found += node_components(sources.root / "kernels/javascript/environment/package-lock.json")
    unique = {part["bom-ref"]: part for part in found}
    ours = our_component(sources, tree)
    parts = [unique[name] for name in sorted(unique)]
    serial = uuid.uuid5(SERIALS, json.dumps([ours, parts], sort_keys=True))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(sources.epoch, UTC).isoformat(),
            "component": ours,
        },
        "components": parts,
        "dependencies": [
            {"ref": ours["bom-ref"], "dependsOn": sorted(part["bom-ref"] for part in parts)}
        ],
    }
    return json.dumps(bom, indent=1) + "\n"
