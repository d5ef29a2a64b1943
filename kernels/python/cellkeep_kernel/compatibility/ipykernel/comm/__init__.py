# SPDX-License-Identifier: Apache-2.0
from .comm import BaseComm, Comm
from .manager import CommManager

__all__ = ["BaseComm", "Comm", "CommManager"]
