"""gzip is known by its first bytes, read to its trailer, and refused when it is not whole."""

import gzip
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.guards.inflate import BadGzip, TruncatedGzip, inflate, is_gzip
from harvester.kernel.errors import TransientError

CONTENT = b"".join(b"%d,title %d,%d.99\r\n" % (n, n * 7, n % 100) for n in range(20_000))
PACKED = gzip.compress(CONTENT)


def cut(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


def read(source, block_bytes=4096):
    return b"".join(inflate(source, block_bytes=block_bytes))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 16 * 1024, 10_000_000])
@pytest.mark.parametrize("data", [PACKED, CONTENT], ids=["gzip", "plain"])
def test_however_a_file_arrives_its_content_is_the_same(data, size):
    data = data[:5000] if size < 7 and data is CONTENT else data
    assert read(cut(data, size)) == (CONTENT if data is PACKED else data)


@pytest.mark.parametrize("block_bytes", [1, 100, 4096, len(CONTENT) - 1, len(CONTENT), len(CONTENT) + 1])
def test_blocks_have_the_size_that_was_asked_for(block_bytes):
    content = CONTENT if block_bytes > 1 else CONTENT[:2000]
    for source in (gzip.compress(content), content):
        blocks = list(inflate([source], block_bytes=block_bytes))
        assert [len(block) for block in blocks[:-1]] == [block_bytes] * (len(blocks) - 1)
        assert 0 < len(blocks[-1]) <= block_bytes
        assert b"".join(blocks) == content


@given(
    content=st.binary(max_size=5000),
    members=st.integers(1, 4),
    size=st.integers(1, 600),
    block_bytes=st.integers(1, 700),
    padding=st.integers(0, 600),
)
def test_members_padding_and_sizes_never_change_the_content(content, members, size, block_bytes, padding):
    packed = b"".join(gzip.compress(content) for _ in range(members)) + bytes(padding)
    assert read(cut(packed, size), block_bytes) == content * members


@given(content=st.binary(max_size=200).filter(lambda data: not is_gzip(data)), size=st.integers(1, 50))
def test_what_is_not_gzip_passes_as_it_is(content, size):
    assert read(cut(content, size)) == content


def test_an_empty_file_and_one_of_a_single_byte_pass():
    assert list(inflate([])) == []
    assert list(inflate([b"", b""])) == []
    assert list(inflate([b"\x1f"])) == [b"\x1f"]


def test_an_empty_gzip_file_has_no_block():
    assert list(inflate([gzip.compress(b"")])) == []


@pytest.mark.parametrize("end", [2, 3, 9, 10, 11, len(PACKED) // 2, *range(len(PACKED) - 9, len(PACKED))])
def test_fault_12_a_truncated_file_is_refused_wherever_it_ends(end):
    with pytest.raises(TruncatedGzip) as failure:
        read(cut(PACKED[:end], 1000))
    assert failure.value.code == "TRUNCATED_GZIP"
    assert isinstance(failure.value, TransientError)


@pytest.mark.parametrize("end", [2, 10, 30, -1])
def test_fault_12_a_truncated_later_member_is_refused(end):
    with pytest.raises(TruncatedGzip):
        read([PACKED + gzip.compress(b"more of it, and more")[:end]])


def test_a_truncated_first_member_followed_by_a_whole_one_is_refused():
    with pytest.raises((BadGzip, TruncatedGzip)):
        read([PACKED[:-100] + PACKED])


@pytest.mark.parametrize("position", [-8, -5, -4, -1])
def test_fault_12_a_wrong_trailer_is_refused_after_everything_was_read(position):
    packed = bytearray(PACKED)
    packed[position] ^= 0xFF
    with pytest.raises(BadGzip) as failure:
        read([bytes(packed)])
    assert failure.value.code == "BAD_GZIP"


def test_fault_12_no_damaged_byte_brings_other_content():
    dice = random.Random(3)
    packed = gzip.compress(CONTENT[:2000], mtime=0)
    refused = 0
    for position in range(10, len(packed)):
        damaged = bytearray(packed)
        damaged[position] ^= 1 << dice.randrange(8)
        try:
            # The last byte in front of the trailer has bits that mean nothing.
            assert read([bytes(damaged)]) == CONTENT[:2000]
        except (BadGzip, TruncatedGzip):
            refused += 1
    assert refused >= len(packed) - 10 - 1


@pytest.mark.parametrize("header", [b"\x1f\x8b\x07" + bytes(7), b"\x1f\x8b\x08\xe0" + bytes(6)])
def test_a_header_that_no_gzip_file_has_is_refused(header):
    with pytest.raises(BadGzip):
        read([header + PACKED[10:]])


@pytest.mark.parametrize("garbage", [b"x", b"<html>", b"\x1f", b"\x1fx", b"\0\0x", b"\x8b\x1f", CONTENT])
@pytest.mark.parametrize("size", [1, 10_000_000])
def test_something_behind_the_last_member_is_refused(garbage, size):
    packed = gzip.compress(b"sku,title\n")
    with pytest.raises(BadGzip, match="follows"):
        read(cut(packed + garbage[:100], size))


def test_zeros_behind_the_last_member_are_filling():
    assert read([PACKED, bytes(100_000)]) == CONTENT


def test_a_full_last_piece_is_not_taken_for_the_end():
    """All input may have been used, and there is still output of exactly the size that was asked for."""
    for size in range(1, 300):
        content = bytes(size * 64)
        packer = zlib.compressobj(9, wbits=31)
        packed = packer.compress(content) + packer.flush()
        assert read([packed], block_bytes=64) == content
        assert read(cut(packed, 3), block_bytes=64) == content
        assert b"".join(inflate([packed[:-8]], block_bytes=64, may_be_cut=True)) == content


def test_a_file_is_read_only_as_far_as_its_blocks_are_taken():
    taken = []

    def source():
        for piece in cut(PACKED, 1000):
            taken.append(piece)
            yield piece

    blocks = inflate(source(), block_bytes=1000)
    next(blocks)
    assert len(taken) < len(PACKED) // 1000


@pytest.mark.parametrize("size", [1, 2, 9, 10, 500, len(PACKED) // 2, len(PACKED) - 1, len(PACKED)])
def test_the_beginning_of_a_file_can_be_looked_at(size):
    seen = b"".join(inflate(cut(PACKED[:size], 1000), block_bytes=4096, may_be_cut=True))
    assert CONTENT.startswith(seen) or size < 2
    assert len(seen) > len(CONTENT) // 3 or size < len(PACKED) // 2


def test_damage_is_damage_even_where_the_end_may_be_missing():
    broken = PACKED[:1000] + bytes(20) + PACKED[1020:2000]
    with pytest.raises(BadGzip):
        list(inflate([broken], may_be_cut=True))
