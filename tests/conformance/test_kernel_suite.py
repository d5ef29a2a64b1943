# SPDX-License-Identifier: Apache-2.0
"""Jupyter's kernel test suite (jupyter_kernel_test) against a session's connection file."""

import unittest

import attached
import jupyter_kernel_test
from jupyter_client import BlockingKernelClient

from harness import LEAN, Server


class PythonKernel(attached.KernelOfSession):
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = [
        {"text": "zi", "matches": {"zip"}},
        {"text": "prin", "matches": {"print"}},
        {"text": "nothing_begins_like_this", "matches": set()},
    ]
    complete_code_samples = [
        "", "1", "print('hello, world')", "def f(x):\n  return x*2\n\n\n", "%time 1", "!ls",
    ]  # fmt: skip
    incomplete_code_samples = ["print('''hello", "def f(x):\n  x*2", "f(", "%%time", "x = \\"]
    invalid_code_samples = ["import = 7q", "x = = 1", ")"]
    code_page_something = "zip?"
    code_generate_error = "raise"
    code_execute_result = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    ]
    code_display_data = [
        {"code": "from IPython.display import HTML, display; display(HTML('<b>x</b>'))",
         "mime": "text/html"},
        {"code": "from IPython.display import Math, display; display(Math('a'))",
         "mime": "text/latex"},
        {"code": "from IPython.display import SVG, display; display(SVG('<svg></svg>'))",
         "mime": "image/svg+xml"},
        {"code": "from IPython.display import Markdown, display; display(Markdown('*x*'))",
         "mime": "text/markdown"},
        {"code": "from IPython.display import JSON, display; display(JSON({'a': 1}))",
         "mime": "application/json"},
        {"code": "import matplotlib.pyplot as plt; _ = plt.plot([1, 2])", "mime": "image/png"},
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"


class IopubWelcome(jupyter_kernel_test.IopubWelcomeTests):
    """XPUB's greeting (JEP 65), on a client that has not yet subscribed."""

    support_iopub_welcome = True

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(*LEAN, "--log-format", "text").start()
        session = cls.server.create()
        cls.kc = BlockingKernelClient(connection_file=session.info["connection_file"])
        cls.kc.load_connection_file()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.kc.stop_channels()
        cls.server.__exit__(None)


def load_tests(loader: unittest.TestLoader, *_: object) -> unittest.TestSuite:
    cases = (PythonKernel, IopubWelcome)
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)
