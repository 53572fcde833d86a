"""The hard set: every platform in every shape. No price is wrong, and most that are certain are read."""

from collections import Counter

import pytest
from tests.support.generated import TIMES
from tests.support.page_mutations import MUTATIONS, mutate
from tests.support.shop_pages import PLATFORMS, Case, hard_set
from tests.unit.scraping_reader.reading_support import read

CASES = list(hard_set())


def look(html: bytes, case: Case, site: str):
    return read(
        html, site, retailer_name="Example Shop", retailer_domain="shop.example", default_currency=case.goods.currency
    )


def test_the_set_is_hard_enough():
    assert len(CASES) >= 150
    assert len(PLATFORMS) >= 20
    assert len(MUTATIONS) >= 20


@pytest.mark.parametrize(("with_site_file", "least"), [(False, 0.50), (True, 0.95)])
def test_no_price_is_wrong_and_coverage_is_enough(with_site_file, least, record_property):
    figures: Counter[str] = Counter()
    missed: list[str] = []
    for case in CASES:
        if with_site_file and case.site == "structured":
            continue
        reading = look(case.html.encode(), case, case.site if with_site_file else "structured")
        figures["expected"] += case.is_counted
        if reading.outcome != "OFFER":
            missed += [f"{case.name}: {reading.outcome} {reading.detail}"] if case.is_counted else []
            continue
        offer = reading.offer
        assert (str(offer.price), offer.availability) == (f"{case.price} {case.goods.currency}", case.stock), case.name
        assert offer.sku in {None, case.goods.sku}, case.name
        assert str(offer.original) in {"None", f"{case.goods.was} {case.goods.currency}"}, case.name
        figures["read"] += case.is_counted
        figures["sku"] += offer.sku is not None
    for name, value in figures.items():
        record_property(name, value)
    assert figures["read"] >= least * figures["expected"], "\n".join(missed)
    assert figures["sku"] >= least * figures["expected"]


@pytest.mark.generated
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_no_change_of_a_page_makes_a_price_wrong(mutation):
    """Every change on one page of each platform; `make nightly` tries it on every page."""
    number = MUTATIONS.index(mutation)
    shapes = len(CASES) // len(PLATFORMS)
    for place, case in enumerate(CASES):
        if TIMES == 1 and place % shapes != (number + place // shapes) % shapes:
            continue
        html, page = mutate(case, mutation)
        for site in {"structured", case.site}:
            reading = look(html, case, site)
            assert reading.outcome != "ADAPTER_FAILED", reading.detail
            if reading.outcome == "OFFER":
                offer = reading.offer
                assert str(offer.price) == f"{page.price} {page.currency}", f"{case.name} with {site}"
                assert page.stock in {None, offer.availability}, f"{case.name} with {site}"
