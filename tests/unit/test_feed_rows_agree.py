"""Results of columns equal those of the kernel for each row."""

import itertools
import json
from datetime import UTC, datetime
from ipaddress import ip_network
from urllib.parse import quote

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.dirty_feeds import LANDINGS, LINKS, NASTY, PRICES, TRACKED, dirty_row, seeded, write_feed
from tests.support.feeds import MOMENT, feed, parse, row
from tests.support.generated import examples, seeds
from tests.support.slow_parse import slow_parse

from harvester.feeds.networks import network_named, networks
from harvester.feeds.reader import SCHEMA, ParseSettings, Parsing
from harvester.feeds.reader.faults import fault_of
from harvester.feeds.reader.findings import MOST_SAMPLES
from harvester.feeds.reader.links import GtinReader, LinkReader
from harvester.kernel.gtin import normalize_gtin, normalize_isbn
from harvester.kernel.link_rules import IDENTITY_NAMES, LinkRules
from harvester.kernel.network import Field
from harvester.kernel.rejects import Rejected
from harvester.kernel.stock import UnknownStock
from harvester.kernel.urls import canonical_url, identity_url, link_identity

WIDE = (
    "Unique Merchant SKU|Product Name|Product URL|Image URL|Current Price|Original Price|Currency|Stock Availability|"
    "EAN|UPC|ISBN|MPN|Manufacturer|Category|Description|Promotions|Other"
)
WITH_LANDING = "Sku|Program Id|Catalog Id|Url|Original Url|Name|Current Price|Price|Currency|Gtin|Availability"
WITH_ITEM_ID = (
    "CatalogItemId|Item Id|Sku|Id|Unique Merchant SKU|Name|Url|ImageUrl|Price|SalePrice|CurrentPrice|Currency|MSRP|"
    "RetailPrice"
)
GOOGLE = (
    "id|title|link|image_link|price|currency|sale_price|sale_price_effective_date|availability|brand|gtin|mpn|"
    "product_type|description"
)
LAYOUTS = [("impact", WIDE), ("impact", WITH_LANDING), ("impact", WITH_ITEM_ID), ("google_merchant", GOOGLE)]
DIALECTS = [("\t", "none"), ("\t", "needed"), (",", "needed"), (",", "all"), ("|", "needed"), (";", "all")]
ROWS = 2000


def dirty_feed(seed):
    """A feed of dirty rows, with its network, its settings and how it was written."""
    rng = seeded(seed)
    name, header = LAYOUTS[seed % len(LAYOUTS)]
    delimiter, quoting = DIALECTS[seed % len(DIALECTS)]
    columns = header.split("|")
    data = write_feed(
        rng,
        columns,
        [dirty_row(rng, columns) for _ in range(ROWS)],
        delimiter=delimiter,
        quoting=quoting,
        line_end=rng.choice(["\n", "\r\n"]),
    )
    said = ParseSettings(
        moment=datetime(2024, 6, 1, tzinfo=UTC),
        default_currency=rng.choice([None, "USD", "EUR"]),
        decimal_style=rng.choice([None, ".", ","]),
        unknown_stock=rng.choice(list(UnknownStock)),
        allowed_networks=rng.choice([(), (), (ip_network("127.0.0.0/8"),), (ip_network("10.0.0.0/8"),)]),
        kept_parameters=rng.choice([(), (), ("ref", "intsrc"), ("utm_source",)]),
    )
    return networks()[name], data, said, rng.choice([20_000, 200_000, 4_000_000])


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in seeds(12, 12))])
def test_dirty_feeds_give_the_results_of_the_kernel_row_by_row(seed):
    network, data, said, block = dirty_feed(seed)
    parsing = Parsing([data], network, said, encoding="utf-8", block_bytes=block)
    fast = pl.concat([pl.DataFrame(schema=SCHEMA), *parsing]).to_dicts()
    report = parsing.report
    slow = slow_parse(data, network, said, delimiter=report.dialect.delimiter, quoted=report.dialect.quoted)
    assert len(fast) > ROWS / 50
    for one, other in zip(fast, slow.rows, strict=False):
        assert one == other
    assert len(fast) == len(slow.rows) == report.rows_valid
    assert report.rows_read == slow.rows_read
    assert report.findings.counts == slow.counts
    samples = {code: [sample.line for sample in kept] for code, kept in report.findings.samples.items()}
    assert samples == {code: at[:MOST_SAMPLES] for code, at in slow.lines.items()}
    last = {(one["identity_type"], one["identity_value"]): one["line"] for one in slow.rows}
    assert report.duplicates.products == len(last)
    assert report.duplicates.superseded.to_list() == sorted({one["line"] for one in slow.rows} - set(last.values()))


