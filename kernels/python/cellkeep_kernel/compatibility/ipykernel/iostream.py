# SPDX-License-Identifier: Apache-2.0
from cellkeep_kernel.streams import OutStream

__all__ = ["OutStream"]
