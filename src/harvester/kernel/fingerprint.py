"""By what two products without a common number are known to be the same: brand, title and pack, all of them exact.

A wrong link puts one product's price beside another's; a missing one asks a person. So whatever is missing or may be
read in two ways makes no fingerprint.
"""

import hashlib
import re
import unicodedata
from decimal import Decimal

#: Part of what is hashed: a change of these rules makes other fingerprints, never equal ones with another meaning.
VERSION = "1"
#: Words that a title has besides brand and pack; with fewer it names a kind of thing, not a product.
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
#: "1,000" is a thousand to some and one to others.
_AMBIGUOUS = re.compile(r"[0-9][.,][0-9]{3}(?![0-9])")


def fingerprint(brand: str | None, title: str | None) -> str | None:
    """64 hexadecimal digits that equal products share, or nothing if brand, title or pack is not complete."""
    maker, text = _plain(brand), _plain(title)
    packs, rest = _packs(text)
    words = _without(_words(rest), _words(maker))
    if not maker or not packs or len(words) < FEWEST_WORDS or _AMBIGUOUS.search(text):
        return None
    told = "\n".join((VERSION, " ".join(_words(maker)), " ".join(words), " ".join(sorted(packs))))
    return hashlib.sha256(told.encode()).hexdigest()


def _plain(text: str | None) -> str:
    spelled = unicodedata.normalize("NFKC", text or "").casefold()
    return " ".join(spelled.replace("\N{MULTIPLICATION SIGN}", "x").split())


def _packs(text: str) -> tuple[list[str], str]:
    """What the title says about size and number, each in its smallest unit, and the title without it."""
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


def _without(words: list[str], brand: list[str]) -> list[str]:
    """Some shops put the brand before the title, some do not."""
    return words[len(brand) :] if brand and words[: len(brand)] == brand else words
