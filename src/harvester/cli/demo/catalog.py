"""Three catalogs of an invented outdoor shop, the same in every demo: as it opens, a day later, and cut short."""

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from urllib.parse import quote

from harvester.cli.demo.shop_lines import LINES

#: Columns of Impact's IR files that the shop fills.
HEADER = (
    "Unique Merchant SKU", "Product Name", "Product URL", "Image URL", "Current Price", "Original Price", "Currency",
    "Stock Availability", "Condition", "EAN", "MPN", "Manufacturer", "Product Description", "Category",
)  # fmt: skip
CURRENCY = "EUR"
SITE = "https://www.kestrelpine.example"
_TRACKED = "https://goto.kestrelpine.example/c/1000000/2000000/30000"
#: A price of zero means that it is withheld: the row is refused, counted and shown, and disturbs nobody.
_WITHHELD = ("KP-GIFT", "Kestrel & Pine Gift Card", f"{SITE}/gift-card", "", "0.00", "", CURRENCY, "InStock") + 6 * (
    "",
)
_VARIANT = re.compile(r"(.+?)(?: ([+-]\d+))?")


@dataclass(frozen=True, kw_only=True)
class Product:
    """One row of the shop's catalog; prices in cents."""

    number: int
    brand: str
    model: str
    noun: str
    variant: str
    category: str
    price: int
    original: int | None = None

    @property
    def sku(self) -> str:
        return f"KP-{self.number}"

    @property
    def title(self) -> str:
        return f"{self.brand} {self.model} {self.noun}, {self.variant}"

    @property
    def amount(self) -> Decimal:
        return Decimal(self.price) / 100

    def reduced(self, percent: int) -> "Product":
        """On sale, with the price of before beside it."""
        return replace(self, price=self.price * (100 - percent) // 100, original=self.price)

    def cells(self) -> tuple[str, ...]:
        slug = re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-")
        page = f"{SITE}/{slug}?sku={self.sku}"
        return (
            self.sku,
            self.title,
            f"{_TRACKED}?prodsku={self.sku}&u={quote(page, safe='')}",
            f"{SITE}/images/{self.sku}.jpg",
            _money(self.price),
            _money(self.original) if self.original else "",
            CURRENCY,
            "OutofStock" if self.number % 17 == 0 else "InStock",
            "New",
            _trade_number(self.number),
            f"{self.brand[:3].upper()}{self.number}",
            self.brand,
            f"<p>{self.noun} of the {self.model} line by {self.brand}, {self.variant}.</p>",
            self.category,
        )


@dataclass(frozen=True, kw_only=True)
class Edition:
    """One catalog as the partner puts it on the server."""

    products: Sequence[Product]

    @property
    def amounts(self) -> dict[str, Decimal]:
        """SKU -> what the shop asks for."""
        return {product.sku: product.amount for product in self.products}

    def file(self) -> bytes:
        """Tab separated and compressed; the same bytes every time."""
        lines = [HEADER, *(product.cells() for product in self.products), _WITHHELD]
        return gzip.compress("".join("\t".join(cells) + "\n" for cells in lines).encode(), mtime=0)


def _shop() -> list[Product]:
    made: list[Product] = []
    for line in LINES.strip().splitlines():
        category, brand, model, noun, price, variants = (part.strip() for part in line.split("|"))
        for text in variants.split(","):
            variant, more = _VARIANT.fullmatch(text.strip()).groups()  # type: ignore[union-attr]
            made.append(
                Product(
                    number=1001 + len(made),
                    brand=brand,
                    model=model,
                    noun=noun,
                    variant=variant,
                    category=category,
                    price=int(price) + int(more or 0),
                )
            )
    return made


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _trade_number(number: int) -> str:
    """A GTIN-13 of the range that GS1 keeps for examples, with its check digit."""
    digits = f"95212345{number}"
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    return f"{digits}{-total % 10}"


_SHOP = _shop()
#: What the second catalog brings, and what it leaves out.
ARRIVAL, LEAVER = _SHOP[-1], _SHOP[40]
FIRST = Edition(products=_SHOP[:-1])
SECOND = Edition(
    products=[product.reduced(15) if product.number % 8 == 0 else product for product in _SHOP if product is not LEAVER]
)
#: Well formed, but somebody exported one department only, and a few of its prices moved.
SHRUNK = Edition(
    products=[
        replace(product, price=product.price + 500) if product.number % 6 == 0 else product
        for product in SECOND.products
        if product.category.startswith("Camping")
    ]
)
