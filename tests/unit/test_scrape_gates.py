"""The gates on pages: tables of facts and what follows from them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.kernel.money import Price
from harvester.runs.gates import judge
from harvester.scraping.gates import (
    BATCH,
    BULK_MOVE,
    DRIFT,
    GATES,
    SAME_VALUE,
    Attempt,
    Batch,
    Counters,
    UsualRates,
    advance,
    attempts_from_json,
    batch_of,
    deviation,
    price_move,
)


def good(number=0, **more) -> Attempt:
    values = {"product": f"p{number}", "price": f"{number}.99 USD", "title": f"title {number}", **more}
    return Attempt(target=f"t{number}", is_yield=True, **values)


def bad(number=0, **more) -> Attempt:
    return Attempt(target=f"t{number}", is_failure=True, **more)


def batch(*attempts) -> Batch:
    return Batch(attempts=attempts)


def mixed(failures, size) -> Batch:
    return batch(*(bad(number) if number < failures else good(number) for number in range(size)))


@pytest.mark.parametrize(
    ("failures", "size", "holds"),
    [(10, 20, False), (11, 20, True), (19, 19, False), (20, 20, True), (0, 20, False), (20, 40, False), (21, 40, True)],
)
def test_a_batch_drifts_with_more_than_half_failures_among_at_least_twenty(failures, size, holds):
    assert DRIFT.find(mixed(failures, size), None).holds is holds


@pytest.mark.parametrize("name", ["price", "title"])
@pytest.mark.parametrize(("products", "holds"), [(4, False), (5, True), (20, True)])
def test_five_products_with_one_value_are_suspicious(name, products, holds):
    same = [good(number, **{name: "the same"}) for number in range(products)]
    others = [good(number) for number in range(products, 20)]
    assert SAME_VALUE.find(batch(*same, *others), None).holds is holds


def test_pages_of_one_product_may_have_one_value():
    pages = [Attempt(target=f"t{n}", product="p", price="1.99 USD", title="one", is_yield=True) for n in range(20)]
    assert not SAME_VALUE.find(batch(*pages), None).holds


def test_values_that_were_believed_before_are_not_suspicious():
    confirmed = [good(number, price=None, title=None) for number in range(20)]
    assert not SAME_VALUE.find(batch(*confirmed), None).holds


def test_a_batch_is_not_refused_for_what_only_earlier_batches_have():
    earlier = [good(number, price="the same", has_moved=True, is_new=False) for number in range(5)]
    new = [good(number) for number in range(10, 13)]
    assert judge(GATES, batch(*earlier, *new), None).passed
    one_more = good(13, price="the same", has_moved=True)
    found = judge(GATES, batch(*earlier, *new, one_more), None)
    assert [finding.gate for finding in found.holding] == ["SAME_VALUE", "BULK_MOVE"]


@pytest.mark.parametrize(
    ("moved", "size", "holds"),
    [(4, 4, False), (5, 5, True), (4, 20, False), (5, 24, True), (5, 25, False), (6, 29, True)],
)
def test_many_prices_that_moved_far_are_suspicious(moved, size, holds):
    attempts = [good(number, has_moved=number < moved) for number in range(size)]
    assert BULK_MOVE.find(batch(*attempts), None).holds is holds


def test_a_page_that_moved_and_was_looked_at_twice_counts_once():
    again = [good(number % 4, has_moved=True) for number in range(20)]
    assert not BULK_MOVE.find(batch(*again), None).holds


def price(text: str) -> Price:
    amount, _, currency = text.partition(" ")
    return Price(amount=Decimal(amount), currency=currency or "USD")


@pytest.mark.parametrize(
    ("now", "before", "waits"),
    [
        ("15.00", "10.00", False),
        ("15.01", "10.00", True),
        ("5.00", "10.00", False),
        ("4.99", "10.00", True),
        ("10.00", "10.00", False),
        ("100.00", "10.00", True),
        ("0.10", "10.00", True),
        ("10.00 EUR", "10.00", True),
        ("99999.99", "0.01", True),
    ],
)
def test_a_price_that_moved_by_more_than_half_waits(now, before, waits):
    assert (price_move(price(now), price(before)) is not None) is waits


def test_a_first_price_has_not_moved():
    assert price_move(price("10.00"), None) is None


@pytest.mark.parametrize(
    ("now", "is_point"), [("100.00", True), ("1000.00", True), ("1.00", True), ("0.10", True), ("30.00", False)]
)
def test_a_misplaced_decimal_point_is_named(now, is_point):
    assert ("decimal point" in price_move(price(now), price("10.00"))) is is_point


NEW = [good(number) for number in range(40)]


@pytest.mark.parametrize(("new", "earlier", "size"), [(20, 19, 20), (5, 19, 20), (5, 3, 8), (25, 19, 25), (1, 0, 1)])
def test_a_rest_is_judged_with_the_newest_earlier_attempts(new, earlier, size):
    before = attempts_from_json([each.as_json() for each in NEW[:earlier]])
    made = batch_of(NEW[:new], before)
    assert (made.size, made.new) == (size, new)
    helping = [each.target for each in made.attempts if not each.is_new]
    assert helping == [each.target for each in NEW[:earlier]][earlier - (size - new) :]


@pytest.mark.parametrize(
    "attempt", [good(1), good(2, price=None, has_moved=True), bad(3), bad(4, is_zero=True), Attempt(target="t")]
)
def test_attempts_are_the_same_after_they_were_stored(attempt):
    [again] = attempts_from_json([attempt.as_json()])
    assert again.as_json() == attempt.as_json()
    assert not again.is_new


@pytest.mark.parametrize(
    ("before", "attempts", "after"),
    [
        (Counters(), mixed(0, 20), Counters()),
        (Counters(), mixed(11, 20), Counters(failed=1)),
        (Counters(failed=1), mixed(11, 20), Counters(failed=2)),
        (Counters(failed=1), mixed(10, 20), Counters()),
        (Counters(), mixed(20, 20), Counters(failed=1, empty=1)),
        (Counters(zero_prices=1), batch(bad(is_zero=True), *NEW[:19]), Counters(zero_prices=2)),
        (Counters(zero_prices=1), batch(*NEW[:20]), Counters()),
        (Counters(failed=1), batch(*NEW[:19]), Counters(failed=1, uncounted=19)),
        (Counters(failed=1, uncounted=19), batch(*NEW[:1]), Counters()),
        (Counters(uncounted=5), mixed(14, 14), Counters(uncounted=19)),
    ],
)
def test_the_counters_advance_after_twenty_attempts_that_were_not_counted(before, attempts, after):
    assert advance(before, attempts) == after


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        (Counters(failed=1, empty=1, zero_prices=1), None),
        (Counters(failed=2), "could not be read in 2 batches"),
        (Counters(empty=2), "no offer in 2 batches"),
        (Counters(zero_prices=2), "price of zero in 2 batches"),
    ],
)
def test_two_bad_batches_in_a_row_switch_an_adapter_off(counters, words):
    assert counters.reason is None if words is None else words in counters.reason


USUAL = UsualRates(failure_rate=0.05, yield_rate=0.9, batches=3)


@pytest.mark.parametrize(
    ("failures", "unread", "usual", "words"),
    [
        (3, 0, USUAL, None),
        (4, 0, USUAL, "could not be read"),
        (2, 0, UsualRates(failure_rate=0.0, yield_rate=0.9, batches=3), None),
        (3, 0, UsualRates(failure_rate=0.0, yield_rate=0.9, batches=3), "could not be read"),
        (3, 4, UsualRates(failure_rate=0.1, yield_rate=0.9, batches=3), "gave an offer"),
        (3, 3, UsualRates(failure_rate=0.1, yield_rate=0.9, batches=3), None),
        (20, 0, UsualRates(failure_rate=0.05, yield_rate=0.9, batches=2), None),
        (20, 0, UsualRates(), None),
    ],
)
def test_a_batch_is_unusual_far_from_the_medians_of_at_least_three(failures, unread, usual, words):
    attempts = [bad(n) for n in range(failures)] + [Attempt(target=f"u{n}") for n in range(unread)]
    attempts += NEW[: 20 - len(attempts)]
    found = deviation(batch(*attempts), usual)
    assert found is None if words is None else words in found


def test_a_small_batch_is_never_unusual():
    assert deviation(mixed(19, 19), USUAL) is None


def slow_model(sizes: list[list[bool]]) -> tuple[int, int, list[list[int]]]:
    """Failed batches in a row, attempts not counted, and of each judged batch its attempts, one after the other."""
    seen: list[bool] = []
    last_counted = failed = 0
    judged = []
    for new in sizes:
        seen += new
        first = min(len(seen) - len(new), max(0, len(seen) - BATCH))
        of_batch = list(range(first, len(seen)))
        judged.append(of_batch)
        if len(seen) - last_counted >= BATCH:
            last_counted = len(seen)
            failures = sum(seen[place] for place in of_batch)
            failed = failed + 1 if 2 * failures > len(of_batch) else 0
    return failed, len(seen) - last_counted, judged


@pytest.mark.generated
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=20), max_size=25))
def test_batches_and_counters_agree_with_a_slow_model(rests):
    counters, stored, number, judged = Counters(), [], 0, []
    for rest in rests:
        new = [bad(number + n) if fails else good(number + n) for n, fails in enumerate(rest)]
        number += len(new)
        made = batch_of(new, attempts_from_json(stored))
        judged.append([int(each.target[1:]) for each in made.attempts])
        counters = advance(counters, made)
        stored = [each.as_json() for each in made.attempts[-(BATCH - 1) :]]
    failed, uncounted, batches = slow_model(rests)
    assert (counters.failed, counters.uncounted, judged) == (failed, uncounted, batches)
