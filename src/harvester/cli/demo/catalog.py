"""Catalogs of two invented outdoor shops, the same in every demo.

Kestrel & Pine sends three: as it opens, a day later, and cut short. Harbour Street sells a part of the same goods at
prices of its own.
"""

import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from urllib.parse import quote

from harvester.cli.demo.shop_lines import COLOURS, LINES

#: Columns of Impact's IR files that Kestrel & Pine fills.
IMPACT_HEADER = (
    "Unique Merchant SKU", "Product Name", "Product URL", "Image URL", "Current Price", "Original Price", "Currency",
    "Stock Availability", "Condition", "EAN", "MPN", "Manufacturer", "Product Description", "Category",
)  # fmt: skip
#: Columns of Google Merchant's text files that Harbour Street fills.
MERCHANT_HEADER = (
    "id",
    "title",
    "description",
    "link",
    "image_link",
    "availability",
    "price",
    "brand",
    "gtin",
    "product_type",
)
CURRENCY = "EUR"
SITE = "https://www.kestrelpine.example"
HARBOUR_SITE = "https://www.harbourstreet.example"
_TRACKED = "https://goto.kestrelpine.example/c/1000000/2000000/30000"
#: A price of zero means that it is withheld: the row is refused, counted and shown, and disturbs nobody.
_WITHHELD = ("KP-GIFT", "Kestrel & Pine Gift Card", f"{SITE}/gift-card", "", "0.00", "", CURRENCY, "InStock") + 6 * (
    "",
)
_VARIANT = re.compile(r"(.+?)(?: ([+-]\d+))?")


@dataclass(frozen=True, kw_only=True)
class Product:
    """Something that a shop sells; prices in cents."""

    shop: str = "KP"
    number: int
    brand: str
    model: str
    noun: str
    variant: str
    colour: str
    category: str
    price: int
    original: int | None = None

    @property
    def sku(self) -> str:
        return f"{self.shop}-{self.number}"

    @property
    def title(self) -> str:
        return f"{self.brand} {self.model} {self.noun}, {self.variant}, {self.colour}"

    @property
    def amount(self) -> Decimal:
        return Decimal(self.price) / 100

    def reduced(self, percent: int) -> "Product":
        """On sale, with the price of before beside it."""
        return replace(self, price=self.price * (100 - percent) // 100, original=self.price)

    @property
    def path(self) -> str:
        return re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-") + f"?sku={self.sku}"

    @property
    def description(self) -> str:
        return f"{self.noun} of the {self.model} line by {self.brand}, {self.variant}, in {self.colour}."


@dataclass(frozen=True, kw_only=True)
class Edition:
    """One catalog as the partner puts it on the server.

    Attributes:
        products: what is in it.
        write: makes the file, the same bytes every time.
        rejects: the rows beside the products that are refused, by reason.
    """

    products: Sequence[Product]
    write: Callable[[Sequence[Product]], bytes]
    rejects: Mapping[str, int] = field(default_factory=dict)

    @property
    def amounts(self) -> dict[str, Decimal]:
        """SKU -> what the shop asks for."""
        return {product.sku: product.amount for product in self.products}

    def file(self) -> bytes:
        return self.write(self.products)


def _impact_file(products: Sequence[Product]) -> bytes:
    """Tab separated and compressed."""
    lines = [IMPACT_HEADER, *(_impact_cells(product) for product in products), _WITHHELD]
    return gzip.compress(_tabbed(lines), mtime=0)


def _impact_cells(product: Product) -> tuple[str, ...]:
    page = quote(f"{SITE}/{product.path}", safe="")
    return (
        product.sku,
        product.title,
        f"{_TRACKED}?prodsku={product.sku}&u={page}",
        f"{SITE}/images/{product.sku}.jpg",
        _money(product.price),
        _money(product.original) if product.original else "",
        CURRENCY,
        "OutofStock" if product.number % 17 == 0 else "InStock",
        "New",
        _trade_number(product.number),
        f"{product.brand[:3].upper()}{product.number}",
        product.brand,
        f"<p>{product.description}</p>",
        product.category,
    )


def _merchant_file(products: Sequence[Product]) -> bytes:
    """Tab separated, as it is."""
    return _tabbed([MERCHANT_HEADER, *(_merchant_cells(product) for product in products)])


def _merchant_cells(product: Product) -> tuple[str, ...]:
    return (
        product.sku,
        product.title,
        product.description,
        f"{HARBOUR_SITE}/{product.path}",
        f"{HARBOUR_SITE}/images/{product.sku}.jpg",
        "out of stock" if product.number % 23 == 0 else "in stock",
        f"{_money(product.price)} {CURRENCY}",
        product.brand,
        _trade_number(product.number),
        product.category,
    )


def _tabbed(lines: Sequence[Sequence[str]]) -> bytes:
    return "".join("\t".join(cells) + "\n" for cells in lines).encode()


def _shop() -> list[Product]:
    made: list[Product] = []
    for line in LINES.strip().splitlines():
        category, brand, model, noun, price, variants = (part.strip() for part in line.split("|"))
        for text in variants.split(","):
            variant, more = _VARIANT.fullmatch(text.strip()).groups()  # type: ignore[union-attr]
            made += [
                Product(
                    number=1001 + len(made) + place,
                    brand=brand,
                    model=model,
                    noun=noun,
                    variant=variant,
                    colour=colour,
                    category=category,
                    price=int(price) + int(more or 0),
                )
                for place, colour in enumerate(COLOURS)
            ]
    return made


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _trade_number(number: int) -> str:
    """A GTIN-13 of the range that GS1 keeps for examples, with its check digit."""
    digits = f"95212345{number}"
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    return f"{digits}{-total % 10}"


def _kestrel(products: Sequence[Product]) -> Edition:
    return Edition(products=products, write=_impact_file, rejects={"PRICE_WITHHELD": 1})


_SHOP = _shop()
#: What the second catalog brings, and what it leaves out.
ARRIVAL, LEAVER = _SHOP[-1], _SHOP[40]
FIRST = _kestrel(_SHOP[:-1])
SECOND = _kestrel([one.reduced(15) if one.number % 8 == 0 else one for one in _SHOP if one is not LEAVER])
#: Well formed, but somebody exported one department only, and a few of its prices moved.
SHRUNK = _kestrel(
    [
        replace(one, price=one.price + 500, original=None) if one.number % 6 == 0 else one
        for one in SECOND.products
        if one.category.startswith("Camping")
    ]
)
#: Half of the goods, a little cheaper or a little dearer than at Kestrel & Pine.
HARBOUR = Edition(
    products=[
        replace(one, shop="HS", price=one.price * (94 + one.number % 11) // 100) for one in _SHOP if one.number % 2
    ],
    write=_merchant_file,
)
