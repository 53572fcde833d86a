"""XXH64, the 64-bit hash of Yann Collet's xxHash: the same number in every program and for ever.

The columnar pipeline computes it natively; this is the scalar form that everything else uses and that it is checked
against. It tells a changed text from an unchanged one and is no protection against forgery.
"""

from collections.abc import Iterator

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_PRIME_1 = 0x9E37_79B1_85EB_CA87
_PRIME_2 = 0xC2B2_AE3D_27D4_EB4F
_PRIME_3 = 0x1656_67B1_9E37_79F9
_PRIME_4 = 0x85EB_CA77_C2B2_AE63
_PRIME_5 = 0x27D4_EB2F_1656_67C5
#: Four lanes of eight bytes.
_STRIPE = 32


def xxh64(data: bytes, seed: int = 0) -> int:
    """The hash as an unsigned number of 64 bits."""
    whole = len(data) - len(data) % _STRIPE
    value = _striped(data[:whole], seed) if whole else seed + _PRIME_5
    value = (value + len(data)) & _MASK
    return _avalanche(_remaining(value, data[whole:]))


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _PRIME_2) & _MASK, 31) * _PRIME_1 & _MASK


def _words(data: bytes, size: int) -> Iterator[int]:
    for start in range(0, len(data), size):
        yield int.from_bytes(data[start : start + size], "little")


def _striped(data: bytes, seed: int) -> int:
    lanes = [seed + _PRIME_1 + _PRIME_2, seed + _PRIME_2, seed, seed - _PRIME_1]
    for place, word in enumerate(_words(data, 8)):
        lanes[place % 4] = _round(lanes[place % 4], word)
    value = sum(_rotate(lane & _MASK, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        value = ((value ^ _round(0, lane & _MASK)) * _PRIME_1 + _PRIME_4) & _MASK
    return value


def _remaining(value: int, tail: bytes) -> int:
    eights = len(tail) - len(tail) % 8
    for word in _words(tail[:eights], 8):
        value = (_rotate(value ^ _round(0, word), 27) * _PRIME_1 + _PRIME_4) & _MASK
    fours = len(tail) - len(tail) % 4
    for word in _words(tail[eights:fours], 4):
        value = (_rotate(value ^ (word * _PRIME_1 & _MASK), 23) * _PRIME_2 + _PRIME_3) & _MASK
    for byte in tail[fours:]:
        value = _rotate(value ^ (byte * _PRIME_5 & _MASK), 11) * _PRIME_1 & _MASK
    return value


def _avalanche(value: int) -> int:
    value = (value ^ (value >> 33)) * _PRIME_2 & _MASK
    value = (value ^ (value >> 29)) * _PRIME_3 & _MASK
    return value ^ (value >> 32)
