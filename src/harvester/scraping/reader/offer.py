"""Puts the offer together from what a page says about each field."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final
from urllib.parse import urljoin

from harvester.kernel.gtin import normalize_gtin
from harvester.kernel.money import Price, parse_price
from harvester.kernel.rejects import Rejected
from harvester.scraping.offers import ScrapedOffer
from harvester.scraping.reader import phrases
from harvester.scraping.reader.attributes import attributes_of
from harvester.scraping.reader.document import key_of
from harvester.scraping.reader.facts import Fact
from harvester.scraping.reader.page import Page
from harvester.scraping.reader.products import GTINS
from harvester.scraping.reader.structured import listed, texts_of
from harvester.scraping.reader.verdict import PriceVerdict, StockVerdict

#: Characters of an identifier.
LONGEST_ID: Final = 120
LONGEST_ADDRESS: Final = 2_000
#: Digits of a name that is a number, such as "511"; more are an id.
LONGEST_NUMBER: Final = 3
_NO_BRANDS: Final = frozenset(
    {
        "",
        "na",
        "none",
        "null",
        "unknown",
        "nobrand",
        "default",
        "generic",
        "brand",
        "unbranded",
        "other",
        "various",
        "vendor",
        "mystore",
        "mystorevendor",
    }
)
#: What is added to a name: by law, and by shops.
_COMPANY: Final = re.compile(
    r"(?i)(?:[\s,.-]+(?:inc|llc|ltd|limited|co|corp|company|gmbh|kg|ag|ab|bv|sarl|com)\b\.?)+\s*$|^the\s+"
)
_SHOP: Final = re.compile(r"(?i)(?:\s+(?:official|online|shop|store|usa?))+\s*$")
_NO_IDS: Final = frozenset({"", "n/a", "na", "none", "null", "0", "-", "undefined", "false"})
_ID_PREFIX: Final = re.compile(r"(?i)^(?:(?:sku|mpn|id|gtin\d*|upc|ean)\s*[:#]\s*|sku\s+)")


def make_offer(page: Page, price: PriceVerdict, stock: StockVerdict) -> ScrapedOffer:
    """Return the offer.

    Raises:
        ValueError: a value is not one that an offer can have.
    """
    title = page_title(page)
    assert price.price is not None and stock.availability is not None  # noqa: S101, PT018 - both were judged before
    return ScrapedOffer(
        title=title,
        price=price.price,
        availability=stock.availability,
        original=price.original,
        product_id=_product_id(page),
        sku=_identifier(page, "sku"),
        gtin=_gtin(page),
        mpn=_identifier(page, "mpn"),
        brand=_brand(page),
        image=_image(page),
        shipping=_shipping(page),
        is_tax_included=price.is_tax_included,
        **asdict(attributes_of(title)),
    )


def page_title(page: Page) -> str:
    """Return the title as shown, or else that of the structured data."""
    led = _led(page, "title")
    if led:
        return led[0].text.strip()
    if page.title.text:
        place = (page.title.element, "::text")
        page.fields.append(Fact(field="title", text=page.title.text, syntax="page text", place=place, is_used=True))
        return page.title.text
    return ""


def _led(page: Page, field: str) -> list[Fact]:
    """Return the facts of the place that a person or the site declares for a field, if it says one thing."""
    chosen = page.context.chosen.get(field)
    places = (chosen,) if chosen else page.site.places.get(field, ())
    facts = page.places.find(field, places).facts
    if field == "sku" and page.site.sku_pattern:
        for fact in facts:
            match = re.search(page.site.sku_pattern, fact.text)
            fact.text = match[1] if match and match[1] else ""
    page.fields.extend(facts)
    texts = {fact.text.strip() for fact in facts}
    if len(texts) != 1 or not texts.copy().pop():
        return []
    facts[0].is_used = True
    return facts


def _structured(page: Page, names: Sequence[str], field: str) -> list[Fact]:
    """Return the values of the variant, or else of the product, each with its place."""
    found: list[Fact] = []
    for offer in page.offers:
        for data, path in ((offer.data, f"{offer.path}."), (offer.variant, offer.path.rpartition("offers")[0])):
            if data is offer.variant and "hasVariant" in data:
                continue
            node = page.main[offer.node]
            before = f"json:{f'[{offer.node}].' if offer.node else ''}{path}"
            for name in names:
                found += [
                    Fact(field=field, text=text, syntax=node.syntax, place=text.place or f"{before}{name}")
                    for text in texts_of(data.get(name))
                ]
    if not found:
        for number, node in enumerate(page.main):
            for name in names:
                for text in texts_of(node.data.get(name)):
                    place = text.place or f"json:{f'[{number}].' if number else ''}{name}"
                    found.append(Fact(field=field, text=text, syntax=node.syntax, place=place))
    return found


def _only(page: Page, facts: Sequence[Fact]) -> str | None:
    """Return the one value that all places give; none if they differ."""
    page.fields.extend(facts)
    values = {_ID_PREFIX.sub("", fact.text).strip(): None for fact in facts}
    texts = {
        text.casefold(): text
        for text in values
        if text.casefold() not in _NO_IDS
        and len(text) <= LONGEST_ID
        and "://" not in text
        and key_of(text) != key_of(page.title.text)  # the title, or its part of the address
    }
    if len(texts) != 1:
        for fact in facts:
            fact.note = fact.note or ("places differ" if len(texts) > 1 else "")
        return None
    for fact in facts:
        fact.is_used = True
    return next(iter(texts.values()))


def _identifier(page: Page, field: str) -> str | None:
    led = _led(page, field)
    if led:
        return _ID_PREFIX.sub("", led[0].text).strip()[:LONGEST_ID] or None
    facts = _structured(page, (field,), field)
    if field == "sku":
        # The number of one variant is not that of a product with several.
        own = [fact for fact in facts if "offers" not in str(fact.place)]
        if len({fact.text for fact in facts}) > 1 and own:
            facts = own
        shown = _labeled(page)
        facts = [*facts, *(fact for fact in shown if not facts or fact.note != _OTHER_LABEL)]
        for fact in shown:
            fact.note = ""
        form = page.form.get("product_id")
        if form and facts and not shown and {fact.text for fact in facts} == {form.text}:
            page.fields.extend(facts)
            facts[0].note = "the shop's own number, which shop systems write where there is no article number"
            return None
    else:
        facts = facts or page.metas.get(field, [])
    return _only(page, facts)


_OTHER_LABEL: Final = "its label is not SKU"


def _labeled(page: Page) -> list[Fact]:
    """Return the article number that stands next to its label on the page: after "SKU", or else the only other one."""
    if page.region is None:
        return []
    label = ""
    others: dict[str, Fact] = {}
    for block in page.region.texts():
        text = block.plain
        if len(text) > LONGEST_ID:
            label = ""
            continue
        for candidate in (
            f"{label} {text}" if label else text,
            *(each.strip() for each in re.split(r"[|\u2022]", text)),
        ):
            match = phrases.SKU_LABEL.match(candidate)
            if match and any(map(str.isdigit, match[1])) and " " not in match[1].strip():
                place = (block.parts[-1][1], "::text")
                fact = Fact(field="sku", text=match[1].strip(), syntax="page text", place=place)
                if candidate.lower().startswith("sku"):
                    return [fact]
                fact.note = _OTHER_LABEL
                others.setdefault(fact.text.casefold(), fact)
        label = text if phrases.SKU_LABEL_ALONE.fullmatch(text.lower()) else ""
    return list(others.values()) if len(others) == 1 else []


def _product_id(page: Page) -> str | None:
    """Return the shop's own number: of the variant if the address asks for one, otherwise of the product."""
    led = _led(page, "product_id")
    if led:
        return led[0].text.strip()[:LONGEST_ID]
    asked = page.context.variant.get("variant") or page.context.variant.get("pid")
    if asked:
        return asked
    if any(page.context.variant.values()):
        return None
    ids = [
        fact
        for fact in _structured(page, ("productID",), "product_id")
        if not fact.text.lower().startswith(("sku:", "mpn:", "isbn:", "upc:", "gtin"))
    ]
    form = page.form.get("product_id")
    return _only(page, ids or ([form] if form else []))


