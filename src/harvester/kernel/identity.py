"""The identity by which a product of a source is recognized in later files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from harvester.kernel.link_rules import NO_NETWORK, LinkRules
from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.text import CONTROLS, WORDS_FOR_NOTHING, is_encodable, trim
from harvester.kernel.urls import identity_url, url_hash

LONGEST_IDENTIFIER = 255


class IdentityType(StrEnum):
    """Kinds of identity, the most reliable first."""

    NETWORK_ITEM_ID = "NETWORK_ITEM_ID"
    PRODUCT_ID = "PRODUCT_ID"
    SKU = "SKU"
    URL_HASH = "URL_HASH"


#: A product that gets a better identity later is a new product: identities never change.
PRIORITY = tuple(IdentityType)
#: How a type is stored.
NUMBERS: Mapping[IdentityType, int] = MappingProxyType({kind: place for place, kind in enumerate(PRIORITY, start=1)})


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The key of a product within its source."""

    type: IdentityType
    value: str

    def __post_init__(self) -> None:
        if not self.value:
            raise ValueError("an identity needs a value")


def identity_of(
    *,
    item_id: str | None = None,
    product_id: str | None = None,
    sku: str | None = None,
    url: str | None = None,
    rules: LinkRules = NO_NETWORK,
) -> Identity:
    """Return the most reliable identity available.

    Raises:
        Rejected: an identifier cannot be used (the next best would create a second product), or there is none and the
            URL cannot be used either.
    """
    for kind, text in zip(PRIORITY, (item_id, product_id, sku), strict=False):  # mutant: identity-order
        value = clean_identifier(text)
        if value:
            return Identity(type=kind, value=value)
    return Identity(type=IdentityType.URL_HASH, value=url_hash(identity_url(url, rules)))


#: What a shown identity begins with, and how much of its value is shown: a hash is recognized by its beginning.
_PREFIXES: Mapping[IdentityType, tuple[str, int]] = MappingProxyType({
    IdentityType.NETWORK_ITEM_ID: ("ITEM", LONGEST_IDENTIFIER),
    IdentityType.PRODUCT_ID: ("PID", LONGEST_IDENTIFIER),
    IdentityType.SKU: ("SKU", LONGEST_IDENTIFIER),
    IdentityType.URL_HASH: ("URL", 16),
})  # fmt: skip


def shown_identity(number: int, value: str) -> str:
    """Return a stored identity as people and exports see it, such as `SKU:FED-9MM-50` or `URL:a1b2c3d4e5f67890`."""
    prefix, length = _PREFIXES[PRIORITY[number - 1]]
    return f"{prefix}:{value[:length]}"


def clean_identifier(text: str | None) -> str:
    """Return an identifier without blanks at its ends, its case kept; empty if it is a placeholder such as `n/a`.

    Raises:
        Rejected: it is too long or has control characters.
    """
    value = trim(text)
    if len(value) > LONGEST_IDENTIFIER:
        raise Rejected(Fault.ID_TOO_LONG)
    if re.search(CONTROLS, value) or not is_encodable(value):
        raise Rejected(Fault.ID_CONTROLS)
    return "" if value.lower() in WORDS_FOR_NOTHING else value
