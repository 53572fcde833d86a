"""What a manifest says about a file: paths are normalized, numbers are bounded, and nothing is skipped silently."""

import pytest

from harvester.feeds.manifest import expected_of
from harvester.feeds.networks import network_named

PATH = "/Shop/a.csv"


def read(*entries):
    """What a manifest with these entries says about the file: location, number of records, size."""
    texts = "".join(
        f"<catalog><location>{location}</location><numRecords>{records}</numRecords><size>{size}</size></catalog>"
        for location, records, size in entries
    )
    return expected_of(network_named("impact").read_manifest(f"<catalogs>{texts}</catalogs>".encode()), PATH)


@pytest.mark.parametrize(
    "location",
    ["/Shop/a.csv", "Shop/a.csv", "//Shop/a.csv", "/x/../Shop/a.csv", "/Shop/./a.csv", "/shop/A.CSV", " /Shop/a.csv "],
)
def test_an_entry_is_found_however_its_path_is_written(location):
    said = read(("/Other/a.csv", 9, 9), (location, 4, 100))
    assert (said.rows, said.size, said.problem) == (4, 100, "")


def test_the_path_of_the_feed_may_be_written_otherwise_too():
    document = b"<catalogs><catalog><location>/Shop/a.csv</location><numRecords>4</numRecords></catalog></catalogs>"
    entries = network_named("impact").read_manifest(document)
    assert [expected_of(entries, path).rows for path in ("Shop/a.csv", "//Shop/a.csv", "/x/../Shop/./a.csv")] == [4] * 3


def test_the_same_letter_case_is_preferred():
    assert read(("/SHOP/a.csv", 9, 9), ("/Shop/a.csv", 4, 100)).rows == 4


@pytest.mark.parametrize(
    "number", ["9" * 20, "9" * 5000, "9" * 50_000, "4" + " " * 20_000, "-1", "4.0", "4,000", "many"]
)
def test_an_invalid_number_is_reported_and_the_other_one_counts(number):
    said = read((PATH, number, 100))
    assert (said.rows, said.size) == (None, 100)
    assert f"numRecords {number[:40]!r}" in said.problem
    assert [notice.code for notice in said.notices()] == ["MANIFEST_UNUSABLE"]


def test_entries_that_contradict_each_other_are_reported():
    said = read((PATH, 4, 100), ("//Shop/a.csv", 5, 100))
    assert (said.rows, said.size) == (None, 100)
    assert "different numbers of records" in said.problem


def test_equal_entries_and_missing_values_are_not_reported():
    assert read((PATH, 4, ""), (PATH, 4, "")).problem == ""
    assert read(("/Other/a.csv", "many", "")).problem == ""


def test_a_long_text_in_one_entry_does_not_make_the_others_unreadable():
    said = read(("/Other/a.csv", "9" * 50_000, "x" * 50_000), ("/" * 50_000, 9, 9), (PATH, 4, 100))
    assert (said.rows, said.size, said.problem) == (4, 100, "")
