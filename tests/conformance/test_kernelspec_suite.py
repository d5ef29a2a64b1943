# SPDX-License-Identifier: Apache-2.0
"""Jupyter's kernel test suite again, its own way: it starts the kernel that a kernelspec names."""

import os
import tempfile
import unittest

import test_kernel_suite
from jupyter_client.manager import start_new_kernel

from test_cli import cellkeep


class KernelspecKernel(test_kernel_suite.PythonKernel):
    """The same questions to `cellkeep kernel`, with no server."""

    kernel_name = "cellkeep-python"

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="ck-jkt-")
        os.environ["JUPYTER_DATA_DIR"] = cls.folder.name
        installed = cellkeep("kernelspec", "install")
        assert installed.returncode == 0, installed.stderr
        cls.km, cls.kc = start_new_kernel(kernel_name=cls.kernel_name)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.kc.stop_channels()
        cls.km.shutdown_kernel()
        del os.environ["JUPYTER_DATA_DIR"]
        cls.folder.cleanup()


# The other run of it has a test file of its own.
del test_kernel_suite


def load_tests(loader: unittest.TestLoader, *_: object) -> unittest.TestSuite:
    return loader.loadTestsFromTestCase(KernelspecKernel)
