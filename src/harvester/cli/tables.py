"""Tables that break no word and no figure, however narrow the screen.

A table that is too wide gets less air, then narrower columns of words; where that is not enough, every row stands as a
block of its own, one fact below the other.
"""

from collections.abc import Callable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

#: Characters of a word that is kept whole. Longer ones are addresses and ids, which nobody reads aloud.
LONGEST_WHOLE_WORD = 20
#: Blanks on both sides of a column, the airy form first.
_AIR = (1, 0)


class Rows:
    """What a command lists.

    Attributes:
        columns: their headings.
        rows: the cells of each row.
        right: the headings above numbers, which are never broken.
    """

    def __init__(
        self, columns: Sequence[str], rows: Sequence[Sequence[Text]], title: str, right: Sequence[str]
    ) -> None:
        self.columns, self.rows, self.title, self.right = columns, rows, title, right

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        natural = [max(_length(cell) for cell in cells) for _, cells in self._by_column()]
        least = [max(map(self._least(name), cells)) for name, cells in self._by_column()]
        for air in _AIR:
            edges = 2 + (len(self.columns) - 1) * (1 + 2 * air)
            widths = fitted(natural, least, options.max_width - edges)
            if widths:
                yield self._table(widths, air)
                return
        yield from self._blocks()

    def _by_column(self) -> Iterator[tuple[str, list[Text]]]:
        for place, name in enumerate(self.columns):
            yield name, [Text(name), *(row[place] for row in self.rows)]

    def _least(self, name: str) -> Callable[[Text], int]:
        """How narrow a cell of this column may be; a heading above numbers may stand in several lines."""
        return lambda cell: _length(cell) if name in self.right and cell.plain != name else _longest_word(cell)

    def _table(self, widths: Sequence[int], air: int) -> Table:
        made = Table(
            title=self.title or None, title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD,
            pad_edge=False, padding=(0, air),
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
    """Widths of columns that fill the room at most, the widest cut first; None if words would break."""
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