def _gtin(page: Page) -> str | None:
    """Return the one valid GTIN."""
    facts = _led(page, "gtin") or _structured(page, GTINS, "gtin") or page.metas.get("gtin", [])
    valid = {}
    for fact in facts:
        result = normalize_gtin(_ID_PREFIX.sub("", fact.text))
        if result and result.valid:
            valid[result.key or result.value] = (result.value, fact)
        elif result:
            fact.note = "not a valid GTIN"
    page.fields.extend(fact for fact in facts if not any(fact is each for each in page.fields))
    if len(valid) != 1:
        return None
    [(value, fact)] = valid.values()
    fact.is_used = True
    return value


def _brand(page: Page) -> str | None:
    """Return the brand of the manufacturer; the name of the shop is not one."""
    facts = _led(page, "brand") or _structured(page, ("brand", "manufacturer"), "brand") or page.metas.get("brand", [])
    context = page.context
    domain = context.retailer_domain.lower().removeprefix("www.")
    shops = {key_of(context.retailer_name), key_of(domain), key_of(domain.split(".")[0])}
    shops |= {key_of(fact.text) for fact in page.metas.get("shop", [])}
    shops |= {key_of(_COMPANY.sub("", fact.text)) for fact in page.metas.get("shop", [])}
    shops.add(key_of(_COMPANY.sub("", context.retailer_name)))
    shops |= {key_of(each) for each in page.site.domains} | {key_of(each.split(".")[0]) for each in page.site.domains}
    brands: dict[str, tuple[str, Fact]] = {}
    for fact in facts:
        key = key_of(fact.text.lower().removeprefix("www."))
        name = _COMPANY.sub("", fact.text)
        if {key, key_of(name), key_of(_SHOP.sub("", name))} & (shops - {""}):
            fact.note = "the name of the shop"
        elif (
            key not in _NO_BRANDS
            and not (key.isdigit() and len(key) > LONGEST_NUMBER)
            and key != key_of(page.title.text)
            and len(fact.text) <= LONGEST_ID
            and not fact.text.startswith("http")
        ):
            brands.setdefault(key, (" ".join(fact.text.replace("&amp;", "&").split()), fact))
    page.fields.extend(fact for fact in facts if not any(fact is each for each in page.fields))
    if len(brands) != 1:
        return None
    [(brand, fact)] = brands.values()
    fact.is_used = True
    return brand


