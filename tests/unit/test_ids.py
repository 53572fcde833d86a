"""Identifiers of control rows."""

import time
from uuid import RFC_4122

from harvester.kernel import ids
from harvester.kernel.ids import uuid7


def test_an_id_is_a_version_7_uuid_of_this_moment():
    before = time.time_ns() // 1_000_000
    made = uuid7()
    after = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, RFC_4122)
    assert before <= made.int >> 80 <= after


def test_ids_of_one_moment_differ(monkeypatch):
    monkeypatch.setattr(ids.time, "time_ns", lambda: 1_700_000_000_000_000_000)
    assert len({uuid7() for _ in range(10_000)}) == 10_000


def test_later_ids_sort_behind_earlier_ones(monkeypatch):
    moments = iter(range(1_700_000_000_000_000_000, 1_700_000_001_000_000_000, 50_000_000))
    monkeypatch.setattr(ids.time, "time_ns", lambda: next(moments))
    made = [uuid7() for _ in range(20)]
    assert made == sorted(made)


def test_every_random_bit_is_used():
    seen = 0
    always = (1 << 128) - 1
    for _ in range(2_000):
        value = uuid7().int
        seen |= value
        always &= value
    random_bits = (((1 << 12) - 1) << 64) | ((1 << 62) - 1)
    assert seen & random_bits == random_bits
    assert always & random_bits == 0


def test_the_time_wraps_instead_of_breaking_the_format(monkeypatch):
    monkeypatch.setattr(ids.time, "time_ns", lambda: (1 << 60) * 1_000_000)
    assert uuid7().version == 7
