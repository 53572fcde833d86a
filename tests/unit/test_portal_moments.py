"""How long ago, and how soon, in words."""

import pytest

from harvester.portal.display import DAY, HOUR, MINUTE, distance


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "just now"),
        (-1, "1 s ago"),
        (119, "in 119 s"),
        (2 * MINUTE, "in 2 min"),
        (-119 * MINUTE, "119 min ago"),
        (2 * HOUR, "in 2 h"),
        (47.9 * HOUR, "in 47 h"),
        (-2 * DAY, "2 d ago"),
        (30 * DAY, "in 30 d"),
    ],
)
def test_a_distance_is_shown_in_the_largest_unit_of_which_there_are_two(seconds, words):
    assert distance(seconds) == words
