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

from harvester.kernel.errors import TerminalError, TransientError


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
    """The first line names no columns that are needed."""

    code = "HEADER_UNREADABLE"


class EncodingUnreadable(TerminalError):
    """The file is not text in one of the known encodings."""

    code = "ENCODING_UNREADABLE"


class RowCountLimitExceeded(TerminalError):
    """The file has more rows than it may."""

    code = "ROW_COUNT_LIMIT_EXCEEDED"


class UniqueProductLimitExceeded(TerminalError):
    """The file has more products than it may."""

    code = "UNIQUE_PRODUCT_LIMIT_EXCEEDED"
