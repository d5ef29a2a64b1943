# SPDX-License-Identifier: Apache-2.0
"""Runs pytest, with a place for compiled tests: a third of a small suite's time was their compilation.

The place is not beside the sources. The private image is made of some of them, and one more file there
would change it. Programs that tests start compile nothing for later (scripts/test says so).
"""

import os
import sys
from pathlib import Path

import pytest

sys.pycache_prefix = str(Path(__file__).resolve().parents[2] / "build" / "bytecode")
sys.dont_write_bytecode = False
sys.path[0] = os.getcwd()  # as `python -m pytest` has it
sys.exit(pytest.main())
