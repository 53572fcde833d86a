"""Every network passes the same suite, with fixtures of its own in `tests/fixtures/networks/<name>/`.

A fixture is a file as the network delivers it, and a JSON file of the same name with the expected rows.
"""

import json
import random
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from tests.support.generated import seeds

from harvester.feeds import networks as folder
from harvester.feeds.networks import network_named, networks
from harvester.feeds.reader import ParseSettings, Parsing
from harvester.feeds.reader.binding import bind
from harvester.kernel.errors import NotFound
from harvester.kernel.headers import normalize_header
from harvester.kernel.identity import NUMBERS, IdentityType
from harvester.kernel.network import FROM_ONE_COLUMN, Field
from harvester.kernel.rejects import RejectCode
from harvester.kernel.urls import canonical_url, identity_url, url_hash
from harvester.kernel.xml_records import UnreadableXml

FIXTURES = Path(__file__).parent.parent / "fixtures" / "networks"
MOMENT = datetime(2025, 6, 1, tzinfo=UTC)
BY_NUMBER = {number: kind for kind, number in NUMBERS.items()}
FINGERPRINTS = ("content_hash", "signature", "url_hash", "identity_type", "identity_value")

every_network = pytest.mark.parametrize("network", list(networks().values()), ids=list(networks()))

every_manifest = pytest.mark.parametrize(
    "network",
    [network for network in networks().values() if network.read_manifest],
    ids=[name for name, network in networks().items() if network.read_manifest],
)


def fixtures():
    """Network, file and expectation of every fixture; manifests are looked at by themselves."""
    for expectation in sorted(FIXTURES.glob("*/*.json")):
        if expectation.stem != "manifest":
            (file,) = (path for path in expectation.parent.glob(f"{expectation.stem}.*") if path != expectation)
            yield pytest.param(expectation.parent.name, file, id=f"{expectation.parent.name}-{expectation.stem}")


def parsed(data, network, **settings):
    parsing = Parsing([data], network, ParseSettings(moment=MOMENT, **settings))
    return list(parsing), parsing.report


def shown(row):
    """A row as fixtures write it: amounts as text, the identity as a pair, no fingerprints."""
    kept = {name: value for name, value in row.items() if name not in FINGERPRINTS}
    amounts = {name: value and str(value) for name, value in kept.items() if name.endswith("amount")}
    return {**kept, **amounts, "identity": [BY_NUMBER[row["identity_type"]].value, row["identity_value"]]}


def written(row):
    """A row of an expectation; an identity by address is written as the address."""
    kind, value = row["identity"]
    value = url_hash(value) if kind == IdentityType.URL_HASH else value
    return {**row, "identity": [kind, value]}


@pytest.mark.parametrize(("name", "file"), list(fixtures()))
def test_a_fixture_gives_the_rows_of_its_json_file(name, file):
    expected = json.loads(file.with_suffix(".json").read_text("utf-8"))
    frames, report = parsed(file.read_bytes(), network_named(name), default_currency=expected.get("default_currency"))
    rows = [shown(row) for frame in frames for row in frame.to_dicts()]
    assert rows == [written(row) for row in expected["rows"]]
    lines = {code: [sample.line for sample in samples] for code, samples in report.findings.samples.items()}
    assert {code: at for code, at in lines.items() if code in RejectCode} == expected["rejects"]
    assert {code: at for code, at in lines.items() if code not in RejectCode} == expected["warnings"]
    assert report.rows_read == len(expected["rows"]) + sum(map(len, expected["rejects"].values()))
    assert report.binding.family == expected["family"]
    assert report.dialect.delimiter_name == expected["delimiter"]
    assert report.encoding == expected.get("encoding", "utf-8")
    assert report.duplicates.superseded.to_list() == expected.get("superseded", [])
    assert set(expected.get("unbound", [])) <= set(report.binding.unbound)


