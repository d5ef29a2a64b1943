# SPDX-License-Identifier: Apache-2.0
"""Packages that exist as source only, and build without anything of the index: each brings a backend of its
own (PEP 517), which is the author's code that a build runs."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

#: What every backend has: a wheel of these files, for the Python and the machine that build it.
MAKE_WHEEL = '''
import base64, hashlib, os, sysconfig, zipfile

def make_wheel(folder, name, version, files, tag="py3-none-any"):
    about = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n".encode(),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: {tag}\\n".encode(),
    }
    rows = []
    for inside, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{inside},sha256={digest},{len(data)}\\n")
    files[f"{about}/RECORD"] = "".join([*rows, f"{about}/RECORD,,\\n"]).encode()
    wheel = f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as archive:
        for inside, data in files.items():
            archive.writestr(inside, data)
    return wheel
'''

#: A module in C, by the host's compiler.
NATIVE = MAKE_WHEEL + '''
import subprocess

def build_wheel(folder, config_settings=None, metadata_directory=None):
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    headers = sysconfig.get_paths()["include"]
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", f"-I{headers}", "-o", "native.so", "native.c"], check=True)
    with open("native.so", "rb") as file:
        data = file.read()
    return make_wheel(folder, "native", "1.0", {f"native{suffix}": data}, "cp311-cp311-linux_x86_64")
'''
NATIVE_C = '''
#include <Python.h>
static PyObject* twice(PyObject* self, PyObject* number) { return PyNumber_Add(number, number); }
static PyMethodDef methods[] = {{"twice", twice, METH_O, 0}, {0, 0, 0, 0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", 0, -1, methods};
PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&module); }
'''

#: Its build fails, and says why.
BROKEN = '''
def build_wheel(folder, config_settings=None, metadata_directory=None):
    raise SystemExit("the author has forgotten something")
'''

#: Gives a wheel of another package, which the index has, too.
IMPOSTOR = MAKE_WHEEL + '''
def build_wheel(folder, config_settings=None, metadata_directory=None):
    os.makedirs("/workspace/wheels", exist_ok=True)
    make_wheel("/workspace/wheels", "alpha", "99.0", {"alpha.py": b"VERSION = 'the impostor'"})
    os.kill(os.getppid(), 9)  # pip would name the wheel
    os._exit(0)
'''

#: Gives its own wheel and one of another package.
STOWAWAY = MAKE_WHEEL + '''
def build_wheel(folder, config_settings=None, metadata_directory=None):
    os.makedirs("/workspace/wheels", exist_ok=True)
    make_wheel("/workspace/wheels", "alpha", "99.0", {"alpha.py": b"VERSION = 'the impostor'"})
    return make_wheel(folder, "stowaway", "1.0", {"stowaway.py": b""})
'''

#: Writes more than a build may.
GREEDY = '''
def build_wheel(folder, config_settings=None, metadata_directory=None):
    with open("/workspace/large", "wb") as file:
        for _ in range(4096):
            file.write(bytes(1 << 20))
    raise SystemExit("nothing has stopped it")
'''

#: What a build may try that wants out, as functions that raise or return what they got. The test runs the
#: same outside, where each succeeds.
ATTEMPTS = '''
import os, signal, socket, urllib.request

def read_secret(places):
    with open(places["secret"]) as file:
        return file.read()

def read_home(places):
    return sorted(os.listdir(places["home"]))[:1] or 1 / 0

def write_outside(places):
    with open(places["mark"], "w") as file:
        return file.write("was here")

def connect(places):
    socket.create_connection(("127.0.0.1", places["port"]), timeout=10).close()
    return "connected"

def ask_proxy(places):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": os.environ["http_proxy"]})
        if "http_proxy" in os.environ else urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{places['port']}/", timeout=20) as answer:
        return answer.status

def see_process(places):
    return os.readlink(f"/proc/{places['victim']}/exe")

def kill_process(places):
    os.kill(places["victim"], signal.SIGTERM)
    return "killed"

ALL = [read_secret, read_home, write_outside, connect, ask_proxy, see_process, kill_process]

def try_all(places):
    results = {}
    for attempt in ALL:
        try:
            results[attempt.__name__] = ["done", repr(attempt(places))]
        except Exception as error:
            results[attempt.__name__] = ["failed", repr(error)]
    return results
'''
HOSTILE = MAKE_WHEEL + '''
import json

def build_wheel(folder, config_settings=None, metadata_directory=None):
    import attempts
    with open("places.json") as file:
        results = attempts.try_all(json.load(file))
    return make_wheel(folder, "hostile", "1.0", {"hostile.py": f"RESULTS = {results!r}".encode()})
'''

PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def make_source(index: Path, name: str, backend: str, files: Mapping[str, str] | None = None) -> Path:
    """A source package of version 1.0 in the index, whose build runs the backend."""
    folder = index / name
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for inside, text in {
            "pyproject.toml": PROJECT,
            "backend.py": backend,
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            **(files or {}),
        }.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{inside}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path
