"""How far a job is, in words."""

import pytest

from harvester.cli.job_views import progress_text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"done": 24_626_770, "total": 24_626_770, "note": "downloading"}, "24,626,770 of 24,626,770 downloading"),
        ({"done": 0.5, "total": 2.0}, "0.50 of 2"),
        ({"done": 0, "total": None, "note": "promoting"}, "promoting"),
        ({"done": 7, "total": None, "note": "rows"}, "7 rows"),
        (None, ""),
    ],
)
def test_numbers_are_written_as_people_write_them(said, told):
    assert progress_text(said) == told
