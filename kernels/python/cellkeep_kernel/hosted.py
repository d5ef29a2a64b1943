# SPDX-License-Identifier: Apache-2.0
"""The kernel's start in a CPython that Cellkeep does not embed: Python runs this file as its program.

    python -I -B -X utf8 hosted.py MODULE [--zygote | --bare-zygote]

MODULE is the C++ half, one file for all versions. The flags make of Python what the embedding makes of
Debian's (kernels/python/embedding.cpp): nothing of the caller's variables or working directory, text is
UTF-8, and no __pycache__ in the user's workspace.
"""

import importlib.machinery
import importlib.util
import os
import sys

NAME = "_cellkeep_host"
# Of an environment: the bytecode of the kernel's own modules, as sys.pycache_prefix lays it out.
BYTECODE = "/share/cellkeep/bytecode"


class KeptBytecode(importlib.machinery.SourceFileLoader):
    """Takes what was compiled when the environment was made. That has a hash of its source: after an upgrade
    of Cellkeep it is another's, and Python compiles what is there now."""

    folder = ""

    def get_code(self, fullname):
        # Nothing is imported in here, so no other module is looked for in that folder.
        before, sys.pycache_prefix = sys.pycache_prefix, self.folder
        try:
            return super().get_code(fullname)
        finally:
            sys.pycache_prefix = before


def use_bytecode(root, folder):
    """For the modules beneath the root."""
    loader = type("KernelLoader", (KeptBytecode,), {"folder": folder})

    def find(path):
        if path != root and not path.startswith(root + "/"):
            raise ImportError("no module of the kernel")
        return importlib.machinery.FileFinder(path, (loader, importlib.machinery.SOURCE_SUFFIXES))

    sys.path_hooks.insert(0, find)


def find_packages(path, root):
    """The kernel's own come after the standard library and before the environment's packages."""
    packages = (at for at, folder in enumerate(path) if os.path.basename(folder) == "site-packages")
    path.insert(next(packages, len(path)), root)


def load(file):
    loader = importlib.machinery.ExtensionFileLoader(NAME, file)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(NAME, loader))
    sys.modules[NAME] = module
    loader.exec_module(module)
    return module


def main():
    file, *arguments = sys.argv[1:]
    root = os.environ["CELLKEEP_PYTHONPATH"]
    find_packages(sys.path, root)
    use_bytecode(root, os.environ.get("CELLKEEP_ENVIRONMENT", "") + BYTECODE)
    load(file).run(*arguments or [""])


if __name__ == "__main__":
    main()
