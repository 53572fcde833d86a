"""The values that travel between the steps of reading a page: the offer, the evidence for it, and the reading."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any

from harvester.kernel.money import Price
from harvester.kernel.stock import Availability
from harvester.scraping.states import PageOutcome

#: Characters of a title; a longer one is not a title.
LONGEST_TITLE = 1000
#: Cents, or the smallest unit of another currency.
LEAST_UNITS, MOST_UNITS = 1, 99_999_999


@dataclass(frozen=True, kw_only=True)
class ScrapedOffer:
    """The one product of a page, as the page says it. Money is exact (`Price` has the decimals of its currency).

    Attributes:
        title: as shown.
        price: what one piece, box or pack costs now.
        availability: whether it can be bought.
        original: the crossed-out price, only if it is higher.
        product_id: the shop's own number of the product or variant.
        sku: the shop's own article number.
        gtin: digits of a valid GTIN.
        mpn: the manufacturer's number.
        brand: of the manufacturer; never the shop's own name.
        image: address.
        caliber, grain_weight, round_count, case_material: of ammunition, where the title says so; also the next three.
        bullet_type, load_type, shell_length: see there.
        shipping: what shipping costs, if the page says so for this product.
        is_tax_included: whether the price contains tax, if the page says so.
    """

    title: str
    price: Price
    availability: Availability
    original: Price | None = None
    product_id: str | None = None
    sku: str | None = None
    gtin: str | None = None
    mpn: str | None = None
    brand: str | None = None
    image: str | None = None
    caliber: str | None = None
    grain_weight: int | None = None
    round_count: int | None = None
    case_material: str | None = None
    bullet_type: str | None = None
    load_type: str | None = None
    shell_length: str | None = None
    shipping: Price | None = None
    is_tax_included: bool | None = None

    def __post_init__(self) -> None:
        if not self.title.strip() or len(self.title) > LONGEST_TITLE:
            raise ValueError(f"a title has 1 to {LONGEST_TITLE} characters")
        if not LEAST_UNITS <= units(self.price) <= MOST_UNITS:
            raise ValueError(f"a price has {LEAST_UNITS} to {MOST_UNITS} of the smallest unit of its currency")
        if self.original and (
            self.original.currency != self.price.currency or self.original.amount <= self.price.amount
        ):
            raise ValueError("an original price is higher than the price, in the same currency")

    @property
    def cost_per_round(self) -> Price | None:
        """The price of one round, rounded to the smallest unit; none if that would be nothing."""
        if not self.round_count:
            return None
        per_round = (self.price.amount / self.round_count).quantize(self.price.amount)
        return Price(amount=per_round, currency=self.price.currency) if per_round > 0 else None


def offer_to_json(offer: ScrapedOffer) -> dict[str, Any]:
    """Return an offer as it is stored with a part; prices as text such as "19.99 USD"."""
    values = {each.name: getattr(offer, each.name) for each in fields(offer)}
    return {
        name: str(value) if isinstance(value, Price) else value for name, value in values.items() if value is not None
    }


def offer_from_json(stored: Mapping[str, Any]) -> ScrapedOffer:
    """Return an offer that was stored."""
    values = dict(stored)
    for name in ("price", "original", "shipping"):
        if name in values:
            amount, currency = values[name].split(" ")
            values[name] = Price(amount=Decimal(amount), currency=currency)
    return ScrapedOffer(**{**values, "availability": Availability(values["availability"])})


def units(price: Price) -> int:
    """Return an amount in the smallest unit of its currency, such as cents."""
    return int(price.amount.scaleb(-int(price.amount.as_tuple().exponent)))


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One place of a page that says something.

    Attributes:
        field: what it is about, such as "price".
        value: as written there, cut to a line.
        syntax: where it is from: "json-ld", "microdata", "meta", "data attribute", "page text", "url".
        place: how to find it again: a JSON path or a CSS selector.
        is_used: whether the offer has its value from here.
        note: why it was not used.
    """

    field: str
    value: str
    syntax: str
    place: str
    is_used: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class PageReading:
    """What reading a page gave: an offer, or the reason why there is none.

    Attributes:
        outcome: OFFER, or one of the outcomes that reading alone can have.
        offer: with OFFER; also in doubt, if everything but the doubt was read.
        detail: one sentence for people about what was found or missing.
        evidence: the places that were looked at, at most a few dozen.
        text: the beginning of the page's text, for a person to look at; never HTML.
        adapter_id: which adapter read it.
        adapter_version: its version, with that of the overrides if there were any.
    """

    outcome: PageOutcome
    offer: ScrapedOffer | None = None
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    text: str = ""
    adapter_id: str = ""
    adapter_version: str = ""
    warnings: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.outcome is PageOutcome.OFFER and self.offer is None:
            raise ValueError("a reading with the outcome OFFER has an offer")
