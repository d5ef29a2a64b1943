# SPDX-License-Identifier: Apache-2.0
"""`cellkeep kernelspec install`, `list` and `remove`, as Jupyter sees them."""

import json
import os
from pathlib import Path

from harness import binary
from jupyter_home import KERNEL, JupyterHome


def specs(home: JupyterHome) -> dict:
    done = home.jupyter("kernelspec", "list", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["kernelspecs"]


def test_jupyter_sees_the_installed_kernelspec(home: JupyterHome) -> None:
    found = specs(home)[KERNEL]
    assert found["resource_dir"] == str(home.path / "data" / "kernels" / KERNEL)
    spec = found["spec"]
    assert spec["argv"] == [binary(), "kernel", "-f", "{connection_file}"]
    assert Path(spec["argv"][0]).is_absolute()
    assert spec["display_name"] == "Python 3 (Cellkeep)"
    assert spec["language"] == "python"
    assert spec["interrupt_mode"] == "message"
    assert spec["kernel_protocol_version"] == "5.5"
    assert isinstance(spec["metadata"]["debugger"], bool)
    files = {path.name for path in Path(found["resource_dir"]).iterdir()}
    assert files == {"kernel.json", "logo-32x32.png", "logo-64x64.png", "logo-svg.svg"}
    assert (Path(found["resource_dir"]) / "logo-64x64.png").read_bytes().startswith(b"\x89PNG")


def test_installing_again_replaces_it_and_leaves_nothing_else(home: JupyterHome) -> None:
    done = home.cellkeep(
        *("kernelspec", "install", "--name", "again", "--display-name", "One"),
        *("--memory-mb", "4096", "--share-cwd", "ro", "--cpu-cores", "1.5"),
    )
    assert done.returncode == 0, done.stderr
    assert specs(home)["again"]["spec"]["argv"][4:] == [
        *("--cpu-cores", "1.5", "--memory-mb", "4096", "--share-cwd", "ro"),
    ]
    done = home.cellkeep("kernelspec", "install", "--name", "again", "--no-check")
    assert done.returncode == 0, done.stderr
    spec = specs(home)["again"]["spec"]
    assert spec["display_name"] == "Python 3 (Cellkeep)" and len(spec["argv"]) == 4
    assert spec["metadata"]["debugger"] is False  # the install did not start the kernel to ask
    assert sorted(os.listdir(home.path / "data" / "kernels")) == sorted(["again", KERNEL])
    done = home.cellkeep("kernelspec", "remove", "--name", "again")
    assert done.returncode == 0, done.stderr
    assert "again" not in specs(home)


def test_a_kernelspec_of_another_program_is_kept(home: JupyterHome) -> None:
    theirs = home.path / "data" / "kernels" / "theirs"
    theirs.mkdir()
    text = json.dumps({"argv": ["x"], "display_name": "T", "language": "python"})
    (theirs / "kernel.json").write_text(text, encoding="utf-8")
    for verb in ("install", "remove"):
        done = home.cellkeep("kernelspec", verb, "--name", "theirs")
        assert done.returncode == 1
        assert "not a kernelspec of Cellkeep" in done.stderr and "--force" in done.stderr
        assert (theirs / "kernel.json").read_text(encoding="utf-8") == text
    assert home.cellkeep("kernelspec", "install", "--name", "theirs", "--force").returncode == 0
    assert specs(home)["theirs"]["spec"]["argv"][0] == binary()
    assert home.cellkeep("kernelspec", "remove", "--name", "theirs").returncode == 0
    assert not theirs.exists()


def test_a_prefix_is_where_a_virtual_environment_has_them(home: JupyterHome) -> None:
    prefix = home.path / "venv"
    done = home.cellkeep("kernelspec", "install", "--sys-prefix", prefix, "--name", "in-venv")
    assert done.returncode == 0, done.stderr
    assert (prefix / "share/jupyter/kernels/in-venv/kernel.json").is_file()
    listed = home.cellkeep("kernelspec", "list").stdout
    assert KERNEL in listed and "in-venv" not in listed
    home.environment["JUPYTER_PATH"] = str(prefix / "share/jupyter")
    try:
        assert "in-venv" in specs(home)
        assert "in-venv" in home.cellkeep("kernelspec", "list").stdout
    finally:
        del home.environment["JUPYTER_PATH"]
    gone = home.cellkeep("kernelspec", "remove", "--prefix", prefix, "--name", "in-venv")
    assert gone.returncode == 0, gone.stderr


def test_what_cannot_be_is_refused_in_a_sentence(home: JupyterHome) -> None:
    for arguments, said in (
        (("install", "--name", "../up"), "no name of a kernelspec"),
        (("install", "--name", ".hidden"), "no name of a kernelspec"),
        (("install", "--language", "cobol"), "not offered"),
        (("install", "--memory-mb", "1"), "nothing was installed"),
        (("install", "--prefix", "/proc/none"), "mkdir"),
        (("remove", "--name", "nobody"), "there is no kernelspec"),
    ):
        done = home.cellkeep("kernelspec", *arguments)
        assert done.returncode == 1, arguments
        assert said in done.stderr and done.stdout == "", done.stderr
    assert home.cellkeep("kernelspec", "install", "--share-cwd", "rw").returncode == 2
    assert home.cellkeep("kernelspec").returncode == 2
    assert os.listdir(home.path / "data" / "kernels") == [KERNEL]