@every_network
def test_every_network_has_a_fixture_for_each_of_its_families(network):
    shown_families = {
        json.loads(path.read_text("utf-8"))["family"]
        for path in FIXTURES.glob(f"{network.name}/*.json")
        if path.stem != "manifest"
    }
    assert {family.name for family in network.families} <= shown_families


@every_network
def test_a_network_is_named_like_its_file(network):
    assert (Path(folder.__path__[0]) / f"{network.name}.py").is_file()
    assert network_named(network.name) is network


def test_an_unknown_network_is_not_found():
    with pytest.raises(NotFound, match="impact"):
        network_named("unknown")


@every_network
@pytest.mark.parametrize(
    "spell",
    [str.upper, str.lower, lambda name: name.replace(" ", "_"), lambda name: f" {name.replace(' ', '-')}\u00a0"],
    ids=["upper", "lower", "underscores", "hyphens"],
)
def test_every_alias_is_found_however_it_is_spelled(network, spell):
    for field, aliases in network.aliases.items():
        for alias in aliases:
            assert bind([spell(alias)], network).columns == {field: (0,)}


@every_network
def test_the_first_of_several_aliases_is_preferred(network):
    for field, aliases in network.aliases.items():
        distinct = list({normalize_header(alias): alias for alias in aliases}.values())
        places = bind(distinct[::-1], network).columns[field]
        ranked = [distinct[::-1][place] for place in places]
        assert ranked == (distinct[:1] if field in FROM_ONE_COLUMN else distinct)


def priced(network, currency_header, *rows):
    """A file with the fewest columns that a network needs, and a currency column."""
    header = [network.aliases[field][0] for field in (Field.TITLE, Field.URL, Field.LIST_PRICE)]
    lines = [
        [*header, currency_header],
        *(["Thing", f"https://shop.example/{at}", *row] for at, row in enumerate(rows)),
    ]
    return "".join("\t".join(line) + "\n" for line in lines).encode()


@every_network
@pytest.mark.parametrize("name", ["currency", "currency_code", "Price Currency", "priceCurrency", "currency symbol"])
def test_a_currency_column_counts_before_the_default_of_the_feed(network, name):
    data = priced(network, name, ("12.99", "EUR"), ("12.99", "\u20ac"), ("12.99 EUR", "eur"), ("12.99", ""))
    frames, report = parsed(data, network, default_currency="USD")
    assert [row["currency"] for frame in frames for row in frame.to_dicts()] == ["EUR", "EUR", "EUR", "USD"]
    assert report.binding.doubtful == ()


@every_network
def test_a_price_that_contradicts_its_currency_column_is_rejected(network):
    data = priced(network, "currency", ("12.99 USD", "EUR"), ("$12.99", "EUR"), ("12.99", "EUR"))
    frames, report = parsed(data, network, default_currency="USD")
    assert [row["currency"] for frame in frames for row in frame.to_dicts()] == ["EUR"]
    assert report.findings.counts == {RejectCode.INVALID_CURRENCY: 2}


@every_network
def test_a_row_with_two_contradictory_currencies_is_rejected(network):
    rows = [("12.99", "EUR\tUSD"), ("12.99", "EUR\tEUR"), ("12.99", "\tUSD"), ("12.99", "USD\t$")]
    frames, report = parsed(priced(network, "currency\tprice_currency", *rows), network)
    assert [row["currency"] for frame in frames for row in frame.to_dicts()] == ["EUR", "USD", "USD"]
    assert report.findings.counts == {RejectCode.INVALID_CURRENCY: 1}


#: Codes with signs as shops write them, of which some are in the table of signs.
CODES_WITH_SIGNS = [
    *(("USD", "$"), ("EUR", "\u20ac"), ("EUR", "&#8364;"), ("EUR", "?"), ("ZAR", "R"), ("AED", "\u062f.\u0625")),
    *(("BGN", "\u043b\u0432"), ("PEN", "S/"), ("GTQ", "Q"), ("SAR", "SR"), ("CHF", "CHF"), ("SEK", "kr"), ("CAD", "$")),
]


