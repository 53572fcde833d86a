"""Everything that one page says, collected before anything is decided."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from harvester.kernel.currencies import currency_code
from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.stock import Availability
from harvester.scraping.offers import Evidence, units
from harvester.scraping.reader import phrases
from harvester.scraping.reader.availability import Stocked, collect, read_word
from harvester.scraping.reader.choice import Choice, choose
from harvester.scraping.reader.document import Block, Document, Mark
from harvester.scraping.reader.facts import Fact, Money, prices_of, proven_style
from harvester.scraping.reader.markup import form_ids, form_prices, metas_of
from harvester.scraping.reader.places import Places
from harvester.scraping.reader.products import Offer, OfferRules, Title, find_title, main_nodes, offers_of
from harvester.scraping.reader.region import Region, find_region
from harvester.scraping.reader.structured import Node, product_nodes, texts_of
from harvester.scraping.reader.visible import SELLING, Role, Seen, prices_in
from harvester.scraping.site import ReadContext, Site

#: Places that people are shown.
MOST_EVIDENCE: Final = 60


@dataclass(kw_only=True)
class Page:
    """What a page says about its product.

    Attributes:
        document, site, context: what was read, and how.
        blocks: the visible text.
        nodes: all products of the structured data; `main`: those that are the product of the page.
        offers: of the product, or of the variant that the address asks for.
        metas, form: meta tags, and numbers in the buy form.
        title: of the page.
        region: where the product is.
        places: looks up the places of the site.
        money: how amounts are read.
        prices: amounts of the markup that claim to be the price; `originals`: those that do not.
        seen: amounts of the page; `near`: those next to title and button; `choice`: what those leave.
        stocked: what is said about stock.
        is_open: the markup gives a range of prices.
        missing_variant: what the address asks for, if nothing on the page confirms it.
    """

    document: Document
    site: Site
    context: ReadContext
    blocks: list[Block]
    nodes: list[Node]
    main: list[Node]
    offers: list[Offer]
    metas: dict[str, list[Fact]]
    form: dict[str, Fact]
    title: Title
    region: Region | None
    places: Places
    money: Money
    prices: list[Fact]
    originals: list[Fact]
    seen: list[Seen]
    near: list[Seen]
    choice: Choice
    stocked: Stocked
    is_open: bool
    missing_variant: str
    fields: list[Fact]

    def evidence(self) -> tuple[Evidence, ...]:
        """Return the places that were looked at, those that say the price first."""
        shown = [each.fact for each in self.near]
        for each in self.near:
            each.fact.note = (
                each.fact.note or each.why or ("" if each.fact.is_used or each.fact.fault else each.role.value)
            )
        facts = [*self.prices, *shown, *self.stocked.facts, *self.fields, *self.originals]
        facts.sort(key=lambda fact: not fact.is_used)
        unique = list({(fact.field, str(fact.text), str(fact.place), fact.is_used): fact for fact in facts}.values())
        return tuple(fact.evidence(self.document.place_of) for fact in unique[:MOST_EVIDENCE])


def look_at(document: Document, site: Site, context: ReadContext) -> Page:
    """Return everything that a page says."""
    nodes, metas = product_nodes(document), metas_of(document)
    title = find_title(document, nodes, metas)
    protected = {title.element, *title.element.iterancestors()} if title.element is not None else set()
    buttons: list[tuple[Any, int, int]] = []
    body = next(document.root.iter("body"), document.root)
    blocks = document.blocks(body, protected, buttons=buttons)
    titles = [title.text] if title.text else list(title.all)
    main = main_nodes(nodes, titles, title.element)
    offers = offers_of(main, OfferRules(len(main)))
    region = find_region(blocks, buttons, title)
    button = region.button.element if region and region.button else None
    form = form_ids(button)
    offers, missing = _asked_for(offers, main, form, region, context)
    prices = [fact for offer in offers for fact in offer.prices]
    originals = [fact for offer in offers for fact in offer.originals]
    in_form = form_prices(region.root, button) if region else []
    prices += metas.get("price", []) + [fact for fact in in_form if fact.field == "price"]
    originals += metas.get("original", []) + [fact for fact in in_form if fact.field == "original"]
    seen = prices_in(region.near(), protected) if region else []
    money = _money(prices, originals, seen, context)
    for fact in [*prices, *originals]:
        money.read(fact)
    near = region.prices(seen) if region else []
    expected = {price.currency for price in prices_of(prices)}
    choice = choose(near, money, expected.pop() if len(expected) == 1 else None)
    is_regular = choice.used and all(each.role is Role.REGULAR for each in choice.used)
    short = [block.text for block in region.texts() if len(block.text) <= LONGEST_SAVING] if region else []
    if is_regular and choice.original is None and any(map(_is_price_cut, short)):
        choice = Choice(problem="the page shows a regular price and a saving, and not what it costs now")
    prices = _without_cents(prices, choice)
    for fact in prices:
        if fact.syntax == "data attribute" and fact.fault:
            fact.note = fact.note or fact.fault.sentence
    stocks = _stocks(offers) + metas.get("availability", [])
    return Page(
        document=document,
        site=site,
        context=context,
        blocks=blocks,
        nodes=nodes,
        main=main,
        offers=offers,
        metas=metas,
        form=form,
        title=title,
        region=region,
        places=Places(document, main, site, protected),
        money=money,
        prices=[fact for fact in prices if not (fact.syntax == "data attribute" and fact.note)],
        originals=originals + [fact for fact in prices if fact.syntax == "data attribute" and fact.note],
        seen=seen,
        near=near,
        choice=choice,
        stocked=collect(stocks, region, site),
        is_open=any(offer.is_open for offer in offers),
        missing_variant=missing,
        fields=[],
    )


def _asked_for(
    offers: list[Offer], main: Sequence[Node], form: Mapping[str, Fact], region: Region | None, context: ReadContext
) -> tuple[list[Offer], str]:
    """Return the offers of the variant that the address asks for, and what it asks for if nothing confirms it."""
    wanted = {value.strip().casefold() for value in context.variant.values()} - {""}
    if not wanted:
        # If each variant of one product has an address, one may be that of the page.
        last = urlsplit(context.url).path.rstrip("/").rpartition("/")[2].casefold()
        has_addresses = len({offer.node for offer in offers}) == 1 and all(
            texts_of(offer.data.get("url") or offer.variant.get("url")) for offer in offers
        )
        own = [offer for offer in offers if last and last in offer.own_names] if has_addresses else []
        return own or offers, ""
    own = [offer for offer in offers if offer.names & wanted]
    if own:
        return own, ""
    said = {fact.text.casefold() for fact in form.values()}
    for node in main:
        said |= {
            str(text).casefold()
            for key in ("sku", "productID", "mpn")
            for text in [node.data.get(key)]
            if isinstance(text, str)
        }
    if region is not None:
        for block in region.texts():
            if len(block.text) <= LONGEST_SAVING:
                said |= set(re.split(r"[\s:#]+", block.plain.casefold()))
    return offers, "" if said & wanted else ", ".join(sorted(wanted))


def _money(prices: Sequence[Fact], originals: Sequence[Fact], seen: Sequence[Seen], context: ReadContext) -> Money:
    """Return the currency that the markup names and the decimal separator that the amounts of the page prove."""
    named = set()
    for fact in [*prices, *originals]:
        try:
            named.add(currency_code(fact.currency))
        except Rejected:
            continue
    named.discard(None)
    currency = named.pop() if len(named) == 1 else None if named else context.default_currency
    if not named and currency is None:
        shown = {price.currency for price in prices_of(Money().read(replace(each.fact)) for each in seen)}
        currency = shown.pop() if len(shown) == 1 else None
    numbers = [match[0] for each in seen if (match := re.search(r"\d[\d.,' ]*\d|\d", each.fact.text))]
    return Money(currency=currency, style=proven_style(numbers))


#: "Save 20 %", "-20 %", "20 % off", or the label of a sale price without the price.
_PERCENT_OFF: Final = re.compile(
    r"(?i)(?:sav|spar|[-\u2212\u2013])\w*\s?\d{1,2}\s?%|\d\s?%\s?(?:off|rabatt|sparen|gespart)|"
    r"(?:sale|special|current)\sprice\s?:?\s*$"
)
LONGEST_SAVING: Final = 120


def _is_price_cut(text: str) -> bool:
    """Whether a text says that everybody pays less than usual."""
    lower = text.lower()
    is_for_some = phrases.MEMBER.search(lower) or phrases.CONDITIONAL.search(lower)
    return bool(_PERCENT_OFF.search(text)) and not is_for_some


def _without_cents(prices: list[Fact], choice: Choice) -> list[Fact]:
    """Mark whole numbers in data attributes that are another price in cents, and zeros, which are not filled in."""
    others = prices_of(fact for fact in prices if fact.syntax != "data attribute")
    others += [choice.price] if choice.price else []
    for fact in prices:
        if fact.syntax == "data attribute":
            if fact.text.isdigit() and any(units(price) == int(fact.text) and fact.value != price for price in others):
                fact.note = "in cents"
            elif fact.fault is Fault.PRICE_ZERO:
                fact.note = "zero"
    return prices


def _stocks(offers: Sequence[Offer]) -> list[Fact]:
    """Return what the offers say about stock; a product is in stock if one of its variants is."""
    facts = [fact for offer in offers for fact in offer.stocks]
    means = {read_word(fact.text) for fact in facts}
    names = {offer.own_names for offer in offers} - {frozenset()}
    if len(means) > 1 and len(names) == len(offers) and Availability.IN_STOCK in means:
        return [fact for fact in facts if read_word(fact.text) is Availability.IN_STOCK]
    return facts


def sticky_prices(page: Page) -> list[Seen]:
    """Return the amounts of a bar that repeats title and price."""
    near = {id(each) for each in page.near}
    return [each for each in page.seen if each.marks & Mark.STICKY and each.role in SELLING and id(each) not in near]
