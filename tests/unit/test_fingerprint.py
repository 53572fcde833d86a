"""Fingerprints are equal for the same product however it is spelled, and for nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.catalog.resolver import fingerprint

SAME = [
    ("Acme", "Acme Olive Oil Extra Virgin 500 ml", "Olive Oil extra virgin 0.5 L"),
    ("Acme", "Cola Zero 6 x 330ml", "cola zero 6\u00d733 cl"),
    ("Acme", "Cola Zero 330 ml, pack of 6", "Cola  Zero 6 x 330ml"),
    ("ACME", "Target Ammo Steel 50 rounds", "Acme target ammo steel, 50 ct"),
    ("Acme", "Dog Food Beef 1,5 kg", "Dog food (beef) 1500g"),
    ("Acme", "Rice White Long 2 lb", "Rice White Long - 32oz"),
]
DIFFERENT = [
    ("Olive Oil Virgin 500 ml", "Olive Oil Virgin 750 ml"),
    ("Cola Zero 6 x 330 ml", "Cola Zero 330 ml"),
    ("Cola Zero 330 ml", "Cola Light 330 ml"),
    ("Shirt Red Blue 2 pack", "Shirt Blue Red 2 pack"),
]
INCOMPLETE = [
    (None, "Olive Oil Virgin 500 ml"),
    ("", "Olive Oil Virgin 500 ml"),
    ("Acme", "Olive Oil Virgin"),
    ("Acme", "Acme 500 ml"),
    ("Acme", "Oil 500 ml"),
    ("Acme", None),
    ("Acme", "Nails Steel Long 1,000 ct"),
    ("Acme", "Olive Oil model x500ml"),
]


@pytest.mark.parametrize(("brand", "one", "other"), SAME)
def test_the_same_product_has_one_fingerprint(brand, one, other):
    assert fingerprint(brand, one) is not None
    assert fingerprint(brand, one) == fingerprint(brand.lower(), other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_product_has_another(one, other):
    marks = {fingerprint("Acme", one), fingerprint("Acme", other), fingerprint("Other", one)}
    assert len(marks) == 3
    assert None not in marks


@pytest.mark.parametrize(("brand", "title"), INCOMPLETE)
def test_what_is_incomplete_has_none(brand, title):
    assert fingerprint(brand, title) is None


@given(brand=st.text(max_size=20), title=st.text(max_size=80))
def test_it_never_fails_and_does_not_care_for_case_and_blanks(brand, title):
    mark = fingerprint(brand, title)
    assert mark is None or len(mark) == 64
    assert fingerprint(f" {brand} ", f"  {title}  ") == mark
