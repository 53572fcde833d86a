"""A last record that no line feed ends may be cut in the middle of a value, so its values are not trusted."""

import pytest
from tests.support.feeds import feed, parse, quoted_feed, row

from harvester.feeds.reader.blocks import OpenEnd
from harvester.feeds.reader.errors import TruncatedFile
from harvester.kernel.identity import NUMBERS, IdentityType

#: The last column is cut first: stock, price, or the identifier itself.
ORDERS = (
    ["SKU", "Name", "Url", "Price", "Currency", "Availability"],
    ["SKU", "Name", "Url", "Currency", "Availability", "Price"],
    ["Name", "Url", "Price", "Currency", "Availability", "SKU"],
)
ROWS = [
    row(100),
    row(1001, Price="1299.99"),
    row(1008, Price="1299.99", Availability="out of stock", Name="Caf\u00e9"),
    row(1009, Price="1299.99", Availability="out of stock"),
]


def ordered(write, order, **options):
    places = [ORDERS[0].index(name) for name in order]
    return write(*([cells[place] for place in places] for cells in ROWS), header=order, **options).encode()


@pytest.mark.parametrize("order", ORDERS, ids=["stock last", "price last", "identifier last"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("write", [feed, quoted_feed])
def test_a_file_cut_anywhere_in_its_last_two_records_gives_no_value_that_is_not_in_it(write, line_end, order):
    data = ordered(write, order, line_end=line_end)
    whole, _ = parse(data)
    wanted = ["sku", "title", "amount", "in_stock"]
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    outcomes = set()
    for cut in range(ends[-3] + 1, len(data)):
        try:
            frame, report = parse(data[:cut], open_end=OpenEnd.LEAVE_OUT)
        except TruncatedFile:
            outcomes.add("refused")
            continue
        ended = sum(end <= cut for end in ends) - 1
        assert frame.select(wanted).rows() == whole.head(ended).select(wanted).rows(), data[:cut]
        is_open = cut not in ends
        assert (report.is_open_ended, report.rows_read) == (is_open, ended + is_open)
        assert (report.rows_rejected, report.findings.counts.total()) == (0, 0)
        outcomes.add("left out" if is_open else "whole")
    assert outcomes == {"refused", "left out", "whole"}


@pytest.mark.parametrize("order", ORDERS, ids=["stock last", "price last", "identifier last"])
def test_a_suspicious_file_is_refused_wherever_it_is_cut(order):
    data = ordered(feed, order)
    second = data.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(second + 1, len(data)):
        with pytest.raises(TruncatedFile):
            parse(data[:cut], open_end=OpenEnd.REFUSE, suspicion="Earlier files ended with a line feed.")
    assert parse(data, open_end=OpenEnd.REFUSE)[0].height == len(ROWS)


def test_a_record_that_is_left_out_has_an_identity_even_if_its_price_is_cut_off():
    data = ordered(feed, ORDERS[1])
    _, report = parse(data[: data.rindex(b"1299.99")], open_end=OpenEnd.LEAVE_OUT)
    assert (report.left_out, report.left_out_identity) == (5, (NUMBERS[IdentityType.SKU], "S-1009"))
    assert report.rows_rejected == 0


def test_a_file_that_is_known_to_be_whole_may_end_without_a_line_feed():
    frame, report = parse(ordered(feed, ORDERS[0])[:-1])
    assert (frame.height, report.is_open_ended, report.left_out) == (len(ROWS), True, None)


def test_a_quote_that_an_earlier_row_never_closes_does_not_let_a_cut_last_record_through():
    order = ORDERS[1]

    def line(number, name):
        return f"S-{number},{name},https://shop.example/p/{number},USD,in stock,1299.99\n"

    rows = [line(number, f'"Thing {number}, x"') for number in range(100, 107)]
    # Only the quotes of the last row show that the quote of S-107 is a mistake, so all three are looked at together.
    rows += [line(107, '"Thing 107'), line(108, "Thing 108"), line(109, '"Thing 109, x"')]
    data = (",".join(order) + "\n" + "".join(rows)).encode()
    whole, _ = parse(data)
    assert "S-109" in whole["sku"].to_list()
    left_out = 0
    for cut in range(data.rindex(b"S-109") + 1, len(data)):
        try:
            frame, report = parse(data[:cut], open_end=OpenEnd.LEAVE_OUT)
        except TruncatedFile:
            continue
        assert frame.select("sku", "amount").rows() == whole.head(8).select("sku", "amount").rows(), data[:cut]
        assert (report.rows_read, report.left_out, report.left_out_identity[1]) == (10, 11, "S-109")
        left_out += 1
    assert left_out >= len("1299.99")
