"""Why a file as a whole cannot be read.

TransientError
└── TruncatedFile               its last record is incomplete: the partner may still be writing it
TerminalError
├── EmptyFile                   it has nothing, not even a header
├── HtmlInsteadOfCsv            it is a web page, mostly an error message
├── HeaderUnreadable            the first line has no known columns with any delimiter
├── EncodingUnreadable          it is not text in any supported encoding
├── RowCountLimitExceeded       it has more rows than the feed's limit
└── UniqueProductLimitExceeded  it has more products than the feed's limit
"""

from collections.abc import Iterable, Mapping, Sequence

from harvester.kernel.errors import TerminalError, TransientError
from harvester.kernel.network import Field


class TruncatedFile(TransientError):
    """The file ends in the middle of a record."""

    code = "TRUNCATED"


class EmptyFile(TerminalError):
    code = "EMPTY_FILE"


class HtmlInsteadOfCsv(TerminalError):
    code = "HTML_INSTEAD_OF_CSV"


class HeaderUnreadable(TerminalError):
    """The first line lacks required columns.

    Attributes:
        missing: the groups of required fields without a column, if that is the reason.
        header: the names in the first line, with the delimiter that fits best.
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
    code = "ENCODING_UNREADABLE"


class RowCountLimitExceeded(TerminalError):
    code = "ROW_COUNT_LIMIT_EXCEEDED"


class UniqueProductLimitExceeded(TerminalError):
    code = "UNIQUE_PRODUCT_LIMIT_EXCEEDED"
