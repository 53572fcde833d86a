"""A file is read in its encoding, and a byte that is not text loses its row and no other."""

import codecs

import pytest
from tests.support.feeds import cents, counts, feed, lines, parse, row

from harvester.feeds.reader.encoding import Utf8Reader
from harvester.feeds.reader.errors import EncodingUnreadable, TruncatedFile

TEXT = feed(*(row(number, Name=f"Caf\u00e9 {number}") for number in range(101, 140)))


def read(data, size, encoding=None):
    reader = Utf8Reader([data[start : start + size] for start in range(0, len(data), size)], encoding)
    return b"".join(reader), reader.encoding


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 100_000])
@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8"),
        (TEXT.encode("cp1252"), "cp1252"),
        (TEXT.encode("latin-1"), "cp1252"),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), "utf-16-le"),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "utf-16-be"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
    ],
    ids=["utf-8", "utf-8 with mark", "windows", "latin-1", "utf-16", "utf-16 big", "unmarked utf-16", "unmarked big"],
)
def test_every_encoding_is_read_as_utf8_however_it_is_cut(data, encoding, size):
    assert read(data, size) == (TEXT.encode(), encoding)


def test_plain_ascii_is_utf8():
    assert read(b"plain", 2) == (b"plain", "utf-8")


def test_characters_beyond_the_basic_plane_survive_utf16():
    assert read(("\ufeff" + TEXT + "\U0001f600").encode("utf-16-le"), 3)[0] == (TEXT + "\U0001f600").encode()


def test_the_first_letter_beyond_ascii_decides_the_encoding():
    late = feed(*(row(number) for number in range(101, 2000)), row(2000, Name="Caf\u00e9"))
    for encoding in ("utf-8", "cp1252"):
        frame, report = parse(late.encode(encoding), chunk=500)
        assert report.encoding == encoding
        assert frame["title"][-1] == "Caf\u00e9"


def test_one_bad_byte_among_good_utf8_loses_its_row():
    bad = TEXT.encode().replace("Caf\u00e9 105".encode(), b"Caf\xe9 105")
    frame, report = parse(bad)
    assert report.encoding == "utf-8"
    assert counts(report) == {"BAD_ENCODING": 1}
    assert lines(report) == {"BAD_ENCODING": [6]}
    assert cents(frame) == {f"S-{number}": number for number in range(101, 140) if number != 105}


@pytest.mark.parametrize("chunk", [None, 1500, 701])
def test_replacement_characters_that_the_partner_wrote_are_not_evidence_of_another_encoding(chunk):
    titles = ["Federal\u00ae Gold", *("Federal\ufffd Medal" for _ in range(60)), "Th\u00e9"]
    data = feed(*(row(number, Name=title) for number, title in enumerate(titles, start=101))).encode()
    frame, report = parse(data, chunk=chunk)
    assert (report.encoding, counts(report)) == ("utf-8", {})
    assert frame["title"].to_list() == titles


def test_replacement_characters_alone_are_utf8_and_windows_letters_among_them_still_count():
    only = feed(*(row(number, Name="Caf\ufffd") for number in range(101, 105))).encode()
    assert parse(only)[1].encoding == "utf-8"
    windows = feed(*(row(number, Name="Caf\u00e9") for number in range(101, 140))).encode("cp1252")
    mixed = windows.replace(b"Caf\xe9", "Caf\ufffd".encode(), 1)
    assert parse(mixed)[1].encoding == "cp1252"


def test_a_byte_that_windows_1252_does_not_have_loses_its_row():
    bad = TEXT.encode("cp1252").replace(b"Caf\xe9 105", b"Caf\x81 105")
    frame, report = parse(bad)
    assert (report.encoding, lines(report), frame.height) == ("cp1252", {"BAD_ENCODING": [6]}, 38)


def test_half_a_surrogate_pair_loses_its_row():
    bad = TEXT.replace("Caf\u00e9 105", "Caf\ud800 105").encode("utf-16-le", "surrogatepass")
    frame, report = parse(codecs.BOM_UTF16_LE + bad)
    assert (report.encoding, lines(report), frame.height) == ("utf-16-le", {"BAD_ENCODING": [6]}, 38)


def test_a_file_of_two_encodings_is_refused_and_not_garbled():
    first = feed(row(101, Name="Caf\u00e9")).encode("cp1252")
    second = "".join("\t".join(row(number, Name="Th\u00e9")) + "\n" for number in range(102, 140)).encode()
    with pytest.raises(EncodingUnreadable, match="UTF-8"):
        parse(b"".join([first, b"\n" * 2000, second]), chunk=1500)


def test_a_person_can_set_the_encoding():
    garbled = parse(TEXT, encoding="cp1252")[0]
    assert garbled["title"][0] == "Caf\u00c3\u00a9 101"


def test_utf32_is_refused():
    with pytest.raises(EncodingUnreadable, match="UTF-32"):
        parse(codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"))


def test_utf16_that_ends_inside_a_character_is_incomplete():
    with pytest.raises(TruncatedFile):
        parse(codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le")[:-1])
