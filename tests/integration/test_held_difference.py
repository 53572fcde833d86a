"""The changes of a held run, as counts, groups and sample products."""

import pytest
from tests.support.feeds import HEADER, row
from tests.support.feeds import feed as written
from tests.support.tables import rows

from harvester.feeds.run_details import difference_of
from harvester.pipeline import held_difference

pytestmark = pytest.mark.usefixtures("database")
COLUMNS = [*HEADER, "Manufacturer", "Category"]


def product(number, brand="Acme", category="Boots", **changed):
    return [*row(number, **changed), brand, category]


def put(world, *products):
    world.put_bytes(written(*products, header=COLUMNS).encode())


def held(world, *products):
    put(world, *products)
    run = world.run()
    assert run.outcome == "HELD"
    return run


@pytest.fixture
def run(world):
    """Forty products; then 28 of them are gone and the rest has changed in every way."""
    put(world, *(product(number, "Acme" if number % 2 else "Zeta") for number in range(100, 140)))
    world.run()
    return held(
        world,
        product(100, "Zeta", Price="2.00"),
        product(101, Price="0.10"),
        product(102, "Zeta", Price="1.03"),
        product(103, Currency="EUR", Price="1.03"),
        product(104, "Zeta", Name="Renamed"),
        product(105, Availability="out of stock"),
        *(product(number, "Acme" if number % 2 else "Zeta") for number in range(106, 112)),
        product(500, "Nova", "Tents"),
    )


def test_the_whole_difference_is_counted(world, run):
    counts = difference_of(run)["counts"]
    assert {name: counts[name] for name in held_difference.KINDS} == {
        "missing": 28, "prices": 4, "new": 1, "content": 1, "back": 0,
    }  # fmt: skip
    figures = world.figures(run)
    assert (counts["missing"], counts["new"]) == (figures.products_missing, figures.products_new)
    assert (counts["more_expensive"], counts["cheaper"], counts["other_currency"]) == (2, 1, 1)
    assert (counts["out_of_stock"], counts["into_stock"]) == (1, 0)


def test_the_largest_moves_come_first_whatever_their_direction(world, run):
    moves = difference_of(run)["samples"]["prices"]
    assert [(move["sku"], move["price_before"], move["price"]) for move in moves] == [
        ("S-103", "1.03 USD", "1.03 EUR"),
        ("S-101", "1.01 USD", "0.10 USD"),
        ("S-100", "1.00 USD", "2.00 USD"),
        ("S-102", "1.02 USD", "1.03 USD"),
    ]
    assert [move["factor"] and round(move["factor"], 2) for move in moves] == [None, 0.1, 2.0, 1.01]


def test_products_of_each_kind_are_shown_with_what_would_change(world, run):
    samples = difference_of(run)["samples"]
    assert [item["title"] for item in samples["new"]] == ["Thing 500"]
    assert [item["changed"] for item in samples["content"]] == [{"title": ["Thing 104", "Renamed"]}]
    assert len(samples["missing"]) == held_difference.SAMPLES
    assert {(item["category"], item["line"]) for item in samples["missing"]} == {("Boots", None)}


def test_groups_are_ordered_by_size(world, run):
    summary = difference_of(run)
    assert [(group["name"], group["missing"], group["new"]) for group in summary["categories"]["shown"]] == [
        ("Boots", 28, 0),
        ("Tents", 0, 1),
    ]
    assert {group["name"]: group["missing"] for group in summary["brands"]["shown"]} == {
        "Acme": 14,
        "Zeta": 14,
        "Nova": 0,
    }
    assert summary["brands"]["all"] == 3


def test_groups_and_products_are_bounded(world):
    put(world, *(product(number, f"Brand {number}", f"Category {number}") for number in range(100, 200)))
    world.run()
    summary = difference_of(held(world, product(100)))
    assert len(summary["brands"]["shown"]) == len(summary["categories"]["shown"]) == held_difference.GROUPS
    assert summary["brands"]["all"] == 100
    assert [len(summary["samples"][kind]) for kind in held_difference.KINDS] == [held_difference.SAMPLES, 0, 0, 1, 0]


def test_products_that_are_back_are_counted(world):
    put(world, *(product(number) for number in range(100, 140)))
    world.run()
    put(world, *(product(number) for number in range(100, 135)))
    world.run()
    summary = difference_of(held(world, product(101), product(139)))
    assert (summary["counts"]["back"], [item["sku"] for item in summary["samples"]["back"]]) == (1, ["S-139"])


def test_it_outlives_the_decision_and_goes_with_the_run(world, run):
    before = difference_of(run)
    world.reject(run)
    assert rows("SELECT count(*) FROM held_changes") == [(0,)]
    run.refresh_from_db()
    assert difference_of(run) == before
    rows("WITH gone AS (DELETE FROM runs WHERE no = %s RETURNING 1) SELECT 1 FROM gone", run.no)
    assert rows("SELECT count(*) FROM run_differences") == [(0,)]


def test_a_run_that_was_held_without_a_stored_summary_is_summarized_again(world, run):
    before = difference_of(run)
    rows("WITH gone AS (DELETE FROM run_differences RETURNING 1) SELECT 1 FROM gone")
    assert difference_of(run) == before


def test_a_run_that_was_never_held_has_none(world):
    world.put(100)
    assert difference_of(world.run()) is None
