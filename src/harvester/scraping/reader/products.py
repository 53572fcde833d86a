"""Which product of the structured data is that of the page, and what its offers say."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from harvester.scraping.reader.document import LONGEST_BLOCK, Document, is_inside, key_of, text_of
from harvester.scraping.reader.facts import Fact, Text
from harvester.scraping.reader.structured import Node, listed, texts_of, types_of

#: Letters and digits of a title of which another may be a part.
LEAST_KEY: Final = 6
#: Offers of one product that are looked at.
MOST_OFFERS: Final = 500
GTINS: Final = ("gtin", "gtin13", "gtin12", "gtin14", "gtin8", "upc", "ean", "isbn")


@dataclass(kw_only=True)
class Offer:
    """What one offer says; offers of one product may be about different variants.

    Attributes:
        prices, originals, stocks: what it costs now and before, and whether it can be bought.
        names: of the variant that it is about, in lower case; `own_names` without those of the whole product.
        is_open: it is a range of prices.
        path: JSON path within its node.
        data: the offer.
        variant: the variant of a group that it belongs to, otherwise the product.
    """

    path: str
    node: int
    data: dict[str, Any]
    variant: dict[str, Any]
    prices: list[Fact] = field(default_factory=list)
    originals: list[Fact] = field(default_factory=list)
    stocks: list[Fact] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    own_names: frozenset[str] = frozenset()
    is_open: bool = False
    is_tax_included: bool | None = None


def closeness(text: str, other: str) -> int:
    """Return how surely two titles are of one product: 3 the same, 2 one is part of the other, 1 most words, or 0."""
    text, other = text[:LONGEST_BLOCK], other[:LONGEST_BLOCK]
    first, second = key_of(text), key_of(other)
    if not first or not second:
        return 0
    if first == second:
        return 3
    shorter, longer = sorted((first, second), key=len)
    if len(shorter) >= LEAST_KEY and shorter in longer:
        return 2
    words, others = (set(re.findall(r"\w+", each.casefold())) for each in (text, other))
    return int(len(words & others) * 5 >= 3 * max(len(words), len(others)))


def main_nodes(nodes: Collection[Node], titles: Collection[str], title_element: Any) -> list[Node]:
    """Return the nodes that describe the product of the page; none if that is not certain.

    Args:
        nodes: all of the page.
        titles: those of the page, the surest first.
        title_element: where the title is; a node of microdata around it is about that product.
    """
    scored = []
    for node in nodes:
        names = texts_of(node.data.get("name"))
        score = max((closeness(_unescaped(name), title) for name in names for title in titles), default=0)
        is_around = node.syntax == "microdata" and title_element is not None and is_inside(title_element, node.element)
        if not names and is_around:
            score = 3
        scored.append((score, node))
    best = max((score for score, _ in scored), default=0)
    if not best:
        return []
    chosen = [node for score, node in scored if score == best]
    keys = {key_of(_unescaped(name)) for node in chosen for name in texts_of(node.data.get("name"))[:1]}
    if len(keys) > 1:
        return []
    identities = {identity for node in chosen for identity in _identities(node.data)}
    return [node for score, node in scored if score == best or (score and identities & _identities(node.data))]


def _identities(data: Mapping[str, Any]) -> set[str]:
    return {f"{name}:{text}" for name in ("sku", "@id", *GTINS) for text in texts_of(data.get(name))}


def _unescaped(text: str) -> str:
    return text.replace("&amp;", "&").replace("&#039;", "'").replace("&quot;", '"').replace("&#8211;", "-")


def offers_of(nodes: Collection[Node], rules: "OfferRules") -> list[Offer]:
    """Return the offers of the nodes of one product, those of its variants included."""
    found: list[Offer] = []
    for number, node in enumerate(nodes):
        for path, variant in _variants(node.data):
            given = variant.get("offers")
            currency = _first(variant.get("priceCurrency"))
            # Old microdata has the price in the product itself.
            own: dict[str, Any] | None = None
            if given is None:
                own = {key: variant[key] for key in ("price", "availability") if key in variant}
            placed = [(path.rstrip("."), own, currency)] if own else _offers(given, f"{path}offers", currency, levels=4)
            for place, data, inherited in placed:
                offer = Offer(path=place, node=number, data=data, variant=variant)
                rules.fill(offer, node.syntax, inherited)
                found.append(offer)
                if len(found) >= MOST_OFFERS:
                    return found
    return found


def _variants(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the product itself if it has offers, and the variants of a group."""
    variants = data.get("hasVariant")
    if data.get("offers") is not None or data.get("price") is not None:
        yield "", data
    for number, variant in enumerate(listed(variants)):
        if isinstance(variant, dict):
            yield (f"hasVariant[{number}]." if isinstance(variants, list) else "hasVariant."), variant


