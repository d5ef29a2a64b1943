# SPDX-License-Identifier: Apache-2.0
"""Packages that the code of a session can import although the environment does not have them: ``cellkeep``,
and the names of ipykernel that notebooks import, over what is here instead of it.

A real ipykernel in the environment would not find its own kernel in this process, and what it gives
to notebooks (comms above all) would send nothing. So its name means this folder, for the code of
sessions; programs that they start import whatever is installed.
"""

import importlib.util
import os
import sys


class _Finder:
    """Finds the packages by their names; their modules are found in their folders as any package's."""

    def find_spec(self, name, _path=None, _target=None):
        if name not in ("cellkeep", "ipykernel"):
            return None
        folder = os.path.join(os.path.dirname(__file__), name)
        return importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )


def install():
    sys.meta_path.insert(0, _Finder())
