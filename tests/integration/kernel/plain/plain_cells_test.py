# SPDX-License-Identifier: Apache-2.0
"""Cells run both ways: by cellkeep_kernel.fast_path, and by IPython alone. Every message must be the same."""

import itertools
import re
import unittest

from corpus import SESSIONS
from link_client import Kernel, program_and_paths

# The second kernel's first cell: from then on everything goes IPython's way.
_ALL_SPECIAL = "get_ipython().kernel.fast_path.takes = lambda code: False"
# The first kernel's: it counts the cells that do not.
_COUNT = """class Counting:
    def __init__(self, plain): self.plain, self.taken = plain, 0
    def __getattr__(self, name): return getattr(self.plain, name)
    def takes(self, code):
        taken = self.plain.takes(code)
        self.taken += taken
        return taken
get_ipython().kernel.fast_path = Counting(get_ipython().kernel.fast_path)"""
_ADDRESS = re.compile(r"(?:0x| at )[0-9a-f]{6,}")
_SECONDS = re.compile(r"[\d.]+ (?:ns|µs|us|ms|s)\b")


def normal(value, directory):
    """Without what no two kernels have in common."""
    if isinstance(value, dict):
        return {key: normal(item, directory) for key, item in value.items()}
    if isinstance(value, list):
        return [normal(item, directory) for item in value]
    if not isinstance(value, str):
        return value
    value = re.sub(re.escape(directory) + r"/cellkeep_\d+", "CELLS", value)
    value = value.replace(directory, "HOME")
    return _SECONDS.sub("TIME", _ADDRESS.sub("ADDRESS", value))


def joined(messages):
    """Text of a stream in one piece, however it was cut: that is a matter of time."""
    whole = []
    for channel, kind, content, metadata in messages:
        if kind == "stream" and whole and whole[-1][1] == "stream":
            last = whole[-1][2]
            if last["name"] == content["name"]:
                last["text"] += content["text"]
                continue
        whole.append((channel, kind, content, metadata))
    return whole


def first_difference(mine, other):
    for one, two in itertools.zip_longest(mine, other):
        if one != two:
            return f"plain:   {one}", f"IPython: {two}"
    return ()


class BothWays(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.kernels = []
        for _ in range(2):
            self.kernels.append(Kernel(*program_and_paths()))
            self.addCleanup(self.kernels[-1].close)

    def run_both(self, cell):
        code, changes = cell if isinstance(cell, tuple) else (cell, {})
        return [
            [normal(list(message), kernel.directory) for message in joined(kernel.execute(code, **changes))]
            for kernel in self.kernels
        ]

    def check(self, name, plain_min):
        ours, theirs = self.kernels
        for kernel, code in ((ours, _COUNT), (theirs, _ALL_SPECIAL)):
            self.assertEqual(kernel.execute(code, store_history=False)[-2][2]["status"], "ok")
        different = []
        for number, cell in enumerate(SESSIONS[name]):
            mine, other = self.run_both(cell)
            if mine != other:
                different.append((number, cell))
                print(f"--- {name} {number}: {cell!r}", *first_difference(mine, other), sep="\n    ")
        self.assertEqual(different, [])
        taken = ours.execute("", user_expressions={"n": "get_ipython().kernel.fast_path.taken"})
        count = int(taken[-2][2]["user_expressions"]["n"]["data"]["text/plain"])
        self.assertGreaterEqual(count, plain_min)

    # The numbers say that the cells of a list were run as plain ones at all.

    def test_values(self):
        self.check("values", 90)

    def test_names_and_history(self):
        self.check("names", 50)

    def test_errors(self):
        self.check("errors", 100)

    def test_python_and_magics(self):
        self.check("python", 100)

    def test_asynchronous_cells(self):
        self.check("async", 50)

    def test_what_users_register(self):
        self.check("hooks", 40)


if __name__ == "__main__":
    unittest.main()
