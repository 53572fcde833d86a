"""Column names and stock words, compared without what people change about them."""

from harvester.kernel.text import BLANKS, HYPHENS

#: Left out of a comparison: "Current Price", "current_price" and "Current-Price" are one name.
IGNORED = BLANKS + "_" + HYPHENS

_IGNORED = dict.fromkeys(map(ord, IGNORED))


def normalize_header(text: str | None) -> str:
    """The form in which two column names are compared."""
    return (text or "").lower().translate(_IGNORED)
