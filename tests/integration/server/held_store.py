# SPDX-License-Identifier: Apache-2.0
"""A store of environment images in which no image can be made until the test says so.

The test holds the lock of the builds. An image that is there already comes from the usual store, so
that nothing takes minutes.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from harness import binary, image_directory, wait_until

BUILD_SECONDS_MAX = 30


def share(source: Path, target: Path) -> None:
    """A file that is only read. To copy a gigabyte takes longer than all the rest of a test."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.copy2(source, target)


class HeldStore:
    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.lock = os.open(folder / "build-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    @property
    def environment(self) -> dict[str, str]:
        return {"CELLKEEP_IMAGE_DIR": str(self.path)}

    def add_image(self, *, stale: bool = False) -> str:
        """Puts the image of today's environment there, or one that says it is of another day."""
        digest = subprocess.run(
            [binary(), "image", "build"], check=True, capture_output=True, text=True, timeout=300
        ).stdout.strip()
        of_digest = digest.removeprefix("sha256:")
        [image] = Path(image_directory()).glob(f"environment-*-{of_digest}")
        unfinished = self.path / ("of-test-" + image.name)
        unfinished.mkdir(mode=0o700)
        for name in ("image.erofs", "tree", "manifest", "record.json", "use"):
            if name == "image.erofs" and (image / name).exists():
                share(image / name, unfinished / name)
            elif (image / name).is_dir():
                subprocess.run(["cp", "-a", image / name, unfinished / name], check=True)
            elif (image / name).exists():
                shutil.copy2(image / name, unfinished / name)
        (unfinished / "root").mkdir(mode=0o700)
        if stale:
            record = json.loads((unfinished / "record.json").read_text(encoding="utf-8"))
            # One of them is of this clone; the others are of clones with the same environment.
            for recipe in (record, *record.get("other_recipes", [])):
                recipe["fingerprint"] = "0" * 64
            (unfinished / "record.json").write_text(json.dumps(record), encoding="utf-8")
        target = self.path / image.name
        if target.exists():  # the stale one, which a server may use: only the record is another
            os.replace(unfinished / "record.json", target / "record.json")
            shutil.rmtree(unfinished)
        else:
            unfinished.rename(target)
        return digest

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


@contextlib.contextmanager
def held_store() -> Iterator[HeldStore]:
    with tempfile.TemporaryDirectory(prefix="ck-images-") as name:
        store = HeldStore(Path(name))
        try:
            yield store
        finally:
            store.close()
