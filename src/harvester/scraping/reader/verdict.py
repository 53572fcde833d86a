"""Decides on price and stock: what a site file says leads; without one, independent evidence must agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harvester.kernel.money import Price
from harvester.kernel.rejects import Fault
from harvester.kernel.stock import Availability
from harvester.scraping.reader import phrases, stock_phrases
from harvester.scraping.reader.availability import CLASS_WORDS, button_says, read_phrase, read_word
from harvester.scraping.reader.choice import choose
from harvester.scraping.reader.facts import Fact, prices_of, why_unreadable
from harvester.scraping.reader.page import Page, sticky_prices
from harvester.scraping.reader.region import is_enabled
from harvester.scraping.reader.visible import Role, Seen
from harvester.scraping.states import PageOutcome

#: Characters of a text that says why there is no price.
LONGEST_NOTE: Final = 200
_NO_CURRENCY: Final = frozenset({Fault.NO_CURRENCY, Fault.CURRENCY_AMBIGUOUS})


@dataclass(kw_only=True)
class PriceVerdict:
    """The price, or why there is none.

    Attributes:
        outcome: OFFER if the price is certain.
        detail: in words.
        price: also in doubt, if a place that leads says one.
        original: the former price.
        is_tax_included: if the page says so.
        is_missing: the page shows no price at all.
    """

    outcome: PageOutcome = PageOutcome.OFFER
    detail: str = ""
    price: Price | None = None
    original: Price | None = None
    is_tax_included: bool | None = None
    is_missing: bool = False


@dataclass(kw_only=True)
class StockVerdict:
    """The availability, or why there is none."""

    outcome: PageOutcome = PageOutcome.OFFER
    detail: str = ""
    availability: Availability | None = None


def judge_price(page: Page) -> PriceVerdict:
    """Return the price of a page: from the place that leads, or from evidence that agrees."""
    chosen = page.context.chosen.get("price")
    places = (chosen,) if chosen else page.site.places.get("price", ())
    if not places:
        return _agreed(page)
    verdict = _led(page, places, is_chosen=bool(chosen))
    if (
        verdict.is_missing
        and not page.site.domains
        and not chosen
        and verdict.outcome is PageOutcome.SELECTOR_NOT_FOUND
    ):
        # A platform's file knows some of its themes; a page of another one is like that of any shop.
        return _agreed(page)
    return verdict


def judge_stock(page: Page) -> StockVerdict:
    """Return the availability of a page, in the same way."""
    chosen = page.context.chosen.get("availability")
    places = (chosen,) if chosen else page.site.places.get("availability", ())
    found = page.places.find("availability", places)
    if not found.facts:
        if places and page.site.domains:
            return StockVerdict(
                outcome=PageOutcome.UNKNOWN_AVAILABILITY, detail="The site's places for stock were not found."
            )
        return _agreed_stock(page)
    for number, fact in enumerate(found.facts):
        element = found.elements[number] if found.elements else None
        if element is not None and element.tag in {"button", "input"} and stock_phrases.BUY.search(fact.text.lower()):
            is_there = is_enabled(element) and page.document.is_seen(element)
            fact.value = button_says(fact.text, is_enabled=is_there)
            continue
        words = {CLASS_WORDS[word] for word in fact.text.lower().split() if word in CLASS_WORDS}
        if fact.syntax == "data attribute" and words:
            fact.value = words.pop() if len(words) == 1 else None
        else:
            fact.value = read_word(fact.text) or read_phrase(fact.text, page.site)
    page.fields.extend(found.facts)
    said = {fact.value for fact in found.facts if fact.value is not None}
    if not said and found.elements and all(each.tag in {"button", "input"} for each in found.elements):
        return _agreed_stock(page)  # a button that is disabled and does not say why
    if not said:
        shown = found.facts[0].text[:80]
        return StockVerdict(
            outcome=PageOutcome.UNKNOWN_AVAILABILITY, detail=f"The text about stock is not known: {shown!r}."
        )
    structured = page.stocked.said(fact for fact in page.stocked.markup if fact.syntax != "data attribute")
    words = page.stocked.said(page.stocked.page)
    is_button = bool(found.elements) and all(each.tag in {"button", "input"} for each in found.elements)
    is_denied = Availability.OUT_OF_STOCK in words and Availability.OUT_OF_STOCK not in said
    is_denied = is_denied or (is_button and Availability.IN_STOCK in said and bool(page.stocked.doubts or words - said))
    if len(said) > 1 or (not chosen and (is_denied or (structured and not said & structured))):
        both = ", ".join(sorted(said | structured | words))
        return StockVerdict(
            outcome=PageOutcome.CONTRADICTION, detail=f"Page and structured data disagree about stock: {both}."
        )
    for fact in found.facts:
        fact.is_used = fact.value is not None
    return StockVerdict(availability=said.pop())


def _agreed_stock(page: Page) -> StockVerdict:
    """Return the availability that markup and page say independently of each other."""
    stocked = page.stocked
    markup, shown = stocked.said(stocked.markup), stocked.on_page()
    if not markup and not shown and not stocked.doubts:
        return StockVerdict(outcome=PageOutcome.UNKNOWN_AVAILABILITY, detail="Nothing says whether it can be bought.")
    button = stocked.button.value if stocked.button else None
    # Shops forget to write that something is sold out, but not that it can be bought; nothing here can be pressed.
    is_gone = markup == {Availability.OUT_OF_STOCK} and not shown and button is None
    if not stocked.markup:
        markup = stocked.words_and_button()
    if is_gone or (len(markup) == 1 and markup == shown):
        [availability] = markup
        for fact in stocked.facts:
            fact.is_used = fact.value is availability
        return StockVerdict(availability=availability)
    doubt = f", but also {stocked.doubts[0].text[:80]!r}" if stocked.doubts else ""
    said = f"the markup says {', '.join(sorted(markup)) or 'nothing'}, the page {', '.join(sorted(shown)) or 'nothing'}"
    return StockVerdict(outcome=PageOutcome.NO_AGREEMENT, detail=f"Stock: {said}{doubt}.")


def _agreed(page: Page) -> PriceVerdict:  # noqa: C901, PLR0911 - one reason each, in their order
    """Return the price if one of the markup equals the one on the page and no other of the markup differs."""

    def no(detail: str) -> PriceVerdict:
        return PriceVerdict(outcome=PageOutcome.NO_AGREEMENT, detail=detail, is_missing=not page.near)

    prices, choice = prices_of(page.prices), page.choice
    said = ", ".join(str(price) for price in prices[:5]) or "none"
    if page.missing_variant:
        return no(f"The address asks for the variant {page.missing_variant}, which the page does not name.")
    if withheld := _withheld(page):
        return no(f"The page does not show the price: {withheld!r}.")
    if page.is_open:
        return no("The markup gives a range of prices.")
    zeros = [fact for fact in page.prices if fact.fault is Fault.PRICE_ZERO]
    if zeros and not prices and (choice.price is None and (choice.is_zero or not choice.problem)):
        return PriceVerdict(outcome=PageOutcome.ZERO_PRICE_EXTRACTED, detail="The markup gives a price of zero.")
    unreadable = [fact for fact in page.prices if fact.fault and any(map(str.isdigit, fact.text))]
    if unreadable and (fault := unreadable[0].fault):
        return no(f"The price {unreadable[0].text[:40]!r} of the markup cannot be read: {why_unreadable(fault)}.")
    if choice.price is None:
        if choice.problem:
            return no(f"On the page, {choice.problem}; prices in the markup: {said}.")
        if not prices:
            return PriceVerdict(outcome=PageOutcome.PRICE_NOT_FOUND, detail="There is no price.", is_missing=True)
        return PriceVerdict(
            outcome=PageOutcome.NO_AGREEMENT,
            detail=f"No price is shown next to the title or the button; prices in the markup: {said}.",
            is_missing=True,
        )
    if len(prices) != 1 or prices[0] != choice.price:
        return no(f"Prices in the markup: {said}; on the page: {choice.price}.")
    for other in sticky_prices(page):
        if page.money.read(other.fact).value not in (None, choice.price):
            return no(f"The page shows {choice.price}, and {other.fact.value} in another place.")
    for fact in page.prices:
        fact.is_used = fact.value == choice.price
    return _priced(page, choice.price, choice.used, choice.original, is_tax_included=choice.is_tax_included)


def _withheld(page: Page) -> str:
    """Return the text with which a page says that it does not show its price."""
    for block in page.region.near() if page.region else page.blocks:
        if len(block.text) <= LONGEST_NOTE and (match := phrases.PRICE_WITHHELD.search(block.plain.lower())):
            return match[0]
    return ""


def _led(page: Page, places: Sequence[str], *, is_chosen: bool) -> PriceVerdict:  # noqa: PLR0911, PLR0912, C901 - one each
    """Return the price of the place that leads, unless structured data or the rest of the page contradicts it."""
    found = page.places.find("price", places)
    page.fields.extend([*found.facts, *(each.fact for each in found.seen)])
    for fact in found.facts:
        page.money.read(fact)
    choice = choose(found.seen, page.money)
    values = list(dict.fromkeys([*prices_of(found.facts), *([choice.price] if choice.price else [])]))
    faults = [fact for fact in [*found.facts, *(each.fact for each in found.seen)] if fact.fault]
    if page.missing_variant and not is_chosen:
        return PriceVerdict(
            outcome=PageOutcome.AMBIGUOUS_PRICE,
            detail=f"The address asks for the variant {page.missing_variant}, which the page does not name.",
        )
    if (withheld := _withheld(page)) and not is_chosen:
        return PriceVerdict(
            outcome=PageOutcome.AMBIGUOUS_PRICE, detail=f"The page does not show the price: {withheld!r}."
        )
    if choice.problem and not choice.is_zero and not (faults and len(found.seen) == 1):
        return PriceVerdict(outcome=PageOutcome.AMBIGUOUS_PRICE, detail=f"In the place of the price, {choice.problem}.")
    if not values and not faults:
        if found.seen and any(each.role in (Role.FROM, Role.RANGE) for each in found.seen):
            return PriceVerdict(
                outcome=PageOutcome.AMBIGUOUS_PRICE, detail="In the place of the price is a range of prices."
            )
        outcome = PageOutcome.PRICE_NOT_FOUND if found.is_there else PageOutcome.SELECTOR_NOT_FOUND
        return PriceVerdict(
            outcome=outcome, detail="The place of the price was not found or is empty.", is_missing=True
        )
    if not values or (found.facts and any(fact.fault for fact in found.facts)):
        return _unreadable(faults)
    if len(values) > 1:
        return PriceVerdict(
            outcome=PageOutcome.AMBIGUOUS_PRICE,
            detail=f"The place of the price gives {', '.join(map(str, values[:5]))}.",
        )
    [price] = values
    verdict = _priced(
        page, price, choice.used, choice.original or page.choice.original, is_tax_included=choice.is_tax_included
    )
    for fact in found.facts:
        fact.is_used = True
    if is_chosen:
        return verdict
    others = [
        fact
        for fact in page.prices
        if fact.syntax in {"json-ld", "microdata", "meta"} and fact.value != price and fact.fault is None
    ]
    if others or page.is_open:
        shown = ", ".join(str(other) for other in prices_of(others)[:5]) or "a range"
        verdict.outcome, verdict.detail = (
            PageOutcome.CONTRADICTION,
            f"The page says {price}, its structured data {shown}.",
        )
    elif not page.main and len(page.nodes) == 1:
        verdict.outcome, verdict.detail = (
            PageOutcome.CONTRADICTION,
            "The structured data is about another product than the title.",
        )
    elif one := next(
        (each for each in page.near if each.role is Role.TIER_OF_ONE and each.fact.value not in (None, price)), None
    ):
        verdict.outcome = PageOutcome.CONTRADICTION
        verdict.detail = f"The place of the price says {price}, and the table of quantities {one.fact.value} for one."
    elif page.choice.price not in (None, price):
        verdict.outcome = PageOutcome.CONTRADICTION
        verdict.detail = f"The place of the price says {price}, and next to the title is {page.choice.price}."
    return verdict


def _unreadable(faults: Sequence[Fact]) -> PriceVerdict:
    """Return the outcome of a place whose amount cannot be read."""
    fault = faults[0].fault
    assert fault is not None  # noqa: S101 - for the type checker
    outcome = PageOutcome.INVALID_PRICE
    if fault is Fault.PRICE_ZERO:
        outcome = PageOutcome.ZERO_PRICE_EXTRACTED
    elif fault in (Fault.PRICE_NOT_EXACT, Fault.PRICE_AMBIGUOUS):
        outcome = PageOutcome.AMBIGUOUS_PRICE
    elif fault in _NO_CURRENCY:
        outcome = PageOutcome.MISSING_REQUIRED_FIELD
    shown = faults[0].text[:40]
    return PriceVerdict(outcome=outcome, detail=f"The price {shown!r} cannot be read: {why_unreadable(fault)}.")


def _priced(
    page: Page, price: Price, used: Sequence[Seen], original: Seen | None, *, is_tax_included: bool | None
) -> PriceVerdict:
    """Return a verdict with a price; the former price is the one shown, or else that of the markup."""
    for each in used:
        each.fact.is_used = each.fact.value == price
    before = original.fact.value if original and isinstance(original.fact.value, Price) else None
    if before is None:
        listed = [fact for fact in page.originals if fact.field == "original"]
        former = [each for each in prices_of(listed) if each.currency == price.currency and each.amount > price.amount]
        before = former[0] if len(former) == 1 else None
    elif original is not None:
        original.fact.field, original.fact.is_used = "original", True
    if before is not None and (before.currency != price.currency or before.amount <= price.amount):
        before = None
    declared = {offer.is_tax_included for offer in page.offers} - {None}
    if is_tax_included is None and len(declared) == 1:
        is_tax_included = declared.pop()
    return PriceVerdict(price=price, original=before, is_tax_included=is_tax_included)
