"""Compressed files that are made to hurt are stopped at the cap, in bounded memory."""

import gzip
import io
import tracemalloc
import zlib

import pytest
from tests.support.guards import LOOPBACK, PARTNER, sftp
from tests.support.sftp_server import SftpServer

from harvester.guards import inflate as inflating
from harvester.guards.inflate import BadGzip, InflateLimitExceeded, InflateLimits, TruncatedGzip, inflate
from harvester.kernel.errors import TerminalError

MEGABYTE = 1024 * 1024
ZEROS = bytes(MEGABYTE)


def bomb(megabytes):
    """Zeros, a thousand times smaller."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(ZEROS) for _ in range(megabytes)), packer.flush()])


def count(source, **limits):
    """Read all; how many bytes came before the end or the error."""
    came = 0
    try:
        for block in inflate(source, limits=InflateLimits(**limits), block_bytes=MEGABYTE):
            came += len(block)
    except InflateLimitExceeded as error:
        return came, error
    return came, None


def test_fault_20_a_bomb_is_stopped_at_the_cap_in_bounded_memory():
    packed = bomb(200)
    assert len(packed) < MEGABYTE
    tracemalloc.start()
    try:
        came, error = count([packed], output_bytes=50 * MEGABYTE, ratio=10_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.code == "INFLATE_LIMIT_EXCEEDED"
    assert isinstance(error, TerminalError)
    assert came <= 50 * MEGABYTE
    assert peak < 8 * MEGABYTE


def test_fault_20_a_bomb_below_the_cap_is_known_by_its_ratio():
    came, error = count([bomb(100)], output_bytes=1024 * MEGABYTE, ratio=200)
    assert "200" in str(error)
    assert "no setting changes this limit, so ask the partner" in str(error)
    assert came <= inflating.RATIO_COUNTS_FROM_BYTES


def test_a_small_file_may_have_any_ratio():
    assert count([bomb(10)], ratio=200) == (10 * MEGABYTE, None)


def test_fault_20_the_cap_holds_to_the_byte():
    packed = gzip.compress(b"x" * 1000)
    assert count([packed], output_bytes=1000) == (1000, None)
    assert count([packed], output_bytes=999)[1] is not None


def test_fault_20_the_cap_counts_all_members_together():
    came, error = count([bomb(10)] * 10, output_bytes=50 * MEGABYTE, ratio=10_000)
    assert error is not None
    assert came <= 50 * MEGABYTE


def test_fault_20_the_cap_holds_for_plain_files_too():
    came, error = count([b"a" + ZEROS] * 10, output_bytes=5 * MEGABYTE)
    assert error is not None
    assert came <= 5 * MEGABYTE


def test_fault_20_a_forged_size_in_the_audit_loger_is_found_at_the_end():
    packed = bytearray(gzip.compress(b"x" * 1000))
    packed[-4:] = (7).to_bytes(4, "little")
    with pytest.raises(BadGzip, match="checksum"):
        count([bytes(packed)])


def test_fault_20_a_bomb_inside_a_bomb_is_inflated_once():
    packed = gzip.compress(bomb(10))
    assert b"".join(inflate([packed])) == bomb(10)


def test_fault_20_countless_empty_members_are_given_up(monkeypatch):
    monkeypatch.setattr(inflating, "MOST_MEMBERS", 1000)
    empty = gzip.compress(b"")
    assert count([empty * 1000]) == (0, None)
    assert "parts" in str(count([empty * 1001])[1])


def test_fault_20_an_endless_name_in_the_header_is_held_in_no_memory():
    def header():
        yield b"\x1f\x8b\x08\x08" + bytes(6)
        for _ in range(200):
            yield b"n" * MEGABYTE

    tracemalloc.start()
    try:
        with pytest.raises(TruncatedGzip):
            count(header())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MEGABYTE


def test_fault_20_after_a_bomb_the_next_file_is_read(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(bomb(100))
    (tmp_path / "good.gz").write_bytes(gzip.compress(b"sku,title\n"))
    with SftpServer(tmp_path) as server, sftp(server, PARTNER, policy=LOOPBACK) as session:
        contents = {}
        for name in ("bomb.gz", "good.gz"):
            packed = io.BytesIO()
            session.download(f"/{name}", packed, cap_bytes=10 * MEGABYTE)
            contents[name] = count([packed.getvalue()], output_bytes=10 * MEGABYTE)
    assert contents["bomb.gz"][1] is not None
    assert contents["good.gz"] == (10, None)
