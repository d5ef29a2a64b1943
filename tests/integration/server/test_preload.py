# SPDX-License-Identifier: Apache-2.0
"""What the operator has zygotes import: the modules that are there from the start, and those that are not."""

from modes import ModeServer
from zygotes import zygotes_of

LOADED = "[name for name in ('pandas', 'matplotlib', 'wave', 'colorsys') if name in __import__('sys').modules]"


def test_zygotes_import_what_the_operator_names(mode: str) -> None:
    with ModeServer(mode, "--preload", "wave", "--preload", "colorsys") as running:
        running.wait_until_ready()
        assert running.create().value(LOADED) == "['wave', 'colorsys']"
        # The others are there at their first use, and figures have their fonts.
        drawn = running.create().execute("import matplotlib.pyplot as plt; plt.plot([1, 2])\nNone")
        assert drawn["status"] == "ok", drawn
        assert [set(one["data"]) for one in drawn["displays"]] == [{"image/png", "text/plain"}]
        assert "font" not in drawn["stderr"], drawn["stderr"]


def test_zygotes_may_import_nothing(mode: str) -> None:
    with ModeServer(mode, "--preload", "none") as running:
        running.wait_until_ready()
        assert zygotes_of(running)
        assert running.create().value(LOADED) == "[]"
        assert running.create().value("len(__import__('pandas').DataFrame({'a': [1]}))") == "1"


def test_a_module_that_is_not_there_is_named_and_sessions_start_without_zygotes(mode: str) -> None:
    with ModeServer(mode, "--log-format", "text", "--preload", "no_such_module") as running:
        running.wait_until_ready()
        assert "No module named 'no_such_module'" in running.output()
        assert running.create().value(LOADED) == "[]"
