# SPDX-License-Identifier: Apache-2.0
"""matplotlib without any set-up by the user: inline figures, and a font cache that is ready.

Nothing is imported at start. matplotlib wants a configuration directory that it can write to; in a
session that is a fresh one under the temporary directory, made when matplotlib is first imported and
filled from the environment's share/cellkeep/matplotlib, so that no font is scanned.
"""

import os
import sys


class _PrepareOnImport:
    """A finder that finds nothing; it notices the import of matplotlib."""

    def __init__(self, cache):
        self._cache = cache

    def find_spec(self, name, _path=None, _target=None):
        if name == "matplotlib":
            sys.meta_path.remove(self)
            self._prepare()
        return None

    def _prepare(self):
        import atexit
        import shutil
        import tempfile

        directory = tempfile.mkdtemp(prefix="matplotlib-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        try:
            for name in os.listdir(self._cache):
                shutil.copy(os.path.join(self._cache, name), directory)
        except OSError:
            pass  # Without the cache matplotlib scans the fonts once; slower, still right.
        os.environ["MPLCONFIGDIR"] = directory


def prepare(environment):
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    if "MPLCONFIGDIR" not in os.environ:
        cache = os.path.join(environment, "share", "cellkeep", "matplotlib")
        sys.meta_path.insert(0, _PrepareOnImport(cache))
