# SPDX-License-Identifier: Apache-2.0
"""Jupyter's kernel test suite (jupyter_kernel_test), attached to a session instead of starting a
kernel itself: its own way needs a kernelspec (test_kernelspec_suite.py).
"""

import jupyter_kernel_test

from harness import LEAN, Client, Server


class KernelOfSession(jupyter_kernel_test.KernelTests):
    """The groups that a language does not name are skipped by the suite, and say so."""

    session_language = "python"

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(*LEAN, "--log-format", "text").start()
        cls.client = Client(cls.server.create(language=cls.session_language))
        cls.kc = cls.client.kernel

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.server.__exit__(None)
