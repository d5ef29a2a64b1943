# SPDX-License-Identifier: Apache-2.0
"""Packages that a session installs for itself: a virtual environment of its own in the workspace.

It sees the packages of the session's environment, which keep their versions: the kernel runs on some
of them, and zygotes have imported others. The kernel makes it when it starts. The server runs this
file as a program, which installs what a client has asked for. Only the standard library is used.
"""

import json
import os
import re
import subprocess
import sys

VARIABLE = "CELLKEEP_PACKAGES"
# The end of what the installer says; kInstallTextBytesMax of the server has room for what is no UTF-8.
TEXT_BYTES_MAX = 16 * 1024
# pip's own patience with an index, for one answer; how often it asks again.
ANSWER_SECONDS = 15
RETRIES = 1
_METADATA = ".dist-info"
# The environment's own are for the path where it was made.
_PIP = "#!{root}/bin/python\nimport runpy\n\nrunpy.run_module('pip', run_name='__main__', alter_sys=True)\n"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def offer(variables):
    """In the kernel: it finds what is installed there, from here on."""
    root = variables.get(VARIABLE)
    if not root:
        return
    try:
        prepare(root)
    except OSError:
        pass  # The workspace is full, or something else is there: nothing can be installed, then.
    # Last: what the kernel itself imports comes from its own environment, whatever is in there.
    if packages_of(root) not in sys.path:
        sys.path.append(packages_of(root))


def packages_of(root):
    return f"{root}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def prepare(root):
    """Makes the virtual environment, or what is missing of it."""
    own = packages_of(root)
    os.makedirs(own, exist_ok=True)
    os.makedirs(f"{root}/bin", exist_ok=True)
    program = os.path.realpath(sys.executable)
    for name in ("python", "python3"):
        if not os.path.lexists(f"{root}/bin/{name}"):
            os.symlink(program, f"{root}/bin/{name}")
    _write(f"{root}/pyvenv.cfg", f"home = {os.path.dirname(program)}\ninclude-system-site-packages = false\n")
    for name in ("pip", "pip3"):
        _write(f"{root}/bin/{name}", _PIP.format(root=root), 0o755)
    folders = environment_folders(own)
    _write(f"{own}/_cellkeep_environment.pth", "".join(f"{folder}\n" for folder in folders))
    kept = {}
    for folder in folders:
        kept = {**distributions(folder), **kept}
    pins = "".join(f"{name}=={version}\n" for name, version in sorted(kept.items()))
    _write(f"{root}/constraints.txt", pins)


def environment_folders(own):
    return [folder for folder in sys.path if os.path.basename(folder) == "site-packages" and folder != own]


def _write(path, text, mode=0o644):
    """Writes the file only if its text differs: a checkpoint keeps each file that changed. Does not wait if
    the session's code has put a FIFO into its place."""
    wanted = text.encode()
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if os.read(file, len(wanted) + 1) == wanted:
                return
        finally:
            os.close(file)
    except OSError:
        pass
    try:
        os.unlink(f"{path}.new")
    except FileNotFoundError:
        pass
    file = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(file, "wb") as new:
        new.write(wanted)
    os.replace(f"{path}.new", path)


def normalised(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(folder):
    """Versions by normalised name, as the names of the metadata's folders tell them."""
    found = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for entry in names:
        if entry.endswith(_METADATA):
            name, _, version = entry.removesuffix(_METADATA).rpartition("-")
            if name and version:
                found[normalised(name)] = version
    return found


def pip_command(order):
    root = order["root"]
    command = [f"{root}/bin/python", "-I", "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--no-input", "--no-cache-dir", "--no-color", "--progress-bar", "off"]
    command += ["--retries", str(RETRIES), "--timeout", str(ANSWER_SECONDS)]
    command += ["--index-url", order["index"], "--constraint", f"{root}/constraints.txt"]
    if order["trusted_host"]:
        command += ["--trusted-host", order["trusted_host"]]
    if not order["allow_source"]:
        command += ["--only-binary", ":all:"]
    return [*command, "--", *order["packages"]]


def pip_variables(variables):
    """The order says all of it, so no file and no variable of the session's does. But its certificates
    are the proxy's."""
    kept = {name: value for name, value in variables.items() if not name.startswith("PIP_")}
    if "PIP_CERT" in variables:
        kept["PIP_CERT"] = variables["PIP_CERT"]
    return {**kept, "PIP_CONFIG_FILE": os.devnull}


def run_bounded(command, variables):
    """The exit code, the end of what was said, and whether there was more."""
    tail, cut = b"", False
    with subprocess.Popen(
        command,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        while data := os.read(process.stdout.fileno(), 65536):
            tail += data
            if len(tail) > TEXT_BYTES_MAX:
                tail, cut = tail[-TEXT_BYTES_MAX:], True
    return process.returncode, tail.decode("utf-8", "replace"), cut


def index_trouble(order):
    """Why the index does not answer, if that is so: pip says only that it has found nothing."""
    # Here, because the kernel needs none of them.
    import http.client
    import urllib.error
    import urllib.request

    name = normalised(_NAME.match(order["packages"][0])[0])
    try:
        urllib.request.urlopen(f"{order['index'].rstrip('/')}/{name}/", timeout=ANSWER_SECONDS).close()
    except urllib.error.HTTPError as error:
        denied = error.headers.get("X-Cellkeep-Deny", "")
        return "" if error.code == 404 else f"The index answers {error.code} {denied}\n"
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"The index does not answer: {error}\n"
    return ""


def install(order):
    """The report that the server reads (kernel-manager/session/packages/package_installer.hpp)."""
    root = order["root"]
    prepare(root)
    own = packages_of(root)
    before = distributions(own)
    status, text, cut = run_bounded(pip_command(order), pip_variables(os.environ))
    if status != 0:
        text += index_trouble(order)
    after = distributions(own)
    installed = []
    for name, version in sorted(after.items()):
        if before.get(name) != version:
            replaced = {"replaced": before[name]} if name in before else {}
            installed.append({"name": name, "version": version, **replaced})
    there = dict(after)
    for folder in environment_folders(own):
        there = {**distributions(folder), **there}
    asked = {normalised(_NAME.match(package)[0]) for package in order["packages"]}
    present = [
        {"name": name, "version": there[name]}
        for name in sorted(asked - {one["name"] for one in installed})
        if name in there
    ]
    return {
        "succeeded": status == 0 and asked <= there.keys(),
        "installed": installed,
        "present": present,
        "text": _CONTROL.sub("", text),
        "text_cut": cut,
    }


def main():
    try:
        report = install(json.load(sys.stdin))
    except OSError as error:  # The workspace is full, or something else is in the place.
        report = {"succeeded": False, "installed": [], "present": [], "text": f"{error}\n", "text_cut": False}
    sys.stdout.buffer.write(json.dumps(report, ensure_ascii=False).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
