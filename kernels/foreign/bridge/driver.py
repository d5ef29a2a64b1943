# SPDX-License-Identifier: Apache-2.0
"""driver.py PACKAGES KERNELSPEC PROGRAM: any Jupyter kernel as a language of a session.

KERNELSPEC is the directory of its kernel.json, PROGRAM what stands for argv[0] of it. Started by
cellkeep-kernel-driver, whose lines it turns into the kernel's messages and back.
"""

import glob
import os
import sys

# Started with -I, so that nothing in the working directory is taken for a module.
_packages = glob.glob(sys.argv[1] + "/lib/python3*/site-packages")
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), *_packages]

from cellkeep_foreign.bridge import Bridge  # noqa: E402
from cellkeep_foreign.kernel import KernelFailed, read_spec  # noqa: E402
from cellkeep_foreign.lines import Lines  # noqa: E402

if __name__ == "__main__":
    try:
        Bridge(Lines(), read_spec(*sys.argv[2:4])).run()
    except KernelFailed as error:
        sys.exit(f"cellkeep: {error}")
