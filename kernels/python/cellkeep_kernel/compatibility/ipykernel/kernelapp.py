# SPDX-License-Identifier: Apache-2.0
"""The application object that notebooks ask for the kernel and the shell."""

from cellkeep_kernel.shell import KernelShell


class IPKernelApp:
    _instance = None

    @classmethod
    def initialized(cls):
        return True

    @classmethod
    def instance(cls, *_arguments, **_keys):
        if IPKernelApp._instance is None:
            IPKernelApp._instance = cls()
        return IPKernelApp._instance

    @property
    def shell(self):
        return KernelShell.instance()

    @property
    def kernel(self):
        return self.shell.kernel


__all__ = ["IPKernelApp"]
