"""Why a file as a whole cannot be read.

TransientError
└── TruncatedFile               the last record is not whole: the file may still be on its way
TerminalError
├── EmptyFile                   there is nothing in it, not even a header
├── HtmlInsteadOfCsv            somebody's error page
├── HeaderUnreadable            no delimiter makes known columns of the first line
├── EncodingUnreadable          the bytes are text in none of the encodings
├── RowCountLimitExceeded       more rows than the feed may have
└── UniqueProductLimitExceeded  more products than the feed may have
"""

from collections.abc import Iterable, Mapping, Sequence

from harvester.kernel.errors import TerminalError, TransientError
from harvester.kernel.network import Field


class TruncatedFile(TransientError):
    """The file ends in the middle of a record."""

    code = "TRUNCATED"


class EmptyFile(TerminalError):
    """There is nothing in the file."""

    code = "EMPTY_FILE"


class HtmlInsteadOfCsv(TerminalError):
    """The file is a web page."""

    code = "HTML_INSTEAD_OF_CSV"


class HeaderUnreadable(TerminalError):
    """The first line names no columns that are needed.

    Attributes:
        missing: the groups of fields of which each needs a column and has none, if that is why.
        header: the names in the first line, by the separator that fits best.
        names: field -> the columns of the file that were recognized for it.
    """

    code = "HEADER_UNREADABLE"

    def __init__(
        self,
        message: str,
        missing: Iterable[tuple[Field, ...]] = (),
        header: Iterable[str] = (),
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.missing = tuple(missing)
        self.header = tuple(header)
        self.names = dict(names or {})


class EncodingUnreadable(TerminalError):
    """The file is not text in one of the known encodings."""

    code = "ENCODING_UNREADABLE"


class RowCountLimitExceeded(TerminalError):
    """The file has more rows than it may."""

    code = "ROW_COUNT_LIMIT_EXCEEDED"


class UniqueProductLimitExceeded(TerminalError):
    """The file has more products than it may."""

    code = "UNIQUE_PRODUCT_LIMIT_EXCEEDED"
