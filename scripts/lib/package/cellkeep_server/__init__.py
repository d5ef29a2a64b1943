# SPDX-License-Identifier: Apache-2.0
"""Cellkeep's server as a Python package: the command `cellkeep` unpacks it once and becomes it."""
