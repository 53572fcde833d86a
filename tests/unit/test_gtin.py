"""Leading zeros stay, a wrong check digit is seen, and only numbers of the whole world are compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.kernel.gtin import GtinResult, normalize_gtin, normalize_isbn, with_check_digit

#: text, value, form for comparison
VALID = [
    ("020892215511", "020892215511", "00020892215511"),
    ("0020892215511", "0020892215511", "00020892215511"),
    ("00020892215511", "00020892215511", "00020892215511"),
    (" 0-20892-21551-1 ", "020892215511", "00020892215511"),
    ("0\u00a020892\u201321551\u00a01", "020892215511", "00020892215511"),
    ("'020892215511", "020892215511", "00020892215511"),
    ("\ufeff020892215511", "020892215511", "00020892215511"),
    ("4006381333931", "4006381333931", "04006381333931"),
    ("96385074", "96385074", "00000096385074"),
    ("10614141000415", "10614141000415", "10614141000415"),
    ("978-0-306-40615-7", "9780306406157", "09780306406157"),
]


@pytest.mark.parametrize(("text", "value", "key"), VALID)
def test_a_valid_number_keeps_its_leading_zeros(text, value, key):
    found = normalize_gtin(text)
    assert found == GtinResult(value=value, valid=True)
    assert found.key == key


INVALID = [
    ("020892215513", "020892215513"),  # wrong check digit; one digit off the first row above
    ("20892215511", "20892215511"),  # a spreadsheet took the zero
    ("8.85E+11", "8.85E+11"),
    ("8,85E+11", "8,85E+11"),
    ("020892215511.0", "020892215511.0"),
    ("000000000000", "000000000000"),
    ("00000000", "00000000"),
    ("N/A", "N/A"),
    ("UPCX 020892215511", "UPCX020892215511"),
    ("020892215511, 4006381333931", "020892215511,4006381333931"),
    ("\u0660\u0662\u0660\u0668\u0669\u0662\u0662\u0661\u0665\u0665\u0661\u0661",) * 2,
    ("0306406152", "0306406152"),  # an ISBN, but not in its column
    ("123456789012345", "123456789012345"),
]


@pytest.mark.parametrize(("text", "value"), INVALID)
def test_an_invalid_number_is_kept_but_never_compared(text, value):
    found = normalize_gtin(text)
    assert found == GtinResult(value=value, valid=False)
    assert found.key is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("020892215511", "020892215511"),
        ("0-20892-21551-3", "020892215513"),  # wrong check digit
        ("4006381333930", "4006381333930"),
        ("20892215511", None),  # no length of a number
        ("000000000000", None),
        ("8.85E+11", None),
        ("UPC 020892215513", "020892215513"),
        ("UPCX 020892215511", None),
        ("UPC 020892215511 or 4006381333931", None),
        ("EAN134006381333931", None),  # where the label ends cannot be seen
    ],
)
def test_digits_of_a_known_length_stay_with_the_product(text, kept):
    assert normalize_gtin(text).kept == kept


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("UPC 020892215511", "020892215511"),
        ("UPC: 020892215511", "020892215511"),
        ("upc#0-20892-21551-1", "020892215511"),
        ("UPC-A 020892215511", "020892215511"),
        ("UPC020892215511", "020892215511"),
        ("EAN-13: 4006381333931", "4006381333931"),
        ("EAN13 4006381333931", "4006381333931"),
        ("GTIN 4006381333931", "4006381333931"),
        (" GTIN-14: 04006381333931", "04006381333931"),
    ],
)
def test_a_label_before_a_number_is_not_a_part_of_it(text, value):
    assert normalize_gtin(text) == GtinResult(value=value, valid=True)


def test_a_label_before_an_isbn_is_not_a_part_of_it():
    assert normalize_isbn("ISBN-10: 0-306-40615-2") == normalize_isbn("0306406152")
    assert normalize_isbn("ISBN 978-0-306-40615-7").valid


@pytest.mark.parametrize("text", [None, "", "  ", "-", "\u00a0\u2013", "'"])
def test_nothing_is_not_a_bad_number(text):
    assert normalize_gtin(text) is None
    assert normalize_isbn(text) is None


@pytest.mark.parametrize(
    "twelve",
    ["021234567890", "041234567890", "201234567890", "299999999999", "051234567890", "980123456789", "991234567890"],
)
def test_a_number_of_a_shops_own_is_valid_but_not_compared(twelve):
    found = normalize_gtin(with_check_digit(twelve))
    assert (found.valid, found.key) == (True, None)


@pytest.mark.parametrize(("seven", "compared"), [("0123456", False), ("2123456", False), ("9638507", True)])
def test_a_short_number_of_a_shops_own_is_not_compared(seven, compared):
    found = normalize_gtin(with_check_digit(seven))
    assert (found.valid, found.key is not None) == (True, compared)


@pytest.mark.parametrize(
    ("text", "value", "valid"),
    [
        ("0-306-40615-2", "9780306406157", True),
        ("080442957X", "9780804429573", True),
        ("080442957x", "9780804429573", True),
        ("0306406153", "0306406153", False),
        ("X306406152", "X306406152", False),
        ("978-0-306-40615-7", "9780306406157", True),
        ("020892215511", "020892215511", True),
    ],
)
def test_an_isbn_of_ten_becomes_one_of_thirteen(text, value, valid):
    assert normalize_isbn(text) == GtinResult(value=value, valid=valid)


DIGITS = st.sampled_from([7, 11, 12, 13]).flatmap(
    lambda length: st.text("0123456789", min_size=length, max_size=length)
)


@given(DIGITS.filter(lambda digits: digits.strip("0")))
def test_a_number_with_its_check_digit_is_valid_and_none_with_another_digit_is(digits):
    right = with_check_digit(digits)
    assert normalize_gtin(right).valid
    others = [digits + last for last in "0123456789" if digits + last != right]
    assert not any(normalize_gtin(other).valid for other in others)


@given(DIGITS.filter(lambda digits: digits.strip("0")), st.integers(0, 2))
def test_zeros_in_front_change_the_value_but_not_what_is_compared(digits, zeros):
    given_number = with_check_digit(digits)
    padded = normalize_gtin(given_number.zfill(14))
    assert padded.key == normalize_gtin(given_number).key
    assert padded.value == given_number.zfill(14)


@given(st.one_of(st.text(), st.text("0123456789Xx -'E+.", max_size=20)))
def test_reading_a_number_again_changes_nothing(text):
    for normalize in (normalize_gtin, normalize_isbn):
        found = normalize(text)
        assert found is None or normalize(found.value) == found


@pytest.mark.timeout(60)
@pytest.mark.parametrize("hostile", ["9", "-", " ", "'", "9-", "X"])
def test_a_megabyte_is_no_number(hostile):
    found = normalize_gtin(hostile * 1_000_000)
    assert found is None or (not found.valid and len(found.value) <= 64)
    assert normalize_isbn(hostile * 1_000_000) == found
