"""Every registered site reads its fixtures as expected, has a version of its own, and never takes a wrong price."""

import hashlib
import json
from dataclasses import fields
from pathlib import Path

import pytest
from tests.support.sgammo_pages import REDESIGNS, sgammo_pages

from harvester.scraping import sites as registry
from harvester.scraping.offers import ScrapedOffer
from harvester.scraping.reader import read_page
from harvester.scraping.site import ReadContext, Site
from harvester.scraping.sites import checked, site_for_domain, site_named, sites

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sites"
#: Site -> (version, hash of its file). A change of the file needs a new version here and there.
VERSIONS = {
    name: (version, digest)
    for name, version, digest in (line.split("\t") for line in (FIXTURES / "versions.tsv").read_text().splitlines())
}
PAGES = sorted(path.relative_to(FIXTURES).with_suffix("") for path in FIXTURES.glob("*/*.html"))


def written(offer: ScrapedOffer | None) -> dict[str, object] | None:
    """An offer as fixtures write it, without what it does not have."""
    if offer is None:
        return None
    values = {each.name: getattr(offer, each.name) for each in fields(offer)}
    return {
        name: value if isinstance(value, (bool, int)) else str(value)
        for name, value in values.items()
        if value is not None
    }


def read(html: bytes, site: Site, **context):
    domain = site.domains[0] if site.domains else "shop.example"
    known = {"url": f"https://{domain}/product/x/", "retailer_domain": domain, "default_currency": "USD", **context}
    return read_page(html, content_type="text/html; charset=utf-8", site=site, context=ReadContext(**known))


@pytest.mark.parametrize("site", sites(), ids=lambda site: site.id)
def test_a_site_has_fixtures_of_a_product_in_and_out_of_stock(site):
    names = [page.name for page in PAGES if page.parent.name == site.id]
    assert {"in_stock", "out_of_stock"} <= set(names)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_fixture_is_read_as_expected(page):
    expected = json.loads((FIXTURES / page).with_suffix(".json").read_text())
    site = site_named(page.parent.name)
    reading = read((FIXTURES / page).with_suffix(".html").read_bytes(), site)
    assert (str(reading.outcome), written(reading.offer)) == (expected["outcome"], expected["offer"]), reading.detail
    assert (reading.adapter_id, reading.adapter_version) == (site.id, site.version)
    assert reading.evidence
    again = read((FIXTURES / page).with_suffix(".html").read_bytes(), site)
    assert again == reading, "the same bytes give the same reading"


@pytest.mark.parametrize("site", sites(), ids=lambda site: site.id)
def test_a_changed_site_file_has_a_new_version(site):
    name = "__init__" if site.id == "structured" else site.id
    if site.id == "structured":
        assert VERSIONS[site.id] == (site.version, "-"), "it has no file; its version is raised with the reader"
        return
    digest = hashlib.sha256((Path(registry.__file__).parent / f"{name}.py").read_bytes()).hexdigest()[:16]
    assert VERSIONS[site.id] == (site.version, digest), "raise the version, then put version and hash into versions.tsv"


def test_every_site_file_is_registered():
    files = {path.stem for path in Path(registry.__file__).parent.glob("*.py")} - {"__init__", "_template"}
    assert files == {site.id for site in sites()} - {"structured"} == set(VERSIONS) - {"structured"}


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (Site(id="one", version="1.0.0", title="", domains=("b.example",)), "two sites have the id one"),
        (Site(id="two", version="1.0.0", title="", domains=("a.example",)), "both claim a.example"),
        (Site(id="two", version="1.0.0", title="", places={"price": ("b",)}), "a place is a CSS selector"),
        (Site(id="two", version="1.0.0", title="", places={"price": ("b > ::text",)}), "not a CSS selector"),
        (Site(id="two", version="1.0.0", title="", places={"price": ("json:offers..price",)}), "not a JSON path"),
        (Site(id="two", version="1.0.0", title="", sku_pattern="abc"), "no group"),
    ],
)
def test_the_registry_refuses(second, words):
    with pytest.raises(ValueError, match=words):
        checked((Site(id="one", version="1.0.0", title="", domains=("a.example",)), second))


def test_a_site_is_found_by_its_domain_and_its_id():
    assert site_for_domain("sgammo.com") is site_for_domain("www.SGAMMO.com") is site_named("sgammo")
    assert site_for_domain("notsgammo.com") is None
    with pytest.raises(KeyError):
        site_named("template")


@pytest.mark.parametrize("case", sgammo_pages(), ids=lambda case: case.name)
def test_sgammo_pages_in_six_states_are_all_read_right(case):
    reading = read(case.html.encode(), site_named("sgammo"))
    if case.price is None:
        assert reading.outcome == "OOS_NO_PRICE"
        return
    offer = reading.offer
    assert reading.outcome == "OFFER", reading.detail
    assert (str(offer.price), offer.availability, offer.title) == (f"{case.price} USD", case.stock, case.goods.title)
    assert (offer.sku, offer.brand) == (case.goods.sku, None), "the shop is not a brand"
    assert str(offer.original) == (f"{case.goods.was} USD" if case.goods.was else "None")


@pytest.mark.parametrize("redesign", REDESIGNS, ids=lambda redesign: redesign.__name__)
def test_a_redesigned_sgammo_gives_no_price_at_all(redesign):
    for case in sgammo_pages():
        if case.price is None:
            continue
        changed = redesign(case.html)
        assert changed != case.html
        reading = read(changed.encode(), site_named("sgammo"))
        assert reading.outcome not in {"OFFER", "ADAPTER_FAILED"}, f"{case.name}: {reading.offer}"
