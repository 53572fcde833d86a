"""What the markup of a page says apart from structured data: meta tags and data attributes of the buy form."""

import re
from collections import defaultdict
from itertools import islice
from typing import Any, Final

from harvester.scraping.reader.document import Document
from harvester.scraping.reader.facts import Fact, Text
from harvester.scraping.reader.structured import read_json

#: Name of a meta tag -> the field it is about.
_METAS: Final = {
    "product:price:amount": "price",
    "og:price:amount": "price",
    "product:price": "price",
    "og:price": "price",
    "product:sale_price:amount": "sale",
    "og:sale_price:amount": "sale",
    "product:original_price:amount": "original",
    "og:price:standard_amount": "original",
    "product:price:currency": "currency",
    "og:price:currency": "currency",
    "product:sale_price:currency": "currency",
    "product:availability": "availability",
    "og:availability": "availability",
    "og:title": "title",
    "twitter:title": "title",
    "product:retailer_item_id": "product_id",
    "product:brand": "brand",
    "og:brand": "brand",
    "product:upc": "gtin",
    "product:ean": "gtin",
    "product:gtin": "gtin",
    "og:upc": "gtin",
    "product:mfr_part_no": "mpn",
    "og:image": "image",
    "og:site_name": "shop",
    "og:type": "type",
}
#: Variants in the form of WooCommerce: more text than this is a catalog.
LONGEST_VARIATIONS: Final = 1_000_000
#: Attributes that have an amount, in the order in which they are asked.
_AMOUNTS: Final = (
    "data-price-amount",
    "data-product-price",
    "data-price",
    "data-current-price",
    "data-sale-price",
    "data-final-price",
)
#: Classes around the amounts of quantity discounts.
_TIERS: Final = re.compile(r"(?i)(?:^|[\s_-])(?:prices?-tiers?|tiers?-prices?|tiers?|bulk)(?=[\s_-]|$)")
_ORIGINALS: Final = frozenset({"oldprice", "old", "regularprice", "listprice", "was"})
_OPEN_ENDS: Final = frozenset({"minprice", "maxprice", "baseprice", "tierprice"})
_IDS: Final = (
    "add-to-cart",
    "product_id",
    "product-id",
    "product",
    "id_product",
    "productid",
    "products_id",
    "item_id",
)


def metas_of(document: Document) -> dict[str, list[Fact]]:
    """Return what the meta tags say, by field. A sale price makes the price next to it the former one."""
    found: dict[str, list[Fact]] = defaultdict(list)
    for meta in document.root.xpath("//meta[(@property or @name) and @content]")[:300]:
        for attribute in ("property", "name"):
            name = (meta.get(attribute) or "").strip()
            kind = _METAS.get(name.lower())
            text = meta.get("content").strip()
            if kind and text:
                place = (
                    f'meta[{attribute}="{name}"]::attr(content)'
                    if re.fullmatch(r"[\w:.-]+", name)
                    else (meta, "::attr(content)")
                )
                found[kind].append(Fact(field=kind, text=text, syntax="meta", place=place))
                break
    if found["sale"]:
        found["original"].extend(found.pop("price", []))
        found["price"] = found["sale"]
    for fact in found["price"]:
        fact.field = "price"
    for fact in found["original"]:
        fact.field = "original"
    currencies = {fact.text.upper() for fact in found["currency"]}
    if len(currencies) == 1:
        for fact in [*found["price"], *found["original"]]:
            fact.currency = next(iter(currencies))
    return found


