"""Rows on disk are found by their lines."""

import numpy as np
import polars as pl
import pytest

from harvester.feeds.reader.spool import Spool

BLOCKS = ([2, 3, 4], [7, 9], [10, 11])


@pytest.fixture
def spool(tmp_path):
    with Spool(tmp_path) as spool:
        for lines in BLOCKS:
            spool.add(pl.DataFrame({"line": lines, "title": [f"Thing {line}" for line in lines], "url": None}))
        yield spool


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([], []),
        ([2, 3, 4, 7, 9, 10, 11], [2, 3, 4, 7, 9, 10, 11]),
        ([3, 11], [3, 11]),
        ([7], [7]),
        # As many as the block has, but one of them is not in it.
        ([7, 8], [7]),
        ([1, 5, 6, 8, 12], []),
        ([1, 2, 3, 4, 5, 9], [2, 3, 4, 9]),
    ],
)
def test_rows_of_the_requested_lines_are_returned(spool, wanted, found):
    lines = np.array(wanted, np.int64)
    rows = [row for block in spool.rows(lines, ["title"]) for row in block.select("line", "title", "place").iter_rows()]
    assert rows == [(line, f"Thing {line}", wanted.index(line)) for line in found]
    assert spool.count_missing(lines) == len(wanted) - len(found)
