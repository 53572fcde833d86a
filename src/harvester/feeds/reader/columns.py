"""A block of records as columns of text."""

import polars as pl

from harvester.feeds.reader.binding import Binding
from harvester.feeds.reader.blocks import Block
from harvester.feeds.reader.dialect import Dialect
from harvester.kernel.network import Field


class ColumnReader:
    """Reads the bound columns of a file's blocks and skips all others.

    The number of fields of each record was checked before: polars would pad short records and cut long ones silently.

    Attributes:
        texts: field -> its columns in order of preference. None of them has nulls.
        spares: the same for `Binding.spares`.
    """

    def __init__(self, dialect: Dialect, binding: Binding) -> None:
        self._dialect = dialect
        self._schema = pl.Schema({str(place): pl.String() for place in range(len(binding.header))})
        self.texts: dict[Field, list[pl.Expr]] = {
            field: [pl.col(str(place)) for place in places] for field, places in binding.columns.items()
        }
        self.spares: dict[Field, list[pl.Expr]] = {
            field: [pl.col(str(place)) for place in places] for field, places in binding.spares.items()
        }

    def read(self, block: Block, wanted: list[pl.Expr]) -> pl.DataFrame:
        """Return these expressions over the columns, one row for each record of a block."""
        lazy = pl.scan_csv(
            block.data,
            has_header=False,
            separator=self._dialect.delimiter,
            quote_char='"' if self._dialect.quoted or block.turned_quoted else None,
            schema=self._schema,
            empty_string_is_null=False,
        )
        frame = lazy.select(wanted).collect()
        if frame.height != len(block.ends):
            raise RuntimeError(f"{len(block.ends)} records were read as {frame.height} rows")
        return frame
