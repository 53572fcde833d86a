"""Global trade item numbers (EAN, UPC, ISBN), with every leading zero kept.

A number with a wrong check digit is kept unchanged and counted; it is never used for matching. Digits that a
spreadsheet lost ("8.85E+11", a UPC of 11 digits) are not guessed: one guess in ten passes the check digit.
"""

import re
from dataclasses import dataclass

from harvester.kernel.text import BLANKS, HYPHENS, trim

#: GTIN-8, GTIN-12 (UPC-A), GTIN-13 (EAN, ISBN-13) and GTIN-14 (cases).
GTIN_LENGTHS = frozenset({8, 12, 13, 14})
COMPARED_LENGTH = 14
#: Longer text is not a number; its beginning is enough to recognize it.
LONGEST_KEPT = 64
#: Prefixes of a GTIN-13 for internal use by shops, coupons and receipts: two shops may use the same number.
OWN_USE_PREFIXES = ("02", "04", "05", "2", "98", "99")
#: The same for a GTIN-8, which follows six zeros in the longer form.
SHORT_OWN_USE_PREFIXES = ("0", "2")
ISBN10 = "[0-9]{9}[0-9Xx]"
DIGITS = "[0-9]+"

#: What people write before a number: "UPC 020892215513", "EAN-13: 4006381333931".
LABELED = "(?i:upc|ean|gtin|isbn|jan)(?:-?(?:[aA]|8|10|12|13|14)[ :#.]+|[ :#.]*)([0-9].*)"

_IGNORED = dict.fromkeys(map(ord, BLANKS + HYPHENS))


@dataclass(frozen=True, kw_only=True)
class GtinResult:
    """A GTIN as given, without blanks and hyphens.

    Attributes:
        value: digits with their leading zeros; the original text if not valid.
        valid: a known length and the right check digit.
    """

    value: str
    valid: bool

    @property
    def key(self) -> str | None:
        """The form in which two numbers are compared (GTIN-14); none if this number must not be matched."""
        compared = self.value.zfill(COMPARED_LENGTH)
        if compared.startswith("000000"):
            is_own_use = compared[6:].startswith(SHORT_OWN_USE_PREFIXES)
        else:
            is_own_use = compared[1:].startswith(OWN_USE_PREFIXES)
        return compared if self.valid and not is_own_use else None

    @property
    def kept(self) -> str | None:
        """The digits stored with the product, whatever their check digit; none if they cannot be a GTIN."""
        return self.value if _has_form(self.value) else None


def normalize_gtin(text: str | None) -> GtinResult | None:
    """Return the number in a GTIN, EAN or UPC column; none if it is blank."""
    value = _clean(text)
    if not value:
        return None
    return GtinResult(value=value, valid=_has_form(value) and _weighted_sum(value) % 10 == 0)


def normalize_isbn(text: str | None) -> GtinResult | None:
    """Return the number in an ISBN column; ten characters become the thirteen digits under the bar code.

    Only for columns named ISBN: one in eleven numbers of ten digits would pass as an ISBN.
    """
    value = _clean(text)
    if re.fullmatch(ISBN10, value):
        digits = [10 if character in "Xx" else int(character) for character in value]
        if sum(digit * weight for digit, weight in zip(digits, range(10, 0, -1), strict=True)) % 11 == 0:
            return normalize_gtin(with_check_digit("978" + value[:9]))
    return normalize_gtin(value)


def with_check_digit(digits: str) -> str:
    """Return the digits followed by the check digit that makes them a GTIN."""
    return digits + str(-_weighted_sum(digits + "0") % 10)


def _clean(text: str | None) -> str:
    """Remove blanks, hyphens, a label, and the apostrophe that marks text in spreadsheets."""
    given = trim(text)
    labeled = re.fullmatch(LABELED, given)
    return (labeled[1] if labeled else given).translate(_IGNORED).lstrip("'")[:LONGEST_KEPT]


def _has_form(text: str) -> bool:
    return len(text) in GTIN_LENGTHS and bool(re.fullmatch(DIGITS, text)) and text.strip("0") != ""


def _weighted_sum(digits: str) -> int:
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
