"""Whole pages of many themes, read without a site file: nothing wrong is accepted, and ordinary pages are read."""

import re
from collections import Counter
from decimal import Decimal

from tests.support.generated import TIMES
from tests.unit.scraping_reader.reading_support import read
from tests.unit.scraping_reader.shop_cases import THEMES, documents, hard_documents
from tests.unit.scraping_reader.shop_documents import Document

ORDINARY, HARD = list(documents()), list(hard_documents())


def offer_of(document: Document, html: str, site: str = "structured"):
    """The offer, which has to be right in everything it says, or the reason why there is none."""
    reading = read(
        html.encode(), site, retailer_name="Harbor & Pine", retailer_domain="shop.example", default_currency=document.item.currency
    )  # fmt: skip
    if reading.outcome != "OFFER":
        assert reading.outcome != "ADAPTER_FAILED", reading.detail
        return None, f"{document.name}: {reading.outcome} {reading.detail}"
    offer, item = reading.offer, document.item
    assert document.price is not None, f"{document.name}: {offer.price} was taken"
    assert (offer.price.amount, offer.price.currency) == (Decimal(document.price), item.currency), document.name
    assert offer.availability == document.stock, document.name
    assert offer.sku in {None, document.sku}, document.name
    assert offer.original is None or (item.was and offer.original.amount == Decimal(item.was)), document.name
    return offer, ""


def test_there_are_enough_pages_and_themes():
    assert len({document.name for document in [*ORDINARY, *HARD]}) >= 300
    assert len(THEMES) >= 35
    assert sum(document.price is None for document in HARD) >= 60, "pages of which no offer may come"


def test_ordinary_pages_are_read_and_nothing_is_wrong(record_property):
    figures: Counter[str] = Counter()
    themes: dict[str, Counter[str]] = {}
    missed = []
    for document in ORDINARY:
        offer, reason = offer_of(document, document.html)
        theme = themes.setdefault(document.name.partition("-")[0], Counter())
        theme["pages"] += 1
        theme["read"] += offer is not None
        figures["sku"] += offer is not None and offer.sku is not None
        missed += [reason] if reason else []
    figures["read"] = sum(theme["read"] for theme in themes.values())
    for name, value in figures.items():
        record_property(name, value)
    assert figures["read"] >= 0.95 * len(ORDINARY), "\n".join(missed)
    assert figures["sku"] >= 0.90 * len(ORDINARY)
    assert all(theme["read"] >= 0.75 * theme["pages"] for theme in themes.values()), "\n".join(missed)


def test_what_is_next_to_the_product_is_not_taken_for_its_own():
    right = [document for document in HARD if document.is_ordinary]
    found = {document.name: offer_of(document, document.html) for document in HARD}
    missed = [reason for document in right if (reason := found[document.name][1])]
    assert len(missed) <= 0.05 * len(right), "\n".join(missed)


#: Beginning of the name of a theme -> the site file for its platform.
_SITES = {
    "woo": "woocommerce",
    "shopify": "shopify",
    "magento": "magento",
    "hyva": "magento",
    "bigcommerce": "bigcommerce",
}


def test_pages_of_a_platform_are_read_with_its_site_file():
    read_with = Counter()
    for document in ORDINARY:
        for beginning, site in _SITES.items():
            if document.name.startswith(beginning):
                offer, reason = offer_of(document, document.html, site)
                assert offer is not None, reason
                read_with[site] += 1
    assert min(read_with.values()) >= 5
    assert len(read_with) == 4


#: Blanks between the parts of a page: as templates leave them, everywhere, and none.
_BLANKS = (
    (re.compile(r">\s*(?=</?(?:div|p|ul|li|ol|section|article|main|header|form|h1|h2|h3|table|tr|td|dl|dt|dd|fieldset|button)\b)"), ">\n\n        "),
    (re.compile(r">\s*(?=<)"), ">\n      "),
    (re.compile(r">\s+<"), "><"),
)  # fmt: skip


def test_blanks_between_the_parts_of_a_page_do_not_matter():
    for number, document in enumerate([*ORDINARY, *HARD]):
        if TIMES == 1 and number % 4:
            continue
        expected, _ = offer_of(document, document.html)
        for pattern, blanks in _BLANKS:
            assert offer_of(document, pattern.sub(blanks, document.html))[0] == expected, document.name