def form_prices(region: Any, button: Any) -> list[Fact]:
    """Return the amounts in attributes of the buy form and of what is around it."""
    found: list[Fact] = []
    # A third of the time of the same as XPath.
    having = (
        element
        for element in region.iter("*")
        if not _NAMES_OF_AMOUNTS.isdisjoint(names := element.keys())
        or ("itemprop" in names and "content" in names and element.get("itemprop") == "price")
    )
    for element in islice(having, MOST_AMOUNTS):
        if element.tag in {"option", "li", "label", "tr", "td"} or _is_chosen_from(element):
            continue
        if any(_TIERS.search(each.get("class") or "") for each in islice(element.iterancestors(), 4)):
            continue
        kind = re.sub("[^a-z]", "", (element.get("data-price-type") or "").lower())
        if kind in _OPEN_ENDS:
            continue
        # An offer of microdata without a product around it: themes leave out the outer part.
        is_loose = element.get("itemprop") == "price" and not element.xpath(_IN_PRODUCT)
        for attribute in (*_AMOUNTS, *(("content",) if is_loose else ())):
            text = (element.get(attribute) or "").strip()
            if re.fullmatch(r"[^\d]{0,4}\d[\d.,]*[^\d]{0,4}", text):
                field = "original" if kind in _ORIGINALS else "price"
                found.append(
                    Fact(
                        field=field,
                        text=Text(text, is_number="." in text),
                        syntax="data attribute",
                        place=(element, f"::attr({attribute})"),
                    )
                )
                break
    form = next((each for each in button.iterancestors("form")), None) if button is not None else None
    if form is not None:
        found.extend(_variations(form))
        found.extend(_sent_with(form))
    return found


_NAMES_OF_AMOUNTS: Final = frozenset(_AMOUNTS)
#: Elements of a page whose attributes are read.
MOST_AMOUNTS: Final = 60


_IN_PRODUCT: Final = "ancestor::*[@itemscope and contains(@itemtype, 'Product')]"


def _is_chosen_from(element: Any) -> bool:
    """Whether an element is one of several to choose from, such as a variant, an add-on or another product."""
    if element.tag == "input" and element.get("type") in {"radio", "checkbox"}:
        return True
    parent, classes = element.getparent(), element.get("class")
    return parent is not None and any(
        each is not element and each.get("class") == classes and each.get("data-price")
        for each in parent.iterchildren(element.tag)
    )


def _variations(form: Any) -> list[Fact]:
    """Return the prices of the variants in a form of WooCommerce."""
    text = form.get("data-product_variations") or ""
    variants = read_json(text) if text[:1] == "[" and len(text) <= LONGEST_VARIATIONS else None
    found = []
    for variant in variants if isinstance(variants, list) else []:
        price = variant.get("display_price") if isinstance(variant, dict) else None
        if isinstance(price, Text):
            found.append(
                Fact(
                    field="price", text=price, syntax="data attribute", place=(form, "::attr(data-product_variations)")
                )
            )
    return found


def _sent_with(form: Any) -> list[Fact]:
    """Return the price that the form sends with the order."""
    hidden = [each for each in form.iter("input") if (each.get("type") or "").lower() == "hidden"]
    named = {(each.get("name") or "").lower(): (each.get("value") or "").strip() for each in hidden}
    currency = named.get("currency") or named.get("displayedpricecurrencycode") or ""
    return [
        Fact(
            field="price",
            text=Text(named[name], is_number="." in named[name]),
            syntax="data attribute",
            place=(each, "::attr(value)"),
            currency=currency if re.fullmatch("[A-Z]{3}", currency) else "",
        )
        for each in hidden
        if (name := (each.get("name") or "").lower()) in _PRICES_SENT and re.fullmatch(r"\d[\d.,]*", named[name])
    ]


_PRICES_SENT: Final = frozenset({"price", "product_price", "product-price", "item_price", "displayedprice"})


def form_ids(button: Any) -> dict[str, Fact]:
    """Return the numbers of product and variant that the buy form sends."""
    form = next((each for each in button.iterancestors("form")), None) if button is not None else None
    found: dict[str, Fact] = {}
    if form is None:
        return found
    for element in form.iter("input", "button", "select"):
        name = (element.get("name") or "").lower()
        text = (element.get("value") or "").strip()
        if element.tag == "select" or element.get("type") in {"radio", "checkbox"}:
            chosen = element.xpath("self::input[@checked] | .//option[@selected]")
            text = (chosen[0].get("value") or "").strip() if chosen else ""
        field = (
            "product_id"
            if name in _IDS
            else "variant_id"
            if name in {"id", "variation_id", "variant", "variant_id", "sku"}
            else ""
        )
        if field and text and text != "0" and re.fullmatch(r"[\w.-]{1,64}", text):
            found.setdefault(
                field, Fact(field=field, text=text, syntax="data attribute", place=(element, "::attr(value)"))
            )
    return found