@every_network
@pytest.mark.parametrize("name", ["currency", "currency_code"])
def test_a_sign_in_addition_to_a_code_neither_rejects_nor_changes_it(network, name):
    data = priced(
        network, f"currency symbol\t{name}", *(("12.99", f"{sign}\t{code}") for code, sign in CODES_WITH_SIGNS)
    )
    frames, report = parsed(data, network, default_currency="USD")
    assert [row["currency"] for frame in frames for row in frame.to_dicts()] == [code for code, _ in CODES_WITH_SIGNS]
    assert report.findings.counts == {}


@every_network
def test_a_sign_counts_where_no_code_is_given_and_before_the_default_of_the_feed(network):
    rows = [(" \t", "\u20ac"), ("\t", "R"), ("\t", ""), ("\tEUR", "$"), ("EUR\tUSD", "\u20ac"), ("\t", "US$")]
    header = "currency\tprice_currency\tcurrency symbol"
    data = priced(network, header, *(("12.99", f"{codes}\t{sign}") for codes, sign in rows))
    frames, report = parsed(data, network, default_currency="USD")
    assert [row["currency"] for frame in frames for row in frame.to_dicts()] == ["EUR", "USD", "EUR", "USD"]
    assert [sample.line for sample in report.findings.samples[RejectCode.INVALID_CURRENCY]] == [3, 6]


@every_network
@pytest.mark.parametrize(
    ("name", "looks_like"),
    [
        *(("Settlement Currency", "currency"), ("currency2", "currency")),
        *(("W\u00e4hrung", "currency"), ("Devise", "currency"), ("Moneda", "currency"), ("Valuta", "currency")),
        *(("Cur", "currency"), ("curr", "currency"), ("CCY", "currency"), ("currencyId", "currency")),
        *(("Verkaufspreis", "price"), ("Prix TTC", "price"), ("Precio", "price")),
        *(("Final Price", "price"), ("price_eur", "price"), ("offerPrice", "price")),
        *(("Stock Status", "stock"), ("is_available", "stock"), ("Quantity", "stock"), ("qty", "stock")),
        *(("Lagerbestand", "stock"), ("Verf\u00fcgbarkeit", "stock"), ("Disponibilit\u00e9", "stock")),
        *(("Artikelnummer", "ID"), ("Article Number", "ID")),
        *(("Product ID", "ID"), ("articleId", "ID"), ("internal_sku", "ID"), ("offerid", "ID"), ("xID", "ID")),
        *(
            ("Paid", None),
            ("Android", None),
            ("Video", None),
            ("Color", None),
            ("Weight", None),
            ("Commission id", None),
        ),
    ],
)
def test_a_name_that_looks_like_an_important_field_gives_a_notice(network, name, looks_like):
    assert bind([name], network).doubtful == (((name, looks_like),) if looks_like else ())


#: Columns of the specifications of Google and Impact that mean something else, or do not matter for a catalog.
HARMLESS = """
    item_group_id unit_pricing_measure unit_pricing_base_measure shipping_price shipping_weight cost_of_goods_sold
    availability_date expiration_date sell_on_google_quantity display_ads_id external_seller_id store_code multipack
    auto_pricing_min_price maximum_retail_price installment subscription_cost loyalty_points tax_category custom_label_0
    identifier_exists mobile_link additional_image_link google_product_category_id shipping_label price_range
    Parent_SKU Program_Id Catalog_Id Campaign_Id Advertiser_Id Shipping_Rate Discount_Percentage Money1 Numeric1 Text1
    Category_Id Brand_Id Manufacturer_Id Merchant_Id Store_Id Condition Commission_Price Grundpreis Versandpreis
    min_order_qty security accuracy curve
"""


@every_network
@pytest.mark.parametrize("name", HARMLESS.split())
def test_columns_about_something_else_give_no_notice(network, name):
    assert bind([name], network).doubtful == ()


@every_network
def test_a_number_of_pieces_gives_no_notice_where_the_stock_is_known(network):
    assert bind([network.aliases[Field.STOCK][0], "Quantity"], network).doubtful == ()


