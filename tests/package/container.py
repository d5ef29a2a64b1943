# SPDX-License-Identifier: Apache-2.0
"""Containers of the image. runc runs them as Docker would by compose.yaml. umoci unpacks the image, so that a program
which others wrote has read its layout.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from tree import ROOT, fetch_program

from image import CACHE, STATE, USER_NUMBER

# What Docker covers in /proc and /sys unless systempaths=unconfined.
MASKED = (
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/scsi",
    "/proc/timer_list",
    "/sys/firmware",
)
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
READY_FD = 3  # the first descriptor that runc passes to the container's process


def read_yaml(path: Path) -> list[dict]:
    """All documents of a file. The tests' own Python has no PyYAML, so that of the manifests reads them."""
    script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"
    python = ROOT / "build/environments/manifests/bin/python"
    with path.open("rb") as file:
        done = subprocess.run([python, "-c", script], stdin=file, capture_output=True, check=True)
    return json.loads(done.stdout)


def make_volumes(folder: Path, owner: int, mode: int) -> dict[str, Path]:
    """Empty ones of the container's group, by the places that they have inside."""
    volumes = {}
    for place in (STATE, CACHE):
        volume = folder / place
        volume.mkdir(parents=True)
        os.chown(volume, owner, USER_NUMBER)
        volume.chmod(mode)
        volumes[f"/{place}"] = volume
    return volumes


class Bundle:
    """The image's file system, the volumes, and the configuration that a container of it begins with."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.runc = fetch_program("runc", folder)
        umoci = fetch_program("umoci", folder)
        layout = folder / "layout"
        layout.mkdir()
        subprocess.run(["tar", "-C", layout, "-xf", image], check=True)
        entry = json.loads((layout / "index.json").read_text("utf-8"))["manifests"][0]
        tag = entry["annotations"]["org.opencontainers.image.ref.name"]
        self.path = folder / "bundle"
        subprocess.run([umoci, "unpack", "--image", f"{layout}:{tag}", self.path], check=True)
        shutil.rmtree(layout)
        self.config = json.loads((self.path / "config.json").read_text("utf-8"))
        self.state = folder / "containers"
        # As Docker makes them: like the folders of the image.
        self.volumes = make_volumes(folder / "docker", USER_NUMBER, 0o700)

    def as_composed(
        self, service: dict, seccomp: dict, volumes: dict[str, Path] | None = None
    ) -> dict:
        """The runtime's configuration for compose.yaml's service, as Docker makes it."""
        config = json.loads(json.dumps(self.config))
        options = service["security_opt"]
        assert "no-new-privileges:true" in options and service["cap_drop"] == ["ALL"]
        process, linux = config["process"], config["linux"]
        process["terminal"] = False
        process["args"] = ["/usr/bin/cellkeep", *service["command"], f"--ready-fd={READY_FD}"]
        process["env"].append("CELLKEEP_TOKEN=a-token-of-the-test")
        process["noNewPrivileges"] = True
        process["capabilities"] = {}
        process["rlimits"] = []
        config["root"]["readonly"] = service["read_only"]
        is_open = "systempaths=unconfined" in options
        linux["maskedPaths"] = [] if is_open else list(MASKED)
        linux["readonlyPaths"] = [] if is_open else list(READ_ONLY)
        linux["seccomp"] = seccomp
        volumes = volumes or self.volumes
        # umoci has put memory there.
        config["mounts"] = [
            mount for mount in config["mounts"] if mount["destination"] not in volumes
        ]
        for place, volume in volumes.items():
            config["mounts"].append(
                {"destination": place, "type": "bind", "source": str(volume), "options": ["rbind", "rw"]}
            )
        for place in service["tmpfs"]:
            config["mounts"].append({"destination": place, "type": "tmpfs", "source": "tmpfs"})
        return config


class Container:
    """One that runs; it ends with stop() or remove()."""

    def __init__(self, bundle: Bundle, name: str, config: dict) -> None:
        self._runc = [bundle.runc, "--root", bundle.state]
        self.name = name
        (bundle.path / "config.json").write_text(json.dumps(config), "utf-8")
        self.log = (bundle.path / f"{name}.log").open("w+", encoding="utf-8")
        ready, told = os.pipe()
        command = [*self._runc, "run", "--bundle", bundle.path, "--preserve-fds=1", name]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" {READY_FD}>&{told}', "bash", *command],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            pass_fds=[told],
        )
        os.close(told)
        with os.fdopen(ready) as lines:
            self.is_ready = lines.readline() == "READY\n"

    def logged(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def attempt(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*self._runc, "exec", self.name, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str) -> str:
        done = self.attempt(*command)
        assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}\n{self.logged()[-4000:]}"
        return done.stdout

    def stop(self) -> int:
        """What Docker does: SIGTERM. The server's exit code."""
        subprocess.run([*self._runc, "kill", self.name, "TERM"], check=True)
        return self._process.wait()

    def remove(self) -> None:
        subprocess.run([*self._runc, "delete", "--force", self.name], stderr=subprocess.DEVNULL)
        self._process.wait()
        self.log.close()
