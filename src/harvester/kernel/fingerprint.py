"""A fingerprint that two offers of the same product share: brand, title and pack size, all of them exact.

A wrong link shows one product's price next to another's; a missing link only asks a person. So anything missing or
ambiguous means no fingerprint.
"""

import hashlib
import re
import unicodedata
from decimal import Decimal

#: Part of the hashed text, so that fingerprints made by different rules are never equal.
VERSION = "1"
#: Words in a title besides brand and pack; with fewer it names a kind of product.
FEWEST_WORDS = 2

_UNITS: dict[str, tuple[str, Decimal]] = {
    **dict.fromkeys(("ml", "milliliter", "millilitre"), ("ml", Decimal(1))),
    **dict.fromkeys(("cl",), ("ml", Decimal(10))),
    **dict.fromkeys(("l", "liter", "liters", "litre", "litres"), ("ml", Decimal(1000))),
    **dict.fromkeys(("mg",), ("g", Decimal("0.001"))),
    **dict.fromkeys(("g", "gram", "grams", "gr"), ("g", Decimal(1))),
    **dict.fromkeys(("kg", "kilo", "kilogram"), ("g", Decimal(1000))),
    **dict.fromkeys(("oz", "ounce", "ounces"), ("oz", Decimal(1))),
    **dict.fromkeys(("lb", "lbs", "pound", "pounds"), ("oz", Decimal(16))),
    **dict.fromkeys(("ct", "count", "pack", "packs", "pk", "pc", "pcs", "piece", "pieces"), ("count", Decimal(1))),
    **dict.fromkeys(("rd", "rds", "round", "rounds", "capsules", "tablets"), ("count", Decimal(1))),
}
_NUMBER = r"[0-9]+(?:[.,][0-9]+)?"
_MEASURE = re.compile(rf"(?<![\w.,])({_NUMBER})[ -]?({'|'.join(sorted(_UNITS, key=len, reverse=True))})(?!\w)")
_TIMES = re.compile(rf"(?<![\w.,])([0-9]+) ?x ?(?={_NUMBER} ?[a-z])")
_PACK_OF = re.compile(r"(?<!\w)(?:pack|set|box|case) of ([0-9]+)(?!\w)")
#: "1,000" may be a thousand or one.
_AMBIGUOUS = re.compile(r"[0-9][.,][0-9]{3}(?![0-9])")


def fingerprint(brand: str | None, title: str | None) -> str | None:
    """Return 64 hexadecimal digits that equal products share; none if brand, title or pack is incomplete."""
    maker, text = _plain(brand), _plain(title)
    packs, rest = _packs(text)
    brand_words, words = _words(maker), _words(rest)
    # Some shops put the brand before the title, some do not.
    if brand_words and words[: len(brand_words)] == brand_words:
        words = words[len(brand_words) :]
    if not maker or not packs or len(words) < FEWEST_WORDS or _AMBIGUOUS.search(text):
        return None
    hashed = "\n".join((VERSION, " ".join(brand_words), " ".join(words), " ".join(sorted(packs))))
    return hashlib.sha256(hashed.encode()).hexdigest()


def _plain(text: str | None) -> str:
    spelled = unicodedata.normalize("NFKC", text or "").casefold()
    return " ".join(spelled.replace("\N{MULTIPLICATION SIGN}", "x").split())


def _packs(text: str) -> tuple[list[str], str]:
    """Return the sizes and counts in a title, each in its smallest unit, and the title without them."""
    found: list[str] = []

    def take(amount: str, unit: str) -> str:
        name, factor = _UNITS[unit]
        found.append(f"{(Decimal(amount.replace(',', '.')) * factor).normalize():f}{name}")
        return " "

    text = _PACK_OF.sub(lambda match: take(match[1], "count"), text)
    text = _TIMES.sub(lambda match: take(match[1], "count"), text)
    text = _MEASURE.sub(lambda match: take(match[1], match[2]), text)
    return found, text


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