@pytest.mark.parametrize("default", [None, "USD", "EUR"])
@pytest.mark.parametrize("name", ["impact", "google_merchant"])
def test_signs_in_addition_to_codes_are_read_as_by_the_kernel(name, default):
    network = networks()[name]
    header = [network.aliases[field][0] for field in (Field.SKU, Field.TITLE, Field.URL, Field.LIST_PRICE)]
    header += ["Currency", "Currency Symbol", "Currency Code"]
    codes = ["", " ", "EUR", "usd", "$", "\u20ac", "R", "?"]
    prices = ["12.99", "12.99 EUR", "$12.99", "EUR"]
    lines = [header]
    for one, sign, other in itertools.product(codes, [*codes, "x" * 100_001], codes):
        start = [f"S-{len(lines)}", "Thing", f"https://shop.example/{len(lines)}"]
        lines.append([*start, prices[len(lines) % 4], one, sign, other])
    data = "".join("\t".join(line) + "\n" for line in lines).encode()
    said = ParseSettings(moment=MOMENT, default_currency=default)
    parsing = Parsing([data], network, said, encoding="utf-8")
    fast = pl.concat([pl.DataFrame(schema=SCHEMA), *parsing]).to_dicts()
    slow = slow_parse(data, network, said, delimiter="\t", quoted=parsing.report.dialect.quoted)
    assert {row["currency"] for row in fast} == {"EUR", "USD"}
    assert fast == slow.rows
    assert parsing.report.findings.counts == slow.counts


WRAPPING = network_named("impact").links
RULES = [
    WRAPPING,
    LinkRules(),
    LinkRules(tracked_path="/c/.*", landing_parameters=("u", "url"), tracking_prefixes=("x_",)),
    LinkRules(tracked_path="/go"),
    LinkRules(kept_names=frozenset({"ref", "gclid"})),
    LinkRules(allowed_networks=(ip_network("127.0.0.0/8"), ip_network("::1/128"))),
    LinkRules(kept_names=frozenset({"utm_x", "pk_x"})),
    # A prefix that would swallow what chooses the product: the kernel never lets it.
    LinkRules(tracking_names=IDENTITY_NAMES, tracking_prefixes=("p", "s")),
]
ADDRESS_LETTERS = st.sampled_from(
    [
        *"abZ019./?&=#%+-_~:@\\ ;,",
        "%2F",
        "%3D",
        "%7e",
        "%C3%A9",
        "\u00e9",
        "u=",
        "utm_x=",
        "&ref=1",
        "&affinity=",
        "&pk_x=2",
        "&GCLID=3",
    ]
)
ADDRESSES = st.one_of(
    st.lists(ADDRESS_LETTERS, max_size=30).map(lambda parts: "https://shop.example/" + "".join(parts)),
    st.lists(ADDRESS_LETTERS, max_size=20).map(lambda parts: "http://" + "".join(parts)),
    st.tuples(st.sampled_from(TRACKED), st.sampled_from(["?u=", "?a=1&u=", "?url=", "/?u="]), st.sampled_from(LANDINGS),
              st.lists(ADDRESS_LETTERS, max_size=8)).map(lambda parts: "".join(parts[:3]) + "".join(parts[3])),
    st.sampled_from(LINKS),
    st.sampled_from(LINKS).map(lambda link: f"https://brand.sjv.io/c/1/2/3?u={quote(link, safe='')}"),
    st.sampled_from(["http://localhost/c/1/2/3?u=https://shop.example/p", "http://a.local/c/1/2/3?u=https://b.example"]),
    st.text(st.sampled_from(NASTY), max_size=20),
)  # fmt: skip


RESULT = ("url", "identity", "link_identity")


def fast_links(texts, rules):
    reader = LinkReader(rules)
    looked = pl.DataFrame({"address": texts}).select("address", *reader.inputs(pl.col("address")))
    looked = reader.unwrap(looked)
    worked = looked.with_columns(reader.read_plain(looked["link"]))
    for text, is_plain, *plain in worked.select("address", "link_is_plain", *RESULT).iter_rows():
        *odd, fault = reader.read_odd([text]).row(0)
        yield tuple(plain) if is_plain else fault_of(fault) if fault else tuple(odd)


def slow_link(text, rules):
    try:
        return canonical_url(text, rules), identity_url(text, rules), link_identity(text, rules)
    except Rejected as refusal:
        return refusal.fault


