"""Column names and stock words, normalized for comparison."""

from harvester.kernel.text import BLANKS, HYPHENS

#: Left out of a comparison: "Current Price", "current_price" and "Current-Price" are one name.
IGNORED = BLANKS + "_" + HYPHENS

_IGNORED = dict.fromkeys(map(ord, IGNORED))


def normalize_header(text: str | None) -> str:
    """Return the form in which two column names are compared."""
    return (text or "").lower().translate(_IGNORED)
