# SPDX-License-Identifier: Apache-2.0
"""The random states that a process has in common with the one that it was forked from."""

import os
import struct
import sys

_MT19937_WORDS = 624


def _reseed_numpy(random):
    # All of the generator's state at random: to make that of a few words takes NumPy three times as long.
    words = struct.unpack(f"{_MT19937_WORDS}I", os.urandom(4 * _MT19937_WORDS))
    try:
        random.set_state(("MT19937", words, _MT19937_WORDS))
    except (TypeError, ValueError):  # The user has put another generator in its place.
        random.set_bit_generator(type(random.get_bit_generator())())


def reseed():
    """random reseeds itself (os.register_at_fork); these do not, or go by the process id."""
    if "numpy.random" in sys.modules:
        _reseed_numpy(sys.modules["numpy.random"])
    if "ssl" in sys.modules:
        # OpenSSL's other generators are seeded by the one that this seeds, at their next use.
        sys.modules["ssl"].RAND_add(os.urandom(32), 32.0)
    if "tempfile" in sys.modules:
        tempfile = sys.modules["tempfile"]
        tempfile._name_sequence = None  # its generator is made anew
        tempfile.tempdir = None  # TMPDIR is the session's
