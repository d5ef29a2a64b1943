# SPDX-License-Identifier: Apache-2.0
"""A store of environment images in which no image can be made until the test says so.

The test holds the lock of the builds. The image that is there then is a copy of the usual store's, so that
nothing takes minutes.
"""

import atexit
import contextlib
import fcntl
import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from harness import binary, image_directory, wait_until

BUILD_SECONDS_MAX = 30


class ImageCopy:
    """A copy of today's environment image, which goes from one store of tests to the next.

    To link or copy its file for each test would change an inode each time, and a server reads a gigabyte
    again before it trusts an inode that it does not know. A directory that is renamed keeps the files in it.
    """

    def __init__(self) -> None:
        self.home = tempfile.TemporaryDirectory(prefix="ck-image-")
        atexit.register(self.home.cleanup)
        made = subprocess.run(
            [binary(), "image", "build"], check=True, capture_output=True, text=True, timeout=300
        )
        self.digest = made.stdout.strip()
        of_digest = self.digest.removeprefix("sha256:")
        [image] = Path(image_directory()).glob(f"environment-*-{of_digest}")
        self.path = Path(self.home.name) / image.name
        self.path.mkdir(mode=0o700)
        for name in ("image.erofs", "tree", "manifest", "record.json", "use"):
            if (image / name).exists():
                subprocess.run(["cp", "-a", image / name, self.path / name], check=True)
        (self.path / "root").mkdir(mode=0o700)
        self.fingerprints = [recipe["fingerprint"] for recipe in recipes_of(self.record())]

    def record(self) -> dict:
        return json.loads((self.path / "record.json").read_text(encoding="utf-8"))

    def move_to(self, folder: Path, *, stale: bool) -> None:
        """Within one file system: both are temporary folders. A stale one says that it is of another day."""
        record = self.record()
        for recipe, fingerprint in zip(recipes_of(record), self.fingerprints, strict=True):
            recipe["fingerprint"] = "0" * 64 if stale else fingerprint
        another = Path(self.home.name) / "record.json"
        another.write_text(json.dumps(record), encoding="utf-8")
        another.rename(self.path / "record.json")
        target = folder / self.path.name
        if target != self.path:  # else a server may use it as the stale one
            self.path.rename(target)
            self.path = target


def recipes_of(record: dict) -> list[dict]:
    """One of them is of this clone; the others are of clones with the same environment."""
    return [record, *record.get("other_recipes", [])]


image_copy = functools.cache(ImageCopy)


class HeldStore:
    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.has_image = False
        self.lock = os.open(folder / "build-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    @property
    def environment(self) -> dict[str, str]:
        return {"CELLKEEP_IMAGE_DIR": str(self.path)}

    def add_image(self, *, stale: bool = False) -> str:
        """Puts the image of today's environment there, or one that says it is of another day."""
        image_copy().move_to(self.path, stale=stale)
        self.has_image = True
        return image_copy().digest

    def let_go(self) -> None:
        os.close(self.lock)
        self.lock = -1

    def builders(self) -> list[psutil.Process]:
        """The processes that make, or wait to make, an image in this store."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            if "image" not in (process.info["cmdline"] or [])[1:2]:
                continue
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get("CELLKEEP_IMAGE_DIR") == str(self.path):
                    found.append(process)
        return found

    def close(self) -> None:
        if self.lock >= 0:
            for process in self.builders():
                process.kill()
            self.let_go()
        wait_until(lambda: not self.builders(), BUILD_SECONDS_MAX, "every build has ended")
        if self.has_image:
            image_copy().move_to(Path(image_copy().home.name), stale=False)


@contextlib.contextmanager
def held_store() -> Iterator[HeldStore]:
    with tempfile.TemporaryDirectory(prefix="ck-images-") as name:
        store = HeldStore(Path(name))
        try:
            yield store
        finally:
            store.close()
