"""A signature changes with everything that a customer would notice, and with nothing else."""

import hashlib
from dataclasses import fields, replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.kernel.money import Price, parse_price
from harvester.kernel.signature import CONTENT_VERSION, Content, content_hash, price_signature, price_text, xxh64

PRICE = parse_price("15.99 USD")
ORIGINAL = parse_price("18.99 USD")


def test_the_form_of_a_signed_price_is_a_contract():
    text = price_text(PRICE, in_stock=True, original=ORIGINAL, promotion=" Free | shipping ")
    assert text == "15.99|USD|18.99|in|Free | shipping"
    assert price_text(PRICE, in_stock=False) == "15.99|USD||out|"
    assert price_text(parse_price("1226 JPY"), in_stock=True) == "1226|JPY||in|"
    assert price_text(parse_price("0.5 KWD"), in_stock=True) == "0.500|KWD||in|"


def test_a_signature_is_the_first_half_of_sha256():
    expected = hashlib.sha256(b"15.99|USD||in|").hexdigest()[:32]
    assert price_signature(PRICE, in_stock=True) == expected == "27d9cedb8ed9d8ffead3ea9c957bd4ba"


def test_everything_about_a_price_changes_its_signature():
    signatures = {
        price_signature(PRICE, in_stock=True),
        price_signature(parse_price("15.98 USD"), in_stock=True),
        price_signature(parse_price("15.99 CAD"), in_stock=True),
        price_signature(PRICE, in_stock=False),
        price_signature(PRICE, in_stock=True, original=ORIGINAL),
        price_signature(PRICE, in_stock=True, promotion="Free shipping"),
    }
    assert len(signatures) == 6


@pytest.mark.parametrize("text", ["15.99 USD", "$15.99 USD", "USD 15,99", "15.9900 USD"])
def test_how_a_price_was_written_does_not_change_its_signature(text):
    assert price_signature(parse_price(text), in_stock=True) == price_signature(PRICE, in_stock=True)


@pytest.mark.parametrize("promotion", [None, "", "  "])
def test_no_promotion_is_no_promotion(promotion):
    assert price_signature(PRICE, in_stock=True, promotion=promotion) == price_signature(PRICE, in_stock=True)


def test_an_original_price_in_another_currency_is_refused():
    with pytest.raises(ValueError, match="currency"):
        price_signature(PRICE, in_stock=True, original=parse_price("18.99 EUR"))


CENTS = st.integers(1, 10**6).map(lambda cents: Price(amount=Decimal(f"{cents}E-2"), currency="USD"))
PRICED = st.tuples(CENTS, st.booleans(), st.none() | CENTS, st.text(st.sampled_from("|in0.out USD"), max_size=8))


@given(PRICED, PRICED)
def test_two_different_prices_never_sign_the_same_text(one, other):
    def text(priced):
        price, in_stock, original, promotion = priced
        return price_text(price, in_stock=in_stock, original=original, promotion=promotion)

    same = one[:3] == other[:3] and one[3].strip() == other[3].strip()
    assert (text(one) == text(other)) == same


CONTENT = Content(title="Federal 9mm", url="https://shop.example/p/1")


def test_the_form_of_hashed_content_is_a_contract():
    assert CONTENT_VERSION == 1
    texts = ["Federal 9mm", "https://shop.example/p/1", *[""] * 11]
    total = sum(xxh64(text.encode(), 256 + place) for place, text in enumerate(texts)) % 2**64
    assert content_hash(CONTENT) % 2**64 == total
    assert content_hash(CONTENT) == -7452001491796017479


def test_the_fields_of_content_are_a_contract():
    assert [field.name for field in fields(Content)] == [
        "title", "url", "image", "brand", "category", "description", "item_id", "product_id", "sku", "gtin", "mpn",
        "url_hash", "tracked_url",
    ]  # fmt: skip


@pytest.mark.parametrize("name", [field.name for field in fields(Content)])
def test_every_field_changes_the_hash(name):
    assert content_hash(replace(CONTENT, **{name: "other"})) != content_hash(CONTENT)


def test_nothing_and_the_empty_text_are_the_same():
    assert content_hash(replace(CONTENT, brand="")) == content_hash(CONTENT)


@given(st.text(st.characters()), st.text(st.characters()))
def test_texts_that_change_places_change_the_hash(one, other):
    swapped = content_hash(Content(title=one, url=other)) == content_hash(Content(title=other, url=one))
    assert swapped == (one == other)


@given(st.text(st.characters()))
def test_any_text_can_be_hashed(text):
    assert -(2**63) <= content_hash(Content(title=text, url=text)) < 2**63
    assert len(price_signature(PRICE, in_stock=True, promotion=text)) == 32


def test_half_a_surrogate_pair_can_be_hashed():
    assert content_hash(Content(title="\ud800", url="")) != content_hash(Content(title="\ud801", url=""))
