"""What people and scripts get to read: tables and sentences, or JSON.

With `--json`, stdout holds JSON and nothing else; errors are JSON too, on stderr.
"""

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from harvester.cli.exit_codes import Failure
from harvester.cli.tables import Rows

#: Columns of a table that goes to a file or a pipe, where there is no screen to fit.
WIDTH_WITHOUT_SCREEN = 200
#: Job errors and titles come from outside: printed raw, an escape sequence in them would steer the terminal, and a mark
#: of direction would turn around what follows.
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
#: Up to which age in seconds a unit is used.
_UNITS = ((2 * _MINUTE, 1, "s"), (2 * _HOUR, _MINUTE, "min"), (2 * _DAY, _HOUR, "h"), (float("inf"), _DAY, "d"))


class Output:
    """Where this process writes to, and in which form."""

    def __init__(self) -> None:
        self.as_json = False

    @functools.cached_property
    def screen(self) -> Console:
        """One and the same for everybody: two would write over each other's moving parts."""
        return _console(sys.stdout)

    @functools.cached_property
    def errors(self) -> Console:
        return _console(sys.stderr)

    def show(self, data: Any, render: Callable[[], RenderableType]) -> None:
        """Print the data as JSON, or what people like to look at."""
        if self.as_json:
            self.print_json(data)
        else:
            self.say(render())

    def print_json(self, data: Any) -> None:
        print(_json(data), flush=True)  # noqa: T201 - the one door

    def say(self, text: RenderableType) -> None:
        """A line for people; with JSON it would be in the way."""
        if not self.as_json:
            # Whoever reads a pipe line by line gets a sentence as one line, however long.
            is_line = isinstance(text, str | Text) and not self.screen.is_terminal
            self.screen.print(text, soft_wrap=is_line)

    def hint(self, text: str) -> None:
        """A line beside the answer, on stderr, so that a pipe gets the answer alone."""
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
    """One line. JSON escapes only some of what steers a terminal; the rest stands in texts and is escaped like it."""
    encoded = json.dumps(data, default=_plain_json, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def _plain_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def clean(text: object) -> str:
    """Text that cannot steer a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text))


def cell(value: Any) -> Text:
    """One field of a table, as it is; states in their colours."""
    if value is None:
        return Text("")
    if isinstance(value, Text):
        return value
    text = clean(value)
    return Text(text, style=STATE_STYLES.get(text, ""))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", right: Sequence[str] = ()) -> Rows:
    return Rows(columns, [[cell(value) for value in row] for row in rows], title, right)


def stacked(*parts: RenderableType | None) -> Group:
    return Group(*(part for part in parts if part is not None))


def pairs(rows: Iterable[tuple[str, Any]]) -> Table:
    """Names and values, one below the other."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, cell(value))
    return made


def count_text(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def amount_text(amount: Decimal | None) -> str:
    """An amount with two decimals at least, so that amounts stand below each other."""
    if amount is None:
        return ""
    return f"{amount:.2f}" if amount == round(amount, 2) else f"{amount}"


def span(seconds: float) -> str:
    """A length of time, as exact as people need it."""
    for limit, unit, name in _UNITS:
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}" if seconds >= 10 or unit > 1 else f"{seconds:.1f} {name}"  # noqa: PLR2004
    raise AssertionError("the last unit has no limit")


def when(moment: datetime | None, now: datetime) -> str:
    """A moment as seen from the database's present."""
    if moment is None:
        return ""
    seconds = (moment - now).total_seconds()
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"
