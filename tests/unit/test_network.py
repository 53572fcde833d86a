"""A network that cannot work is refused when it is created."""

from dataclasses import replace

import pytest

from harvester.feeds.reader.binding import bind, missing
from harvester.kernel.errors import InvalidInput
from harvester.kernel.network import Family, Field, ManifestEntry, Network

NETWORK = Network(
    name="some",
    label="Some",
    aliases={
        Field.TITLE: ("Name", "Title"),
        Field.URL: ("Link",),
        Field.SALE_PRICE: ("Sale Price",),
        Field.LIST_PRICE: ("Price",),
        Field.SKU: ("SKU", "Number"),
    },
    families=(
        Family(name="long", marks=(("SKU", "Number"), ("Extra",))),
        Family(name="short", marks=(("SKU", "Number"),)),
    ),
)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": "Some Network"}, "lower case"),
        ({"delimiters": ("\t", "ab")}, "one character"),
        ({"delimiters": ('"',)}, "quote"),
        ({"manifest_name": "list.xml"}, "reader"),
        ({"aliases": {Field.TITLE: ("Name",), Field.URL: ("Link",)}}, "price"),
        ({"aliases": {**NETWORK.aliases, Field.BRAND: ("title",)}}, "cannot mean both"),
        ({"aliases": {**NETWORK.aliases, Field.LIST_PRICE: ("Payout Price",)}}, "never read"),
    ],
)
def test_a_network_that_cannot_work_is_refused(wrong, why):
    with pytest.raises(ValueError, match=why):
        replace(NETWORK, **wrong)


def test_a_template_that_makes_no_links_is_refused():
    with pytest.raises(InvalidInput):
        replace(NETWORK, tracking_template="https://x.example/{nothing}")


def test_one_price_is_enough():
    del_sale = {field: names for field, names in NETWORK.aliases.items() if field is not Field.SALE_PRICE}
    assert replace(NETWORK, aliases=del_sale).meanings["price"] == (Field.LIST_PRICE, 0)


@pytest.mark.parametrize(
    ("header", "family"),
    [(["number", "EXTRA"], "long"), (["sku"], "short"), (["Extra"], None), ([], None)],
)
def test_the_first_matching_family_counts(header, family):
    assert NETWORK.family_of(header) == family


def test_a_header_is_bound_by_name_and_reports_unread_columns():
    binding = bind(["Other", "TITLE", "name", "number", "sku", "price"], NETWORK)
    assert binding.columns == {Field.SKU: (4,), Field.TITLE: (2, 1), Field.LIST_PRICE: (5,)}
    assert binding.names == {"sku": ["sku"], "title": ["name", "TITLE"], "list_price": ["price"]}
    assert (binding.spares, binding.unbound) == ({Field.SKU: (3,)}, ["Other"])
    assert missing(binding) == [(Field.URL, Field.LANDING_URL)]


@pytest.mark.parametrize(
    "wrong", [{"location": "", "records": 1}, {"location": "x", "records": 1, "updated_at": "naive"}]
)
def test_an_entry_of_a_manifest_names_a_file_and_a_moment(wrong):
    from datetime import datetime

    moment = {"updated_at": datetime(2025, 1, 1)} if "updated_at" in wrong else {}  # noqa: DTZ001 - that is the mistake
    with pytest.raises(ValueError, match="manifest entry"):
        ManifestEntry(**(wrong | moment))
