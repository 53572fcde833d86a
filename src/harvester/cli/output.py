"""Output for people (tables and sentences) and for scripts (JSON).

With `--json`, stdout holds only JSON, and errors are JSON on stderr.
"""

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from harvester.cli.exit_codes import Failure

#: Characters per line when the output goes to a file or a pipe.
WIDTH_WITHOUT_SCREEN = 200
#: Job errors and titles come from outside. An escape sequence in them would control the terminal, and a bidirectional
#: mark would reverse the text that follows.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

STATE_STYLES = {
    "pending": "cyan",
    "running": "bold blue",
    "retryable": "yellow",
    "succeeded": "green",
    "failed": "bold red",
    "cancelled": "dim",
    "ok": "green",
    "warn": "yellow",
    "fail": "bold red",
}

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
#: (durations shorter than this many seconds, length of the unit in seconds, its symbol)
_UNITS = ((2 * _MINUTE, 1, "s"), (2 * _HOUR, _MINUTE, "min"), (2 * _DAY, _HOUR, "h"), (float("inf"), _DAY, "d"))


#: Longer words are URLs and ids, which may be broken.
LONGEST_WHOLE_WORD = 20
#: Spaces on both sides of a column; the wider form is tried first.
_PADDINGS = (1, 0)


class Output:
    def __init__(self) -> None:
        self.as_json = False

    @functools.cached_property
    def screen(self) -> Console:
        """The only console of stdout: two would overwrite each other's progress bars."""
        return _console(sys.stdout)

    @functools.cached_property
    def errors(self) -> Console:
        return _console(sys.stderr)

    def show(self, data: Any, render: Callable[[], RenderableType]) -> None:
        """Print the data as JSON, or the rendered form for people."""
        if self.as_json:
            self.print_json(data)
        else:
            self.say(render())

    def print_json(self, data: Any) -> None:
        print(_json(data), flush=True)  # noqa: T201 - the only place that writes JSON to stdout

    def say(self, text: RenderableType) -> None:
        """Print something for people; nothing with --json."""
        if not self.as_json:
            # A pipe is read line by line, so a sentence stays on one line, however long.
            is_line = isinstance(text, str | Text) and not self.screen.is_terminal
            self.screen.print(text, soft_wrap=is_line)

    def hint(self, text: str) -> None:
        """Print a line to stderr, so that a pipe gets only the result."""
        if not self.as_json:
            self.errors.print(Text(text, style="dim"), soft_wrap=True)

    def fail(self, failure: Failure) -> None:
        if self.as_json:
            print(_json(failure.as_dict()), file=sys.stderr, flush=True)  # noqa: T201
            return
        line = Text.assemble(("error: ", "bold red"), clean(failure.message))
        self.errors.print(line, soft_wrap=True)


OUT = Output()


def _console(stream: Any) -> Console:
    width = None if stream.isatty() else WIDTH_WITHOUT_SCREEN
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def _json(data: Any) -> str:
    """Return one line of JSON. Control characters that JSON itself allows are escaped too."""
    encoded = json.dumps(
        data, default=lambda value: value.isoformat() if isinstance(value, datetime) else str(value), ensure_ascii=False
    )
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def clean(text: object) -> str:
    """Return the text without characters that control a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text))


def cell(value: Any) -> Text:
    """Return one cell of a table; states are colored."""
    if value is None:
        return Text("")
    if isinstance(value, Text):
        return value
    text = clean(value)
    return Text(text, style=STATE_STYLES.get(text, ""))


class Rows:
    """A table that breaks no word and no number, however narrow the screen.

    A table that is too wide gets less padding, then narrower text columns. If that is not enough, every row becomes a
    block with one field per line.

    Attributes:
        columns: the headings.
        rows: the cells of each row.
        right: the headings of number columns, which are never broken.
    """

    def __init__(
        self, columns: Sequence[str], rows: Sequence[Sequence[Text]], title: str, right: Sequence[str]
    ) -> None:
        self.columns, self.rows, self.title, self.right = columns, rows, title, right

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        natural, least = [], []
        for place, name in enumerate(self.columns):
            heading, cells = Text(name), [row[place] for row in self.rows]
            natural.append(max(map(_length, [heading, *cells])))
            # The heading of a number column may wrap, the numbers may not.
            narrowest = _length if name in self.right else _longest_word
            least.append(max([_longest_word(heading), *map(narrowest, cells)]))
        for padding in _PADDINGS:
            edges = 2 + (len(self.columns) - 1) * (1 + 2 * padding)
            widths = fitted(natural, least, options.max_width - edges)
            if widths:
                yield self._table(widths, padding)
                return
        yield from self._blocks()

    def _table(self, widths: Sequence[int], padding: int) -> Table:
        made = Table(
            title=self.title or None, title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD,
            pad_edge=False, padding=(0, padding),
        )  # fmt: skip
        for name, width in zip(self.columns, widths, strict=True):
            justify = "right" if name in self.right else "left"
            made.add_column(name, justify=justify, overflow="fold", width=width)  # type: ignore[arg-type]
        for row in self.rows:
            made.add_row(*row)
        return made

    def _blocks(self) -> Iterator[RenderableType]:
        if self.title:
            yield Text(self.title, style="bold")
        for row in self.rows:
            block = Table.grid(padding=(0, 2))
            block.add_column(style="bold")
            block.add_column(overflow="fold")
            for name, cell in zip(self.columns, row, strict=True):
                if cell.plain:
                    block.add_row(name, cell)
            yield Text("")
            yield block
        yield Text("")


def fitted(natural: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Return column widths that fit, cutting the widest first, or None if words would break."""
    if sum(least) > room:
        return None
    widths = [max(pair) for pair in zip(natural, least, strict=True)]
    while sum(widths) > room:
        widest = max((place for place, width in enumerate(widths) if width > least[place]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _longest_word(cell: Text) -> int:
    return min(LONGEST_WHOLE_WORD, max((Text(word).cell_len for word in cell.plain.split()), default=1))


def _length(cell: Text) -> int:
    return max((Text(line).cell_len for line in cell.plain.splitlines()), default=1)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", right: Sequence[str] = ()) -> Rows:
    return Rows(columns, [[cell(value) for value in row] for row in rows], title, right)


def stacked(*parts: RenderableType | None) -> Group:
    return Group(*(part for part in parts if part is not None))


def pairs(rows: Iterable[tuple[str, Any]]) -> Table:
    """Return a two-column list of names and values."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, cell(value))
    return made


def count_text(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def amount_text(amount: Decimal | None) -> str:
    """Return an amount with at least two decimals, so that amounts line up."""
    if amount is None:
        return ""
    return f"{amount:.2f}" if amount == round(amount, 2) else f"{amount}"


def span(seconds: float) -> str:
    """Return a duration, rounded for people: 4.2 s, 17 min, 3 d."""
    for limit, unit, name in _UNITS:
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}" if seconds >= 10 or unit > 1 else f"{seconds:.1f} {name}"  # noqa: PLR2004
    raise AssertionError("the last unit has no limit")


def when(moment: datetime | None, now: datetime) -> str:
    """Return a time relative to `now`, the database's time: "in 3 h", "5 min ago"."""
    if moment is None:
        return ""
    seconds = (moment - now).total_seconds()
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"
