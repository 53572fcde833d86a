"""Pages, readings and evidence of scraping as text and HTML for people. Text of pages is always escaped."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

from harvester.kernel.text import without_markup
from harvester.portal.display import NOTHING
from harvester.portal.runs.labels import code
from harvester.scraping import queries
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.site import FIELDS
from harvester.scraping.states import MEANINGS, PageOutcome, TargetStatus
from harvester.scraping.target_filters import Trouble, diagnose

#: Characters of an address in a list; its page has the rest.
LONGEST_URL: Final = 60
#: Places in a page's text that are marked; a page that says a price more often has a list of them below.
MOST_MARKS: Final = 60
#: Field of an offer -> its label, in the order in which people read them.
OFFER_LABELS: Final = {
    "title": "Title",
    "price": "Price",
    "original": "Original price",
    "availability": "Availability",
    "product_id": "Product ID",
    "sku": "SKU",
    "gtin": "GTIN",
    "mpn": "MPN",
    "brand": "Brand",
    "shipping": "Shipping",
    "is_tax_included": "Tax included",
    "caliber": "Caliber",
    "grain_weight": "Grain",
    "round_count": "Rounds",
    "cost_per_round": "Cost per round",
    "case_material": "Case",
    "bullet_type": "Bullet",
    "load_type": "Load",
    "shell_length": "Shell length",
    "image": "Image",
}
#: Note of a place that was looked at -> what it means to people.
EVIDENCE_NOTES: Final = {"unnamed": "nothing says which price this is"}
#: Field whose coverage is shown -> its label.
COVERED: Final = {name: {"availability": "Stock"}.get(name, OFFER_LABELS[name]) for name in queries.COVERED}
TROUBLES: Final = {
    Trouble.BLOCKED: "Blocked",
    Trouble.GONE: "Gone",
    Trouble.BROKEN: "Broken",
    Trouble.OUR_PROBLEM: "Our problem",
}
_TONES: Final = {
    Trouble.BLOCKED: "retryable",
    Trouble.GONE: "cancelled",
    Trouble.BROKEN: "failed",
    Trouble.OUR_PROBLEM: "retryable",
}


class State(NamedTuple):
    """How a page does, in a word and a sentence.

    Attributes:
        word: one or two words.
        tone: the state of a job that has the same color.
        reason: why.
        next_step: what to do; empty if there is nothing to do.
    """

    word: str
    tone: str
    reason: str
    next_step: str = ""

    @property
    def badge(self) -> SafeString:
        return tinted(self.word, self.tone)

    @property
    def explained(self) -> SafeString:
        """Return the badge with the reason below it, for a list."""
        return stacked(self.badge, self.reason)


def stacked(above: SafeString, note: str) -> SafeString:
    """Return a cell of a list with a note below its value."""
    return format_html('<span class="hv-stacked">{}<span class="hv-note hv-why">{}</span></span>', above, note)


def tinted(word: str, tone: str) -> SafeString:
    """Return a badge in the color of a state of a job."""
    return format_html('<span class="hv-badge hv-{}">{}</span>', tone, word)


def state_of(target: ScrapeTarget) -> State:
    """Return how a page does: switched off, one of the four troubles, never read, or fine."""
    if not target.enabled:
        return State("Off", "cancelled", "Somebody switched this page off.", "Enable it to read it again.")
    if target.status == TargetStatus.PAUSED:
        return State("Paused", "cancelled", "Somebody paused this page.", "Resume it to read it again.")
    found = diagnose(target)
    if found is not None:
        return State(TROUBLES[found.trouble], _TONES[found.trouble], found.reason, found.next_step)
    if target.waiting and target.waiting.get("reason") == PageOutcome.PRICE_MOVE:
        return State("Second look", "running", "Its price moved far. It is confirmed by reading the page again.")
    if target.last_scraped_at is None:
        return State("New", "pending", "It was never read.", "" if target.due_at else "Read it now, or set a schedule.")
    return State("Fine", "succeeded", MEANINGS[PageOutcome(target.last_status or PageOutcome.OFFER)])


def short_url(url: str) -> str:
    """Return an address without scheme, short enough for a list."""
    bare = re.sub(r"^https?://(www\.)?", "", url)
    return bare if len(bare) <= LONGEST_URL else f"{bare[: LONGEST_URL - 1]}…"


def short_path(url: str) -> str:
    """Return an address without its shop, for a list of pages of one shop."""
    bare = re.sub(r"^https?://[^/]*", "", url) or "/"
    return bare if len(bare) <= LONGEST_URL else f"{bare[: LONGEST_URL - 1]}…"


def offer_rows(found: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the fields of a stored offer with their labels."""
    return [
        (label, _plain(found[name])) for name, label in OFFER_LABELS.items() if found and found.get(name) is not None
    ]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    text = str(value)
    return code(text) if text.isupper() and "_" in text else text


def seen_of(target: ScrapeTarget) -> Mapping[str, Any]:
    """Return the last offer that was read from a page."""
    return (target.last_seen or {}).get("offer") or {}


def price_of(found: Mapping[str, Any] | None) -> SafeString:
    """Return the price of a stored offer."""
    price = (found or {}).get("price")
    if not isinstance(price, str):
        return NOTHING
    amount, _, currency = price.partition(" ")
    return format_html('<span class="hv-num hv-money">{} <small>{}</small></span>', amount, currency)


def said(detail: Mapping[str, Any]) -> str:
    """Return why a reading ended as it did, in one line."""
    for name in ("error", "note", "detail", "message"):
        if isinstance(text := detail.get(name), str) and text:
            return text
    return ""


def evidence_rows(stored: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the places that were looked at, those that were used first."""
    rows = [each for each in stored if isinstance(each, Mapping)]
    return [
        {
            "name": str(row.get("field", "")),
            "field": code(str(row.get("field", "")).upper()),
            "is_choice": row.get("field") in FIELDS,
            "value": str(row.get("value", "")),
            "syntax": str(row.get("syntax", "")),
            "place": str(row.get("place", "")),
            "note": EVIDENCE_NOTES.get(str(row.get("note", "")), str(row.get("note", ""))),
            "is_used": bool(row.get("is_used")),
        }
        for row in sorted(rows, key=lambda row: not row.get("is_used"))
    ]


def marked(text: str, values: Iterable[str]) -> SafeString:
    """Return text of a page, escaped, with the values marked that were looked at."""
    wanted = sorted({value for value in (str(each).strip() for each in values) if value}, key=len, reverse=True)
    text = without_markup(text)
    if not wanted:
        return SafeString(escape(text))
    parts, end = [], 0
    for count, found in enumerate(re.finditer("|".join(re.escape(value) for value in wanted), text)):
        if count == MOST_MARKS:
            break
        parts += [escape(text[end : found.start()]), f"<mark>{escape(found[0])}</mark>"]
        end = found.end()
    return SafeString("".join([*parts, escape(text[end:])]))
