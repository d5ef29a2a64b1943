# SPDX-License-Identifier: Apache-2.0
"""The image as a container, by runc and as compose.yaml says: what it is made of, the first result, which controls of
the sandbox hold there, and what is left.
"""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from container import Bundle, Container, make_volumes, read_yaml
from image_layout import read_layout
from tree import ROOT

import image

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make containers here")

MANIFESTS = ROOT / "build/environments/manifests/bin"
STATE = "/var/lib/cellkeep/state"
ANALYSIS = "import pandas as pd\nprint(pd.DataFrame({'price': [3, 5]}).price.sum())\n"
HELLOS = {"hello.sh": "echo 3", "hello.js": "1 + 2", "hello.sql": "SELECT 3 AS three"}
# What the table in docs/installation-and-operations.md says that a container gives up.
OF_CGROUPS = {"memory_limit", "process_limit", "cpu_limit", "cpu_accounting", "freeze"}
OF_PROC = {"nested_user_namespaces", "proc"}
# What Docker's own filter refuses a container without CAP_SYS_ADMIN, besides clone(2) with flags of namespaces.
OF_NAMESPACES = {
    "fsconfig",
    "fsmount",
    "fsopen",
    "keyctl",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "pivot_root",
    "sethostname",
    "setns",
    "umount2",
    "unshare",
}
NAMESPACE_FLAGS = 0x7E020000  # every CLONE_NEW* that clone(2) takes
Start = Callable[[str, dict], Container]


def service() -> dict:
    (composed,) = read_yaml(image.CONTAINER / "compose.yaml")
    return composed["services"]["cellkeep"]


def waived(command: list[str]) -> set[str]:
    option = "--allow-degraded="
    return {word.removeprefix(option) for word in command if word.startswith(option)}


def profile() -> dict:
    return json.loads((image.CONTAINER / "seccomp.json").read_text(encoding="utf-8"))


