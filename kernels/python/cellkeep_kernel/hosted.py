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
    find_packages(sys.path, os.environ["CELLKEEP_PYTHONPATH"])
    load(file).run(*arguments or [""])


if __name__ == "__main__":
    main()
