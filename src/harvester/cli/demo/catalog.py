"""Catalogs of two invented outdoor shops, the same in every demo.

Kestrel & Pine sends three: a first one, one a day later, and one that lacks most products. Harbour Street sells some of
the same products at different prices.
"""

import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from urllib.parse import quote

_COLORS = (
    "moss", "slate", "rust", "sand", "ink", "fern", "clay", "stone", "plum", "ochre", "sky", "charcoal",
    "ember", "pine", "dusk", "snow", "bark", "lagoon", "heather", "copper", "olive", "cobalt", "wheat", "graphite",
)  # fmt: skip

#: category | brand | model | noun | price in cents | variants. A variant may add cents to the price, and comes in every
#: color. All names are invented.
_LINES = """
Camping > Tents | Larkfell | Tarn | Trekking Tent | 24900 | 1 person, 2 person +6000, 3 person +12000
Camping > Tents | Larkfell | Scree | Mountain Tent | 44900 | 2 person, 3 person +9000
Camping > Tents | Hollow Oak | Meadow | Family Tent | 39900 | 4 person, 6 person +16000
Camping > Tents | Hollow Oak | Lean-To | Tarp | 7990 | 3 x 3 m, 4 x 4 m +3000
Camping > Sleeping Bags | Nightjar | Drift 5 | Down Sleeping Bag | 18900 | regular, long +1500
Camping > Sleeping Bags | Nightjar | Drift -7 | Down Sleeping Bag | 28900 | regular, long +2000
Camping > Sleeping Bags | Hollow Oak | Ember | Synthetic Sleeping Bag | 8990 | regular, long +1000, kids -2000
Camping > Sleeping Mats | Nightjar | Cloud | Inflatable Mat | 12900 | regular, wide +2500
Camping > Sleeping Mats | Larkfell | Slab | Foam Mat | 3490 | 185 cm
Camping > Stoves | Cinderpot | Pilot | Gas Stove | 5490 | one burner, two burners +6500
Camping > Stoves | Cinderpot | Forge | Multi-Fuel Stove | 15900 | with pump
Camping > Cookware | Cinderpot | Nest | Pot Set | 6990 | 1.2 l, 2.0 l +1500, 3.5 l +3200
Camping > Cookware | Cinderpot | Sip | Titanium Mug | 2990 | 450 ml, 650 ml +700
Packs > Trekking Packs | Stonepath | Ridge 50 | Trekking Pack | 21900 | S/M, M/L
Packs > Trekking Packs | Stonepath | Ridge 65 | Trekking Pack | 24900 | S/M, M/L
Packs > Trekking Packs | Larkfell | Fastline 40 | Ultralight Pack | 19900 | S, M, L
Packs > Day Packs | Stonepath | Hop 18 | Day Pack | 6990 | S, M, L
Packs > Day Packs | Stonepath | Hop 26 | Day Pack | 8990 | S, M, L
Packs > Dry Bags | Otterline | Roll | Dry Bag | 1490 | 5 l, 13 l +500, 35 l +1400
Footwear > Hiking Boots | Brackenfoot | Fell Mid | Hiking Boot | 18900 | 40, 41, 42, 43, 44, 45
Footwear > Hiking Boots | Brackenfoot | Fell Mid Women | Hiking Boot | 18900 | 36, 37, 38, 39, 40, 41
Footwear > Trail Shoes | Brackenfoot | Dart | Trail Running Shoe | 13900 | 40, 41, 42, 43, 44
Footwear > Socks | Brackenfoot | Merino Crew | Hiking Sock | 1990 | 36-38, 39-41, 42-44, 45-47
Clothing > Jackets | Galeward | Squall | Rain Jacket | 19900 | S, M, L, XL
Clothing > Jackets | Galeward | Squall Women | Rain Jacket | 19900 | XS, S, M, L
Clothing > Jackets | Galeward | Loft | Down Jacket | 24900 | S, M, L, XL
Clothing > Fleece | Galeward | Lamb | Fleece Pullover | 8990 | S, M, L, XL
Clothing > Trousers | Galeward | Stride | Hiking Trousers | 9990 | 46, 48, 50, 52, 54
Clothing > Base Layers | Hollow Oak | Wool 150 | Base Layer Top | 6990 | S, M, L, XL
Clothing > Hats | Hollow Oak | Peat | Wool Beanie | 2490 | kids, adults
Water > Bottles | Otterline | Brook | Steel Bottle | 2490 | 0.5 l, 0.75 l +400, 1.0 l +800
Water > Filters | Otterline | Clear | Water Filter | 4990 | squeeze, gravity +4000
Lights > Headlamps | Duskline | Beam 300 | Headlamp | 3990 | short strap, long strap
Lights > Headlamps | Duskline | Beam 600 R | Rechargeable Headlamp | 7990 | short strap, long strap
Lights > Lanterns | Duskline | Globe | Camp Lantern | 3490 | warm white
Navigation > Compasses | Duskline | North | Sighting Compass | 4490 | degrees, mils
Trekking > Poles | Stonepath | Tread | Trekking Poles | 8990 | aluminium, carbon +5000
Trekking > Poles | Stonepath | Tread Fold | Folding Poles | 12900 | 110 cm, 120 cm, 130 cm
"""

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
#: A price of zero means that the price is withheld: the row is rejected, without an effect on other rows.
_WITHHELD = ("KP-GIFT", "Kestrel & Pine Gift Card", f"{SITE}/gift-card", "", "0.00", "", CURRENCY, "InStock") + 6 * (
    "",
)
_VARIANT = re.compile(r"(.+?)(?: ([+-]\d+))?")


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product; prices in cents."""

    shop: str = "KP"
    number: int
    brand: str
    model: str
    noun: str
    variant: str
    color: str
    category: str
    price: int
    original: int | None = None

    @property
    def sku(self) -> str:
        return f"{self.shop}-{self.number}"

    @property
    def title(self) -> str:
        return f"{self.brand} {self.model} {self.noun}, {self.variant}, {self.color}"

    @property
    def amount(self) -> Decimal:
        return Decimal(self.price) / 100

    def reduced(self, percent: int) -> "Product":
        """Return the product on sale, with its original price."""
        return replace(self, price=self.price * (100 - percent) // 100, original=self.price)

    @property
    def path(self) -> str:
        return re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-") + f"?sku={self.sku}"

    @property
    def description(self) -> str:
        return f"{self.noun} of the {self.model} line by {self.brand}, {self.variant}, in {self.color}."


@dataclass(frozen=True, kw_only=True)
class Edition:
    """One catalog of a shop.

    Attributes:
        products: its products.
        write: returns the file, always with the same bytes.
        rejects: count of additional rows that are rejected, by reason.
    """

    products: Sequence[Product]
    write: Callable[[Sequence[Product]], bytes]
    rejects: Mapping[str, int] = field(default_factory=dict)

    @property
    def amounts(self) -> dict[str, Decimal]:
        """Return SKU -> price."""
        return {product.sku: product.amount for product in self.products}

    def file(self) -> bytes:
        return self.write(self.products)


def _impact_file(products: Sequence[Product]) -> bytes:
    """Return a compressed file with tabs between the cells."""
    rows = [
        (
            product.sku,
            product.title,
            f"{_TRACKED}?prodsku={product.sku}&u={quote(f'{SITE}/{product.path}', safe='')}",
            f"{SITE}/images/{product.sku}.jpg",
            _money(product.price),
            _money(product.original) if product.original else "",
            CURRENCY,
            "OutofStock" if product.number % 17 == 0 else "InStock",
            "New",
            _gtin(product.number),
            f"{product.brand[:3].upper()}{product.number}",
            product.brand,
            f"<p>{product.description}</p>",
            product.category,
        )
        for product in products
    ]
    return gzip.compress(_tab_separated([IMPACT_HEADER, *rows, _WITHHELD]), mtime=0)


def _merchant_file(products: Sequence[Product]) -> bytes:
    """Return a file with tabs between the cells, not compressed."""
    rows = [
        (
            product.sku,
            product.title,
            product.description,
            f"{HARBOUR_SITE}/{product.path}",
            f"{HARBOUR_SITE}/images/{product.sku}.jpg",
            "out of stock" if product.number % 23 == 0 else "in stock",
            f"{_money(product.price)} {CURRENCY}",
            product.brand,
            _gtin(product.number),
            product.category,
        )
        for product in products
    ]
    return _tab_separated([MERCHANT_HEADER, *rows])


def _tab_separated(rows: Sequence[Sequence[str]]) -> bytes:
    return "".join("\t".join(cells) + "\n" for cells in rows).encode()


def _products() -> list[Product]:
    products: list[Product] = []
    for line in _LINES.strip().splitlines():
        category, brand, model, noun, price, variants = (part.strip() for part in line.split("|"))
        for text in variants.split(","):
            variant, more = _VARIANT.fullmatch(text.strip()).groups()  # type: ignore[union-attr]
            products += [
                Product(
                    number=1001 + len(products) + place,
                    brand=brand,
                    model=model,
                    noun=noun,
                    variant=variant,
                    color=color,
                    category=category,
                    price=int(price) + int(more or 0),
                )
                for place, color in enumerate(_COLORS)
            ]
    return products


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _gtin(number: int) -> str:
    """Return a GTIN-13 of the range that GS1 reserves for examples, with its check digit."""
    digits = f"95212345{number}"
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    return f"{digits}{-total % 10}"


def _kestrel(products: Sequence[Product]) -> Edition:
    return Edition(products=products, write=_impact_file, rejects={"PRICE_WITHHELD": 1})


_SHOP = _products()
#: The product that only the second catalog has, and the one that it lacks.
ARRIVAL, LEAVER = _SHOP[-1], _SHOP[40]
FIRST = _kestrel(_SHOP[:-1])
SECOND = _kestrel([one.reduced(15) if one.number % 8 == 0 else one for one in _SHOP if one is not LEAVER])
#: A valid file, but with one department only, exported by mistake, and with some new prices.
SHRUNK = _kestrel(
    [
        replace(one, price=one.price + 500, original=None) if one.number % 6 == 0 else one
        for one in SECOND.products
        if one.category.startswith("Camping")
    ]
)
#: Half of the products, slightly cheaper or more expensive than at Kestrel & Pine.
HARBOUR = Edition(
    products=[
        replace(one, shop="HS", price=one.price * (94 + one.number % 11) // 100) for one in _SHOP if one.number % 2
    ],
    write=_merchant_file,
)