def without(seccomp: dict, calls: set[str]) -> dict:
    for rule in seccomp["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in calls]
    return {**seccomp, "syscalls": [rule for rule in seccomp["syscalls"] if rule["names"]]}


@pytest.fixture(scope="module")
def bundle(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    (made,) = packages.glob("cellkeep-*-image-amd64.tar")
    folder = tmp_path_factory.mktemp("bundle")
    unpacked = Bundle(made, folder)
    for name, code in {"analysis.py": ANALYSIS, **HELLOS}.items():
        (unpacked.volumes["/var/lib/cellkeep"] / name).write_text(code, encoding="utf-8")
    yield unpacked
    shutil.rmtree(folder)


@pytest.fixture
def start(bundle: Bundle) -> Iterator[Start]:
    """Begins a container of this name; it is removed after the test."""
    started: list[Container] = []

    def begin(name: str, config: dict) -> Container:
        started.append(Container(bundle, f"cellkeep-test-{os.getpid()}-{name}", config))
        return started[-1]

    yield begin
    for container in started:
        container.remove()


def absent(container: Container) -> set[str]:
    told = container.attempt("/usr/bin/cellkeep", "doctor", "--json")
    controls = json.loads(told.stdout)["controls"]
    return {control["name"] for control in controls if control["state"] != "applied"}


def test_the_image_holds_what_it_says(packages: Path) -> None:
    (made,) = packages.glob("cellkeep-*-image-amd64.tar")
    layout = read_layout(made)
    assert len(layout.manifest["layers"]) == 2
    (listed,) = packages.glob("cellkeep-*-image.cdx.json")
    names = {part["name"] for part in json.loads(listed.read_text("utf-8"))["components"]}
    assert {"libzmq5", "python3.11-minimal", "nodejs", "pandas"} <= names


def test_nothing_of_the_machine_is_in_the_image(bundle: Bundle) -> None:
    system = bundle.path / "rootfs"
    for name in ("etc/apt", "etc/hostname", "var/lib/apt", "usr/bin/apt-get", "etc/machine-id"):
        path = system / name
        assert not path.exists() or path.stat().st_size == 0, name
    assert not list((system / "var/log").iterdir())
    assert (system / "lib").is_symlink()


def test_compose_and_kubernetes_files_fit_their_schemas() -> None:
    folder = image.CONTAINER
    check = [MANIFESTS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    subprocess.run([*check, folder / "compose.yaml"], check=True)
    kubernetes = [MANIFESTS / "kubernetes-validate", "--strict"]
    subprocess.run([*kubernetes, folder / "kubernetes.yaml"], check=True)


@pytest.mark.parametrize("name", ["compose.yaml", "kubernetes.yaml"])
def test_a_misspelt_key_does_not_fit(name: str, tmp_path: Path) -> None:
    text = (image.CONTAINER / name).read_text(encoding="utf-8")
    misspelt = tmp_path / name
    misspelt.write_text(text.replace("ports:", "prots:"), encoding="utf-8")
    check = [MANIFESTS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    if name == "kubernetes.yaml":
        check = [MANIFESTS / "kubernetes-validate", "--strict"]
    assert subprocess.run([*check, misspelt], stdout=subprocess.DEVNULL).returncode != 0


def test_both_files_run_the_same_server() -> None:
    documents = {document["kind"]: document for document in read_yaml(image.CONTAINER / "kubernetes.yaml")}
    pod = documents["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == service()["command"]
    assert pod["securityContext"]["runAsUser"] == image.USER_NUMBER
    assert pod["hostUsers"] is False and container["securityContext"]["procMount"] == "Unmasked"
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    composed = {volume.partition(":")[2] for volume in service()["volumes"]}
    assert mounted == composed | set(service()["tmpfs"])
    probes = [container[kind]["httpGet"]["path"] for kind in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert set(probes) == {"/healthz"}


def result(container: Container, name: str) -> str:
    return container.run("cellkeep", "run", "--server", STATE, f"/var/lib/cellkeep/{name}")


def test_from_the_image_to_a_result_and_nothing_is_left(start: Start, bundle: Bundle) -> None:
    container = start("first", bundle.as_composed(service(), profile()))
    assert container.is_ready, container.logged()
    assert "8" in result(container, "analysis.py")
    for name in HELLOS:
        assert "3" in result(container, name)
    container.run(*service()["healthcheck"]["test"][1:])
    # The report is what the files accept, and so what the table of the documents says.
    assert absent(container) == waived(service()["command"]) == OF_CGROUPS
    assert container.stop() == 0
    assert '"stopped"' in container.logged()
    container.remove()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{container.name}"))
    assert not list(bundle.state.iterdir())


def test_what_kubernetes_makes_of_its_file_takes_nothing_away(
    start: Start, bundle: Bundle, tmp_path: Path
) -> None:
    """A user namespace of its own, and volumes of root's that belong to the pod's group."""
    volumes = make_volumes(tmp_path, 0, 0o2777)
    config = bundle.as_composed(service(), profile(), volumes)
    config["linux"]["namespaces"].append({"type": "user"})
    # The same numbers as outside, so that the files need no other owners.
    for kind in ("uidMappings", "gidMappings"):
        config["linux"][kind] = [{"containerID": 0, "hostID": 0, "size": 65536}]
    container = start("mapped", config)
    assert container.is_ready, container.logged()
    assert absent(container) == OF_CGROUPS
    (volumes["/var/lib/cellkeep"] / "hello.sh").write_text(HELLOS["hello.sh"], encoding="utf-8")
    assert "3" in result(container, "hello.sh")
    container.remove()
    shutil.rmtree(tmp_path)


def test_without_keyctl_one_control_more_is_missing(start: Start, bundle: Bundle) -> None:
    container = start("keyless", bundle.as_composed(service(), without(profile(), {"keyctl"})))
    assert container.is_ready, container.logged()
    assert absent(container) == OF_CGROUPS | {"session_keyring"}


def test_under_a_masked_proc_two_controls_more_are_missing(start: Start, bundle: Bundle) -> None:
    masked = service()
    masked["security_opt"].remove("systempaths=unconfined")
    container = start("masked", bundle.as_composed(masked, profile()))
    assert container.is_ready, container.logged()
    assert absent(container) == OF_CGROUPS | OF_PROC
    refused = container.attempt("cellkeep", "run", "--server", STATE, "/var/lib/cellkeep/hello.sh")
    assert refused.returncode != 0 and "--allow-degraded=proc" in refused.stderr
    assert container.stop() == 0
    masked["command"] += [f"--allow-degraded={name}" for name in sorted(OF_PROC)]
    container = start("accepted", bundle.as_composed(masked, profile()))
    assert container.is_ready, container.logged()
    assert "8" in result(container, "analysis.py")


def test_under_docker_s_own_filter_there_is_no_session(start: Start, bundle: Bundle) -> None:
    strict = without(profile(), {*OF_NAMESPACES, "clone", "clone3"})
    allow = {"action": "SCMP_ACT_ALLOW", "names": ["clone"]}
    no_namespace = {"index": 0, "value": NAMESPACE_FLAGS, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    strict["syscalls"].append({**allow, "args": [no_namespace]})
    strict["syscalls"].append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS})
    container = start("strict", bundle.as_composed(service(), strict))
    assert container.is_ready, container.logged()
    assert absent(container) >= {"user_namespace", "root_filesystem", "seccomp"}
    refused = container.attempt("cellkeep", "run", "--server", STATE, "/var/lib/cellkeep/hello.sh")
    assert refused.returncode != 0 and "control user_namespace" in refused.stderr


@pytest.mark.parametrize("token", [None, ""])
def test_without_a_token_no_container_serves(token: str | None, start: Start, bundle: Bundle) -> None:
    config = bundle.as_composed(service(), profile())
    name = "CELLKEEP_TOKEN="
    config["process"]["env"] = [line for line in config["process"]["env"] if not line.startswith(name)]
    if token is not None:
        config["process"]["env"].append(name + token)
    container = start("tokenless", config)
    assert not container.is_ready
    assert "token" in container.logged()
