"""XML of strangers is read flat, within limits, and never expanded."""

import pytest

from harvester.kernel import xml_records
from harvester.kernel.xml_records import UnreadableXml, read_records


def records(document):
    return list(read_records(document, "item"))


def test_children_and_attributes_become_one_record():
    first = b"<item id='7'><name> A &amp; B </name><size>3</size></item>"
    document = b"<list a='1'>" + first + b"<item/><other><size>9</size></other></list>"
    assert records(document) == [{"id": "7", "name": "A & B", "size": "3"}, {}]


def test_of_two_children_of_a_name_the_first_counts():
    assert records(b"<item><a>1</a><a>2</a></item>") == [{"a": "1"}]


def test_an_item_inside_an_item_belongs_to_it():
    assert records(b"<l><item><a>1</a><item><b>2</b></item></item></l>") == [{"a": "1", "b": "2", "item": ""}]


def test_encodings_that_are_declared_are_read():
    assert records("<?xml version='1.0' encoding='iso-8859-1'?><item><a>\u00e9</a></item>".encode("latin-1")) == [
        {"a": "\u00e9"}
    ]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"<item>", "line 1"),
        (b"no xml", "line 1"),
        (b"<!DOCTYPE item><item/>", "declares"),
        (b'<!DOCTYPE i [<!ENTITY a "b">]><item><a>&a;</a></item>', "declares"),
        (b"<item><a>&undefined;</a></item>", "line 1"),
        (b"<a>" * 21 + b"</a>" * 21, "nests"),
    ],
)
def test_what_is_unsound_is_refused_with_a_reason(document, why):
    with pytest.raises(UnreadableXml, match=why):
        records(document)


@pytest.mark.parametrize("more", [b"", b"<!-- -->"], ids=["in one piece", "in pieces"])
def test_a_text_that_is_too_long_is_cut_and_the_other_records_are_read(more):
    long = b"9" * 9_999 + more + b"9" * 20_000
    found = records(b"<l><item><a>" + long + b"</a><b>2</b></item><item><a>" + b"x" * 10_000 + b"</a></item></l>")
    assert found == [{"a": "9" * 10_000 + "\u2026", "b": "2"}, {"a": "x" * 10_000}]


def test_a_document_has_limits(monkeypatch):
    monkeypatch.setattr(xml_records, "MOST_RECORDS", 3)
    assert len(records(b"<l>" + b"<item/>" * 3 + b"</l>")) == 3
    with pytest.raises(UnreadableXml, match="records"):
        records(b"<l>" + b"<item/>" * 4 + b"</l>")
    monkeypatch.setattr(xml_records, "LONGEST_DOCUMENT_BYTES", 10)
    with pytest.raises(UnreadableXml, match="bytes"):
        records(b"<l>" + b"<item/>" * 3 + b"</l>")
