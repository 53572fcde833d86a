"""The progress of a job as text."""

import pytest

from harvester.cli.job_views import progress_text


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        ({"done": 24_626_770, "total": 24_626_770, "note": "downloading"}, "24,626,770 of 24,626,770 downloading"),
        ({"done": 0.5, "total": 2.0}, "0.50 of 2"),
        ({"done": 0, "total": None, "note": "promoting"}, "promoting"),
        ({"done": 7, "total": None, "note": "rows"}, "7 rows"),
        (None, ""),
    ],
)
def test_numbers_are_written_as_people_write_them(progress, text):
    assert progress_text(progress) == text