@settings(max_examples=examples(300))
@given(st.lists(ADDRESSES, min_size=1, max_size=20), st.sampled_from(RULES))
@example(["https://shop.example/p?utm_source=x#top", "https://shop.example/p/?b=2&a=1"], WRAPPING)
def test_addresses_in_columns_are_those_of_the_kernel(texts, rules):
    assert list(fast_links(texts, rules)) == [slow_link(text, rules) for text in texts]


def test_ordinary_addresses_do_not_need_the_kernel():
    texts = [
        "https://www.shop.example/p/1",
        "https://www.shop.example/p/1/?sku=2&utm_source=x#top",
        "http://shop.example/caf%C3%A9?q=a+b",
        "https://brand.sjv.io/c/1/2/3?prodsku=1&u=https%3A%2F%2Fshop.example%2Fp%3Fsku%3D1&intsrc=x",
        "https://brand.sjv.io/c/1/2/3?u=https%253A%252F%252Fshop.example%252Fp",
        "https://brand.sjv.io/c/1/2/3?prodsku=1",
    ]
    reader = LinkReader(WRAPPING)
    looked = reader.unwrap(pl.DataFrame({"address": texts}).select(*reader.inputs(pl.col("address"))))
    assert looked["link_is_plain"].to_list() == [True] * len(texts)


NUMBERS = st.one_of(
    st.text(st.sampled_from("0123456789"), max_size=15),
    st.text(st.sampled_from("0123456789Xx- '\u2010\u00a0E+."), max_size=16),
    st.sampled_from(["UPC 020892215513", "EAN-13: 4006381333931", "ISBN 080442957X", "upc036000291452", "UPC"]),
)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.sampled_from([Field.GTIN, Field.ISBN]))
def test_trade_item_numbers_in_columns_are_those_of_the_kernel(texts, field):
    reader = GtinReader([(field, pl.col("text"))])
    looked = pl.DataFrame({"text": texts}).select(reader.inputs)
    rows = reader.choose(looked.with_columns(reader.check(looked)).lazy()).collect()
    read = normalize_isbn if field is Field.ISBN else normalize_gtin
    results = [read(text) for text in texts]
    assert rows["gtin"].to_list() == [(result and result.kept) or "" for result in results]
    assert rows["bad_gtin"].to_list() == [bool(result) and not result.valid for result in results]


PRICE_CELLS = st.one_of(
    st.sampled_from(PRICES),
    st.text(st.sampled_from("0123456789.,' $\u20ac\u00a3-()USDEkr\u00a0:*/\u2013\u200b"), max_size=12),
    st.decimals(0, 10**6, places=2).map(str),
)
PRICED_CURRENCIES = ["USD", "EUR", "", " usd ", "JPY", "KWD", "XXX", "\u20ac", "$", "euros", "INR"]
PRICED_ROWS = st.lists(
    st.tuples(PRICE_CELLS, PRICE_CELLS, PRICE_CELLS, st.sampled_from(PRICED_CURRENCIES)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=examples(200))
@given(PRICED_ROWS, st.sampled_from([None, "USD", "JPY"]), st.sampled_from([None, ".", ","]))
def test_prices_in_columns_are_those_of_the_kernel(rows, default, style):
    header = ["SKU", "Name", "Url", "Sale Price", "Price", "Original Price", "Currency"]
    cells = [[f"S-{n}", "x", "https://shop.example/", *row] for n, row in enumerate(rows)]
    data = feed(*([cell.replace("\n", " ") for cell in row] for row in cells), header=header).encode()
    said = ParseSettings(moment=MOMENT, default_currency=default, decimal_style=style)
    frame, report = parse(data, settings=said, encoding="utf-8")
    slow = slow_parse(data, network_named("impact"), said, delimiter="\t", quoted=False)
    assert frame.to_dicts() == slow.rows
    assert report.findings.counts == slow.counts


def test_frames_have_the_promised_columns_whatever_is_in_them():
    for data in (feed(), feed(row(101)), feed(row(101, Name=""))):
        parsing = Parsing([data.encode()], network_named("impact"), ParseSettings(moment=MOMENT))
        for frame in parsing:
            assert frame.schema == SCHEMA


def test_samples_are_cut_and_show_no_secret():
    secret = row(101, Name="", Url="https://user:hunter2@shop.example/p")
    _, report = parse(feed(secret, row(102, Name="", Availability="x" * 1000)))
    (first, second) = report.findings.samples["MISSING_TITLE"]
    assert "hunter2" not in json.dumps([first.row, first.reason])
    assert first.reason == "there is no title"
    assert first.row.startswith("S-101\t\thttps://")
    assert len(second.row) == 300
