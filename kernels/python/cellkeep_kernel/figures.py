# SPDX-License-Identifier: Apache-2.0
"""matplotlib without any set-up by the user: inline figures, and a font cache that is ready.

Nothing is imported at start. matplotlib wants a configuration directory that it can write to; in a
session that is a fresh one under the temporary directory, made when matplotlib is first imported and
filled from the environment's share/cellkeep/matplotlib, so that no font is scanned.
"""

import atexit
import os
import shutil
import sys


def _make_directory(cache, directory):
    """A configuration directory with the environment's font cache, for this process and others that
    the session's code starts."""
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    try:
        for name in os.listdir(cache):
            _copy(os.path.join(cache, name), os.path.join(directory, name))
    except OSError:
        pass  # Without the cache matplotlib scans the fonts once; slower, still right.
    os.environ["MPLCONFIGDIR"] = directory


def _copy(source, target):
    """For every start: a fraction of what shutil.copy() does."""
    with open(source, "rb", buffering=0) as read, open(target, "wb", buffering=0) as written:
        written.write(read.read())


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
        import tempfile

        _make_directory(self._cache, tempfile.mkdtemp(prefix="matplotlib-"))


def prepare(environment):
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    if "MPLCONFIGDIR" in os.environ:
        return
    cache = os.path.join(environment, "share", "cellkeep", "matplotlib")
    if "matplotlib" in sys.modules:
        # A zygote has imported it, and it keeps the directory that it saw there.
        directory = sys.modules["matplotlib"].get_configdir()
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
        except OSError:
            return  # A restart finds what the session's own code has put there or used up.
        _make_directory(cache, directory)
    else:
        sys.meta_path.insert(0, _PrepareOnImport(cache))


def forget():
    """Takes prepare() back for a matplotlib that was not imported: each fork prepares for itself."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _PrepareOnImport)]