def _offers(given: Any, path: str, currency: str, *, levels: int) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Return offers with their paths and the currency named around them; offers inside of offers too."""
    for number, data in enumerate(listed(given)):
        if not isinstance(data, dict) or not levels:
            continue
        place = f"{path}[{number}]" if isinstance(given, list) else path
        own = _first(data.get("priceCurrency")) or currency
        inner = data.get("offers")
        if inner is not None:
            yield from _offers(inner, f"{place}.offers", own, levels=levels - 1)
        if inner is None or any(data.get(key) is not None for key in ("price", "lowPrice", "highPrice")):
            yield place, data, own


def _first(value: Any) -> str:
    return next(iter(texts_of(value)), "")


_LISTED_TYPES: Final = re.compile("list|strike|msrp|srp|regular|suggest|original|retail", re.IGNORECASE)
_OTHER_TYPES: Final = re.compile("minimumadvertised|invoice|map$", re.IGNORECASE)
_ONE_PIECE: Final = frozenset({"", "C62", "EA", "H87", "PCE"})


@dataclass(frozen=True)
class OfferRules:
    """How an offer is read.

    Attributes:
        nodes: how many nodes the product has; paths into any but the first begin with its number.
    """

    nodes: int = 1

    def place(self, offer: Offer, rest: str) -> str:
        path = f"{offer.path}{rest}".removeprefix(".")
        return f"json:{f'[{offer.node}].' if offer.node else ''}{path}"

    def fill(self, offer: Offer, syntax: str, currency: str) -> None:
        """Read prices, stock and names of an offer from its data."""
        data = offer.data
        offer.names = _names(data) | (_names(offer.variant) if "hasVariant" not in offer.variant else set())
        offer.own_names = frozenset(offer.names if offer.path.startswith("hasVariant") else _names(data))
        if not _is_for_anybody(data):
            return
        self._add(offer, "prices", syntax, data.get("price"), rest=".price", currency=currency)
        low, high = texts_of(data.get("lowPrice")), texts_of(data.get("highPrice"))
        if low and high and low[0].rstrip("0").rstrip(".") == high[0].rstrip("0").rstrip("."):
            self._add(offer, "prices", syntax, low[0], rest=".lowPrice", currency=currency)
        elif (low or high) and not (data.get("offers") or []):
            offer.is_open = True
            for texts, name in ((low, ".lowPrice"), (high, ".highPrice")):
                for fact in self._add(offer, "originals", syntax, texts, rest=name, currency=currency):
                    fact.note, fact.field = "one end of a range of prices", "range"
        specifications = data.get("priceSpecification")
        for number, part in enumerate(listed(specifications)):
            if isinstance(part, dict):
                place = f".priceSpecification[{number}]" if isinstance(specifications, list) else ".priceSpecification"
                self._specification(offer, syntax, part, place, _first(part.get("priceCurrency")) or currency)
        for text in texts_of(data.get("availability")):
            where = text.place or self.place(offer, ".availability")
            offer.stocks.append(Fact(field="availability", text=text, syntax=syntax, place=where))

    def _specification(self, offer: Offer, syntax: str, part: dict[str, Any], place: str, currency: str) -> None:
        """Read one price of several: the list price, the price of one piece, or of something else."""
        kinds, price_type = types_of(part), _first(part.get("priceType"))
        unit = _first(part.get("unitCode")) or _first(part.get("unitText"))
        is_of_unit = part.get("referenceQuantity") is not None or unit not in _ONE_PIECE
        if kinds & {"DeliveryChargeSpecification", "PaymentChargeSpecification"} or not _is_for_anybody(part):
            return
        if isinstance(part.get("valueAddedTaxIncluded"), (bool, Text)):
            offer.is_tax_included = str(part["valueAddedTaxIncluded"]).lower() in {"true", "1"}
        is_listed = bool(_LISTED_TYPES.search(price_type.rsplit("/", 1)[-1]))
        target = "originals" if is_listed or is_of_unit else "prices"
        if _OTHER_TYPES.search(price_type):
            return
        for fact in self._add(offer, target, syntax, part.get("price"), rest=f"{place}.price", currency=currency):
            if is_of_unit:
                fact.note, fact.field = "the price of a unit of measure", "unit price"
            elif is_listed:
                fact.note = "a list price"

    def _add(self, offer: Offer, target: str, syntax: str, value: Any, *, rest: str, currency: str) -> list[Fact]:
        name = "price" if target == "prices" else "original"
        facts = [
            Fact(field=name, text=text, syntax=syntax, place=text.place or self.place(offer, rest), currency=currency)
            for text in texts_of(value)
        ]
        getattr(offer, target).extend(facts)
        return facts


def _is_for_anybody(data: Mapping[str, Any]) -> bool:
    """Whether a price is for everybody who buys one: not for members, for many, or per month."""
    if any(
        data.get(key) for key in ("validForMemberTier", "membershipPointsEarned", "billingDuration", "billingIncrement")
    ):
        return False
    quantity = data.get("eligibleQuantity")
    least = next(
        (_first(each.get("minValue") or each.get("value")) for each in listed(quantity) if isinstance(each, dict)), ""
    )
    return not least or least.split(".")[0] in {"0", "1"}


def _names(data: Mapping[str, Any]) -> set[str]:
    """Return the names by which an address may ask for this variant, in lower case."""
    names = {
        text.casefold() for key in ("sku", "productID", "mpn", "identifier", *GTINS) for text in texts_of(data.get(key))
    }
    for address in [*texts_of(data.get("url")), *texts_of(data.get("@id"))]:
        try:
            parts = urlsplit(address)
        except ValueError:
            continue
        names |= {value.casefold() for _, value in parse_qsl(parts.query)}
        names |= {parts.path.rstrip("/").rsplit("/", 1)[-1].casefold(), parts.fragment.casefold()}
    return {name.removeprefix("sku:").strip() for name in names} - {""}


@dataclass(frozen=True, kw_only=True)
class Title:
    """The title of a page: its text, where it is, and every title that the page gives itself."""

    text: str = ""
    element: Any = None
    all: tuple[str, ...] = ()


def find_title(document: Document, nodes: Collection[Node], metas: Mapping[str, list[Fact]]) -> Title:
    """Return the heading that names the product of the page."""
    root = document.root
    named = [_unescaped(text) for node in nodes for text in texts_of(node.data.get("name"))[:1]]
    page = [fact.text for fact in metas.get("title", [])] + [text_of(each) for each in root.iter("title")][:1]
    headings = [(each, text_of(each)) for each in root.iter("h1")][:20]
    headings = [(each, text) for each, text in headings if text]
    scored = [
        (sum(closeness(text, other) for other in page), max((closeness(text, name) for name in named), default=0))
        for _, text in headings
    ]
    best = max(scored, default=(0, 0))
    if headings and (best > (0, 0) or len(headings) == 1) and scored.count(best) == 1:
        element, text = headings[scored.index(best)]
        return Title(text=text, element=element, all=(text,))
    if headings and best > (0, 0):
        # The same title twice: in a bar that sticks to the top, and where it belongs.
        same = [pair for pair, score in zip(headings, scored, strict=True) if score == best]
        if len({key_of(text) for _, text in same}) == 1:
            element, text = next((pair for pair in same if document.is_seen(pair[0])), same[0])
            return Title(text=text, element=element, all=(text,))
        return Title(all=tuple(page))  # several products have a heading each
    wanted = {key_of(text) for text in [*named, *page]} - {""}
    for element in root.xpath(
        "//h2|//h3|//h4|//*[@itemprop='name']|//*[contains(@class,'title') or contains(@class,'name')]"
    )[:300]:
        text = text_of(element)
        if key_of(text) in wanted:
            return Title(text=text, element=element, all=(text,))
    return Title(all=tuple(page))
