"""Texts as people read them."""

import pytest

from harvester.kernel.text import without_markup


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<p>Soft &amp; warm</p><ul><li>Wool</li></ul>", "Soft & warm Wool"),
        ("&lt;b&gt;Bold&lt;/b&gt; &amp;nbsp;text", "Bold text"),
        ("Line<br/>break<!-- a <b>comment</b> -->", "Line break"),
        ("for a < b and c > d", "for a < b and c > d"),
        ("5 <3 hearts", "5 <3 hearts"),
        ("", ""),
    ],
)
def test_descriptions_are_shown_without_markup(text, read):
    assert without_markup(text) == read
