"""Reasons to reject a row, and warnings that do not reject it.

Each `Fault` is one way for a value to be wrong: its code for counting, and the sentence shown next to the sample. The
sentence never repeats the value, which may be hostile.
"""

from enum import Enum, StrEnum, unique

from harvester.kernel.errors import InvalidInput


class RejectCode(StrEnum):
    """Codes by which rejected rows are counted."""

    MISSING_TITLE = "MISSING_TITLE"
    MISSING_URL = "MISSING_URL"
    INVALID_URL = "INVALID_URL"
    MISSING_PRICE = "MISSING_PRICE"
    INVALID_PRICE = "INVALID_PRICE"
    PRICE_NOT_EXACT = "PRICE_NOT_EXACT"
    PRICE_WITHHELD = "PRICE_WITHHELD"
    MISSING_CURRENCY = "MISSING_CURRENCY"
    INVALID_CURRENCY = "INVALID_CURRENCY"
    RAGGED_ROW = "RAGGED_ROW"
    BAD_ENCODING = "BAD_ENCODING"
    FIELD_TOO_LONG = "FIELD_TOO_LONG"
    UNREADABLE_STOCK = "UNREADABLE_STOCK"


class WarningCode(StrEnum):
    """Codes of problems in rows that are kept."""

    UNKNOWN_STOCK = "UNKNOWN_STOCK"
    BAD_GTIN = "BAD_GTIN"
    BAD_IMAGE_URL = "BAD_IMAGE_URL"
    BAD_ORIGINAL_PRICE = "BAD_ORIGINAL_PRICE"


@unique
class Fault(Enum):
    """One way for a value to be wrong."""

    NO_PRICE = RejectCode.MISSING_PRICE, "there is no price"
    PRICE_TOO_LONG = RejectCode.INVALID_PRICE, "a price has at most 64 characters"
    PRICE_UNREADABLE = RejectCode.INVALID_PRICE, "this is not one number with a currency; write it like 1299.00 USD"
    PRICE_AMBIGUOUS = (
        RejectCode.INVALID_PRICE,
        "the separator may mean thousands or decimals; write 1299.00, or set the decimal separator of the feed",
    )
    PRICE_NOT_EXACT = (
        RejectCode.PRICE_NOT_EXACT,
        "the price is a range, a minimum, a maximum or an estimate; write the exact price of this product",
    )
    PRICE_NEGATIVE = RejectCode.INVALID_PRICE, "a price is above zero"
    PRICE_TOO_FINE = RejectCode.INVALID_PRICE, "there are more decimals than the currency has"
    PRICE_TOO_LARGE = RejectCode.INVALID_PRICE, "a price is below 10000000000"
    PERIOD_UNREADABLE = (
        RejectCode.INVALID_PRICE,
        "the period of the sale price cannot be read; write 2025-01-31T00:00Z/2025-02-28T23:59Z",
    )
    PRICE_ZERO = RejectCode.PRICE_WITHHELD, "a price of zero means that the shop does not show it"

    NO_CURRENCY = (
        RejectCode.MISSING_CURRENCY,
        "neither the currency column nor the price names a currency, and the feed has no default",
    )
    CURRENCY_AMBIGUOUS = (
        RejectCode.MISSING_CURRENCY,
        "the sign stands for several currencies; name the code in its column or as the feed's default",
    )
    CURRENCY_UNKNOWN = (
        RejectCode.INVALID_CURRENCY,
        "this is not the code, sign or name of a currency in use; write USD",
    )
    CURRENCY_CONTRADICTED = RejectCode.INVALID_CURRENCY, "the price, its column and the default name two currencies"

    NO_URL = RejectCode.MISSING_URL, "there is no URL"
    URL_TOO_LONG = RejectCode.FIELD_TOO_LONG, "a URL has at most 4096 characters"
    URL_NOT_WEB = RejectCode.INVALID_URL, "a URL starts with http:// or https://"
    URL_CONTROLS = RejectCode.INVALID_URL, "a URL has no control characters"
    URL_USER = RejectCode.INVALID_URL, "a URL must not contain a user name or a password"
    URL_HOST = RejectCode.INVALID_URL, "the host is missing or not a host name"
    URL_PRIVATE = (
        RejectCode.INVALID_URL,
        "the host is not on the public internet; an operator can allow its network with HARVESTER_EGRESS_ALLOW",
    )
    URL_PORT = RejectCode.INVALID_URL, "the port is a number from 1 to 65535"
    URL_NESTED = RejectCode.INVALID_URL, "more than 10 tracked links are nested"

    NO_TITLE = RejectCode.MISSING_TITLE, "there is no title"
    TEXT_TOO_LONG = RejectCode.FIELD_TOO_LONG, "a field has at most 100000 characters"
    ROW_TOO_LONG = RejectCode.FIELD_TOO_LONG, "a row has at most 1048576 bytes"
    ROW_RAGGED = RejectCode.RAGGED_ROW, "the row has more or fewer fields than the header"
    ROW_QUOTES = RejectCode.RAGGED_ROW, "something follows the quote that ends a field, or no quote ends it"
    ROW_DELIMITER = RejectCode.RAGGED_ROW, "the delimiter in front of a quoted field seems to be missing"
    ROW_OPENING_QUOTE = RejectCode.RAGGED_ROW, "a field has a quote inside and lacks the one at the start of the column"
    ROW_UNDECODABLE = RejectCode.BAD_ENCODING, "some bytes are not valid in the encoding of the file"
    ROW_NUL = RejectCode.BAD_ENCODING, "there is a NUL character"

    STOCK_UNREADABLE = (
        RejectCode.UNREADABLE_STOCK,
        "the stock column is empty or not recognized, and the feed rejects such rows",
    )

    ID_TOO_LONG = RejectCode.FIELD_TOO_LONG, "an identifier has at most 255 characters"
    ID_CONTROLS = RejectCode.BAD_ENCODING, "an identifier has no control characters"

    def __init__(self, code: RejectCode, sentence: str) -> None:
        self.code = code
        self.sentence = sentence


class Rejected(InvalidInput):
    """A value of a row cannot be used."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.sentence)
        self.fault = fault
        self.code = fault.code