@every_network
def test_fixtures_give_no_notice_of_columns(network):
    for path in FIXTURES.glob(f"{network.name}/*.*"):
        if path.suffix in {".txt", ".csv"}:
            assert parsed(path.read_bytes(), network)[1].binding.doubtful == ()


@every_network
@pytest.mark.parametrize("name", ["Commission", "commission_rate", "Default Payout", "Earnings per click", "PAYOUT"])
def test_commissions_are_never_read(network, name):
    assert bind([name], network).columns == {}


CELLS = {
    Field.ITEM_ID: "I-1",
    Field.SKU: "S-1",
    Field.TITLE: "Thing",
    Field.URL: "https://shop.example/p/1",
    Field.LANDING_URL: "https://shop.example/p/1",
    Field.IMAGE_URL: "https://shop.example/1.jpg",
    Field.SALE_PRICE: "15.99 USD",
    Field.LIST_PRICE: "18.99 USD",
    Field.ORIGINAL_PRICE: "19.99 USD",
    Field.SALE_PERIOD: "2025-01-01T00:00Z/2025-12-31T00:00Z",
    Field.CURRENCY: "USD",
    Field.CURRENCY_SYMBOL: "$",
    Field.STOCK: "in stock",
    Field.GTIN: "036000291452",
    Field.MPN: "M-1",
    Field.BRAND: "Brand",
    Field.CATEGORY: "Things",
    Field.DESCRIPTION: "A thing",
    Field.PROMOTION: "Free shipping",
}


def small_feed(network, delimiter, order):
    fields = sorted((field for field in CELLS if field in network.aliases), key=order)
    lines = [[network.aliases[field][0] for field in fields], [CELLS[field] for field in fields]]
    return "".join(delimiter.join(line) + "\n" for line in lines).encode()


@every_network
@pytest.mark.parametrize("seed", seeds(0, 3))
def test_every_delimiter_and_every_order_of_columns_gives_the_same_row(network, seed):
    rng = random.Random(seed)
    places = {field: rng.random() for field in Field}
    frames = [
        frame
        for delimiter in network.delimiters
        for order in (list(Field).index, places.get)
        for frame in parsed(small_feed(network, delimiter, order), network)[0]
    ]
    assert len(frames) == 2 * len(network.delimiters)
    assert pl.concat(frames).unique().height == 1
    (row,) = frames[0].to_dicts()
    assert (str(row["amount"]), row["currency"], row["title"]) == ("15.9900", "USD", "Thing")


@every_network
def test_tracking_parameters_do_not_change_an_identity(network):
    plain = "https://shop.example/p?sku=1"
    for name in network.links.tracking_names:
        assert identity_url(f"{plain}&{name}=x", network.links) == identity_url(plain, network.links)
        shown = f"&{name.upper()}=x" if name in network.links.shown_names else ""
        assert canonical_url(f"{plain}&{name.upper()}=x", network.links) == plain + shown


@every_manifest
def test_a_manifest_says_how_many_records_its_files_have(network):
    entries = network.read_manifest((FIXTURES / network.name / "manifest.xml").read_bytes())
    expected = json.loads((FIXTURES / network.name / "manifest.json").read_text("utf-8"))
    moments = [entry.updated_at and entry.updated_at.isoformat() for entry in entries]
    found = [asdict(entry) | {"updated_at": at} for entry, at in zip(entries, moments, strict=True)]
    assert [entry | {"unusable": list(entry["unusable"])} for entry in found] == expected


@every_manifest
@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<html><body>Not found",
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><catalogs><catalog>&a;</catalog></catalogs>',
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><catalogs/>',
        b"\xff\xfe\x00",
        b"<a>" * 100,
    ],
    ids=["empty", "html", "entities", "outside", "bytes", "deep"],
)
def test_a_hostile_manifest_is_refused(network, document):
    with pytest.raises(UnreadableXml):
        network.read_manifest(document)
