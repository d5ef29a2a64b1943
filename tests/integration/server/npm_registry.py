# SPDX-License-Identifier: Apache-2.0
"""A registry of Node.js packages on this machine, as npm asks one (npm's registry API)."""

import base64
import contextlib
import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote


def pack(files: dict[str, str]) -> bytes:
    """A package's archive: everything is beneath "package"."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text.encode()), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


@dataclass
class Registry:
    """Manifests and archives by name and version."""

    manifests: dict[str, dict[str, dict]] = field(default_factory=dict)
    archives: dict[str, bytes] = field(default_factory=dict)
    address: str = ""

    def publish(self, name: str, version: str, files: dict[str, str], **members: object) -> None:
        manifest = {"name": name, "version": version, **members}
        archive = pack({"package.json": json.dumps(manifest), **files})
        path = f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
        digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        manifest["dist"] = {"tarball": path, "integrity": f"sha512-{digest}"}
        self.manifests.setdefault(name, {})[version] = manifest
        self.archives[path] = archive

    def answer(self, path: str) -> bytes | None:
        if path in self.archives:
            return self.archives[path]
        versions = self.manifests.get(path.lstrip("/"))
        if versions is None:
            return None
        whole = {
            number: {**one, "dist": {**one["dist"], "tarball": self.address + one["dist"]["tarball"]}}
            for number, one in versions.items()
        }
        latest = max(versions, key=lambda version: [int(part) for part in version.split(".")])
        document = {"name": path.lstrip("/"), "dist-tags": {"latest": latest}, "versions": whole}
        return json.dumps(document).encode()

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = registry.answer(unquote(self.path))
                self.send_response(404 if body is None else 200)
                self.end_headers()
                self.wfile.write(body or b"{}")

            def log_message(self, *_: object) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.address = f"http://127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield self.address + "/"
            finally:
                server.shutdown()
                thread.join()
