"""Identifiers of control rows."""

import os
import time
from uuid import UUID

_VERSION_7 = 0x7 << 76
_VARIANT = 0b10 << 62
_RANDOM_BITS = (((1 << 12) - 1) << 64) | ((1 << 62) - 1)


def uuid7() -> UUID:
    """Make an RFC 9562 version 7 UUID.

    The leading time keeps inserts at the right-hand edge of an index. Nothing may order rows by it, because the clocks
    of two machines differ.
    """
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & ((1 << 48) - 1)) << 80
    value |= int.from_bytes(os.urandom(16), "big") & _RANDOM_BITS
    return UUID(int=value | _VERSION_7 | _VARIANT)