def _image(page: Page) -> str | None:
    facts = _led(page, "image") or _structured(page, ("image",), "image")[:1]
    if not facts:
        for node in page.main:
            for each in listed(node.data.get("image")):
                if isinstance(each, dict):
                    facts = facts or [
                        Fact(field="image", text=text, syntax=node.syntax, place="json:image.url")
                        for text in texts_of(each.get("url") or each.get("contentUrl"))
                    ]
    for fact in facts or page.metas.get("image", []):
        try:
            address = urljoin(page.document.base_url, fact.text.strip())
        except ValueError:
            continue
        if address.startswith(("https://", "http://")) and len(address) <= LONGEST_ADDRESS:
            fact.is_used = True
            return address
    return None


def _shipping(page: Page) -> Price | None:
    """Return what shipping costs, if the structured data has one rate for this product."""
    led = _led(page, "shipping")
    if led:
        page.money.read(led[0])
        return led[0].value if isinstance(led[0].value, Price) else None
    rates: set[Price | None] = set()
    for offer in page.offers:
        for detail in listed(offer.data.get("shippingDetails")):
            for rate in listed(detail.get("shippingRate")) if isinstance(detail, dict) else []:
                if not isinstance(rate, dict) or rate.get("maxValue") is not None:
                    return None
                for value in texts_of(rate.get("value")):
                    try:
                        rates.add(
                            parse_price(
                                value,
                                currency=next(iter(texts_of(rate.get("currency"))), None),
                                default_currency=page.money.currency,
                            )
                        )
                    except Rejected:
                        rates.add(None)
    return rates.pop() if len(rates) == 1 else None
