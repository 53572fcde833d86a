from datetime import UTC, datetime

import pytest

from harvester.kernel.moments import parse_moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00+18:05", datetime(2026, 1, 30, 17, 55, tzinfo=UTC)),
        ("2026-01-31T12:00-23:59", datetime(2026, 2, 1, 11, 59, tzinfo=UTC)),
    ],
)
def test_a_moment_is_in_utc_whatever_offset_it_was_written_with(text, moment):
    parsed = parse_moment(text)
    assert (parsed, parsed.utcoffset()) == (moment, moment.utcoffset())


@pytest.mark.parametrize("text", ["", "soon", "0001-01-01T00:00+05:00", "9999-12-31T23:59-05:00"])
def test_what_is_not_a_moment_in_utc_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse_moment(text)
