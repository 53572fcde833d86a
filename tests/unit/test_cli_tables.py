"""Tables of commands on screens of any width: no word and no figure is broken."""

import io

import pytest
from rich.console import Console

from harvester.cli.output import Output, fitted, table

COLUMNS = ("run", "trigger", "state", "started", "took", "rows", "products", "prices", "missing")
FIGURES = ("took", "rows", "products", "prices", "missing")
ROWS = (
    (4, "MANUAL", "HELD", "27 min ago", "0.3 s", "648", "647", "0", "1,945"),
    (3, "SCHEDULED", "PROMOTED", "27 min ago", "4.5 s", "2,592", "2,591", "1,324", "1"),
)


def printed(width: int, columns=COLUMNS, rows=ROWS, **options) -> list[str]:
    screen = Console(file=io.StringIO(), width=width)
    screen.print(table(columns, rows, **options))
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [200, 100, 80, 72, 60, 40, 30])
def test_every_word_and_every_figure_stays_whole(width):
    lines = printed(width, right=FIGURES, title="Runs")
    words = " ".join(lines).split()
    assert all(len(line) <= width for line in lines)
    for expected in ("Runs", *COLUMNS, "SCHEDULED", "PROMOTED", "1,945", "2,592", "1,324"):
        assert expected in words, (expected, lines)


def test_a_table_that_has_room_is_one_line_for_each_row():
    assert len([line for line in printed(100, right=FIGURES) if "MANUAL" in line or "SCHEDULED" in line]) == 2
    assert any(line.split()[:3] == ["4", "MANUAL", "HELD"] for line in printed(80, right=FIGURES))


def test_where_no_column_fits_each_row_is_a_block_without_empty_facts():
    lines = printed(30, ("name", "network", "next run"), [("harbour-street", "google_merchant", "")])
    assert lines == ["", "name     harbour-street", "network  google_merchant", ""]


def test_an_address_breaks_before_its_table_does():
    lines = printed(40, ("code", "url"), [("OK", "https://shop.example/" + "x" * 60)])
    assert any("code" in line and "url" in line for line in lines)
    assert "".join(line[6:].strip() for line in lines if "x" in line or "http" in line).endswith("x" * 60)


@pytest.mark.parametrize(
    ("natural", "least", "room", "widths"),
    [
        ([5, 30], [5, 10], 40, [5, 30]),
        ([5, 30], [5, 10], 20, [5, 15]),
        ([20, 30], [5, 10], 20, [10, 10]),
        ([5, 30], [5, 10], 15, [5, 10]),
        ([5, 30], [5, 10], 14, None),
    ],
)
def test_the_widest_column_gives_way_first(natural, least, room, widths):
    assert fitted(natural, least, room) == widths


def test_a_sentence_in_a_pipe_is_one_line_however_long(capsys):
    sentence = "word " * 100 + "end."
    Output().say(sentence)
    assert capsys.readouterr().out == f"{sentence}\n"
