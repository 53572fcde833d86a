"""Reads a product page: looks at everything it says, and decides whether that is certain enough to be an offer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from harvester.kernel.stock import Availability
from harvester.scraping.offers import LONGEST_TITLE, PageReading
from harvester.scraping.reader import phrases
from harvester.scraping.reader.document import Document, text_of
from harvester.scraping.reader.offer import make_offer, page_title
from harvester.scraping.reader.page import Page, look_at
from harvester.scraping.reader.places import check_site
from harvester.scraping.reader.verdict import judge_price, judge_stock
from harvester.scraping.site import OVERRIDABLE, ReadContext, Site
from harvester.scraping.states import PageOutcome

#: Characters of a page's text that people may look at.
LONGEST_TEXT: Final = 5_000
#: A page with less text and no structured data says nothing.
LEAST_TEXT: Final = 40
#: Refusals are short; a product page may have the script of a protection service in it too.
LONGEST_REFUSAL: Final = 3_000


def read_page(
    body: bytes, *, content_type: str, site: Site, context: ReadContext, overrides: Mapping[str, Any] | None = None
) -> PageReading:
    """Return the offer of a page, or the reason why there is none, whatever the bytes are.

    Args:
        body: the page.
        content_type: header of the response; names the character set.
        site: says where to look; the one without places reads what any shop says in several places.
        context: what is known about the page.
        overrides: of the source, by the names in `OVERRIDABLE`, and their `version`; they replace what the site says.
    """
    version = site.version
    try:
        if overrides:
            version = f"{version}+{overrides.get('version', 'override')}"
            site = with_overrides(site, overrides)
        for place in context.chosen.values():
            check_site(Site(id="chosen", version="1.0.0", title="", places={"title": (place,)}))
    except (TypeError, ValueError) as problem:
        return PageReading(
            outcome=PageOutcome.SELECTOR_FAILURE,
            detail=f"An override cannot be used: {problem}.",
            adapter_id=site.id,
            adapter_version=version,
        )
    try:
        reading = _read(body, content_type, site, context)
        if site.finish is not None:
            reading = site.finish(reading, context)
    except (Exception, RecursionError) as problem:  # noqa: BLE001 - a hostile page must not end the process
        reading = PageReading(
            outcome=PageOutcome.ADAPTER_FAILED,
            detail=f"Reading the page failed: {type(problem).__name__}: {str(problem)[:200]}",
        )
    return replace(reading, adapter_id=site.id, adapter_version=version)


def with_overrides(site: Site, overrides: Mapping[str, Any]) -> Site:
    """Return a site with what a source says instead; places are replaced field by field.

    Raises:
        TypeError, ValueError: an override has an unknown name, or a place that cannot be asked.
    """
    unknown = sorted(set(overrides) - set(OVERRIDABLE) - {"version"})
    if unknown:
        raise ValueError(f"there is nothing to override named {', '.join(unknown)}")
    changed = {name: overrides[name] for name in OVERRIDABLE if name in overrides}
    for name in ("exclude", "in_stock", "out_of_stock", "backorder"):
        if name in changed:
            if isinstance(changed[name], str):
                raise TypeError(f"{name} is a list")
            changed[name] = tuple(map(str, changed[name]))
    if "places" in changed:
        places = {
            field: (given,) if isinstance(given, str) else tuple(given)
            for field, given in dict(changed["places"]).items()
        }
        changed["places"] = {**site.places, **places}
    made = replace(site, **changed)
    check_site(made)
    return made


def _read(body: bytes, content_type: str, site: Site, context: ReadContext) -> PageReading:
    document = Document(body, content_type, context.url)
    if document.root is None:
        return PageReading(outcome=PageOutcome.EMPTY_PAGE, detail="The page has no content.")
    if document.is_cut:
        return PageReading(
            outcome=PageOutcome.PAGE_STRUCTURE_CHANGED,
            detail="The page is too large or too deeply nested to be read whole.",
            text=text_of(document.root)[:LONGEST_TEXT],
        )
    page = look_at(document, site, context)
    text = _text(page)
    if refusal := _refusal(page, text, body):
        return PageReading(
            outcome=PageOutcome.BLOCKED_PAGE, detail=f"The shop refused to show the page: {refusal}.", text=text
        )
    if not page.nodes and len(text) < LEAST_TEXT and not page.metas.get("price"):
        return PageReading(
            outcome=PageOutcome.EMPTY_PAGE, detail="The page has no text; it may need a browser.", text=text
        )
    return _decide(page, text)


def _decide(page: Page, text: str) -> PageReading:
    stock, price = judge_stock(page), judge_price(page)
    title = page_title(page)
    outcome, detail, offer, warnings = PageOutcome.OFFER, "", None, []
    if not title:
        outcome, detail = PageOutcome.TITLE_NOT_FOUND, "No heading names the product."
    elif price.is_missing and price.price is None and stock.availability is Availability.OUT_OF_STOCK:
        outcome, detail = PageOutcome.OOS_NO_PRICE, "It is out of stock, and no price is shown."
    elif price.outcome is not PageOutcome.OFFER:
        outcome, detail = price.outcome, price.detail
    elif stock.outcome is not PageOutcome.OFFER:
        outcome, detail = stock.outcome, stock.detail
    if (
        title
        and price.price is not None
        and stock.availability is not None
        and outcome in (PageOutcome.OFFER, PageOutcome.CONTRADICTION)
    ):
        try:
            offer = make_offer(page, price, stock)
        except ValueError as problem:
            outcome, detail = PageOutcome.VALIDATION_FAILED, f"The values cannot be an offer: {problem}."
        if len(title) > LONGEST_TITLE:
            outcome = PageOutcome.VALIDATION_FAILED
    if offer is not None and any(fact.note == "places differ" for fact in page.fields):
        fields = sorted({fact.field for fact in page.fields if fact.note == "places differ"})
        warnings.append(f"Left out because the page names several: {', '.join(fields)}.")
    return PageReading(
        outcome=outcome, offer=offer, detail=detail, evidence=page.evidence(), text=text, warnings=tuple(warnings)
    )


def _text(page: Page) -> str:
    """Return the beginning of the page's text, from its title on."""
    first = page.region.first if page.region else 0
    lines: list[str] = []
    length = 0
    for block in page.blocks:
        if block.order >= first and (line := block.plain):
            lines.append(line)
            length += len(line) + 1
            if length > LONGEST_TEXT:
                break
    return "\n".join(lines)[:LONGEST_TEXT]


def _refusal(page: Page, text: str, body: bytes) -> str:
    """Return how a page says that it refuses a visitor; nothing for product pages."""
    if page.main or page.near or len(text) > LONGEST_REFUSAL:
        return ""
    titles = [text_of(each).lower() for each in page.document.root.iter("title", "h1")][:3]
    for title in titles:
        if phrases.REFUSING_TITLE.match(title):
            return title[:80]
    source = body[:60_000].decode("latin-1").lower()
    match = phrases.REFUSING.search(source)
    return match[0] if match and not page.nodes else ""
