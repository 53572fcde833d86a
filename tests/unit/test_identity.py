"""A product is known again by the best identifier that its row has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.kernel.identity import (
    NUMBERS,
    PRIORITY,
    Identity,
    IdentityType,
    clean_identifier,
    identity_of,
    shown_identity,
)
from harvester.kernel.link_rules import LinkRules
from harvester.kernel.rejects import Fault, RejectCode, Rejected
from harvester.kernel.urls import url_hash

URL = "https://Shop.example/P/1/?utm_source=x"
URL_IDENTITY = Identity(type=IdentityType.URL_HASH, value=url_hash("shop.example/P/1"))


def test_the_order_is_network_item_product_sku_address():
    assert [kind.value for kind in PRIORITY] == ["NETWORK_ITEM_ID", "PRODUCT_ID", "SKU", "URL_HASH"]


@pytest.mark.parametrize(
    ("kind", "shown"), [("NETWORK_ITEM_ID", "ITEM:a"), ("PRODUCT_ID", "PID:a"), ("SKU", "SKU:a"), ("URL_HASH", "URL:a")]
)
def test_an_identity_is_shown_with_its_kind(kind, shown):
    assert shown_identity(NUMBERS[IdentityType(kind)], "a") == shown


def test_of_a_hash_the_beginning_is_shown():
    assert shown_identity(NUMBERS[IdentityType.URL_HASH], "0123456789abcdef" * 4) == "URL:0123456789abcdef"


@pytest.mark.parametrize(
    ("item_id", "product_id", "sku", "expected"),
    [
        ("abc123", "77", "S-1", Identity(type=IdentityType.NETWORK_ITEM_ID, value="abc123")),
        ("", "77", "S-1", Identity(type=IdentityType.PRODUCT_ID, value="77")),
        (None, None, "FEDERAL-9MM-1000", Identity(type=IdentityType.SKU, value="FEDERAL-9MM-1000")),
        (" ", "\u00a0", "\t", URL_IDENTITY),
        ("null", "N/A", "None", URL_IDENTITY),
        ("  abc 123 ", None, None, Identity(type=IdentityType.NETWORK_ITEM_ID, value="abc 123")),
        (None, None, "aBc", Identity(type=IdentityType.SKU, value="aBc")),
        (None, None, "007", Identity(type=IdentityType.SKU, value="007")),
        (None, None, "0", Identity(type=IdentityType.SKU, value="0")),
    ],
)
def test_the_best_identifier_there_is_counts(item_id, product_id, sku, expected):
    assert identity_of(item_id=item_id, product_id=product_id, sku=sku, url=URL) == expected


def test_the_address_counts_as_its_hash_of_64_digits():
    identity = identity_of(url=URL)
    assert identity == URL_IDENTITY
    assert len(identity.value) == 64


def test_a_tracked_link_counts_as_its_landing_page():
    rules = LinkRules(tracked_path="/c/[0-9]+/[0-9]+/[0-9]+", landing_parameters=("u",))
    link = "https://brand.sjv.io/c/1/2/3?u=https%3A%2F%2Fshop.example%2FP%2F1"
    assert identity_of(url=link, rules=rules) == URL_IDENTITY


@pytest.mark.parametrize(
    ("row", "fault", "code"),
    [
        ({"sku": "x" * 256, "url": URL}, Fault.ID_TOO_LONG, RejectCode.FIELD_TOO_LONG),
        ({"item_id": "a\x00b", "sku": "S", "url": URL}, Fault.ID_CONTROLS, RejectCode.BAD_ENCODING),
        ({"sku": "a\nb", "url": URL}, Fault.ID_CONTROLS, RejectCode.BAD_ENCODING),
        ({"sku": "a\udcffb", "url": URL}, Fault.ID_CONTROLS, RejectCode.BAD_ENCODING),
        ({}, Fault.NO_URL, RejectCode.MISSING_URL),
        ({"url": "shop"}, Fault.URL_NOT_WEB, RejectCode.INVALID_URL),
    ],
)
def test_an_identifier_that_cannot_be_used_refuses_the_row_rather_than_making_a_second_product(row, fault, code):
    with pytest.raises(Rejected) as refused:
        identity_of(**row)
    assert (refused.value.fault, refused.value.code) == (fault, code)


def test_an_identifier_may_have_255_characters():
    assert clean_identifier(" " + "x" * 255 + " ") == "x" * 255


def test_an_identity_without_a_value_cannot_be_made():
    with pytest.raises(ValueError, match="value"):
        Identity(type=IdentityType.SKU, value="")


def cleaned_or_code(text):
    try:
        return clean_identifier(text)
    except Rejected as refused:
        return refused.code


@given(st.text())
def test_cleaning_an_identifier_again_changes_nothing(text):
    once = cleaned_or_code(text)
    assert once in (RejectCode.FIELD_TOO_LONG, RejectCode.BAD_ENCODING) or clean_identifier(once) == once


@pytest.mark.timeout(60)
@pytest.mark.parametrize("hostile", ["x", " ", "\x00"])
def test_a_megabyte_is_no_identifier(hostile):
    with pytest.raises(Rejected):
        clean_identifier("a" + hostile * 1_000_000 + "a")
