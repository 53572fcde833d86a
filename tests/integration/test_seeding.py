"""A seeded database is one that real runs could have left."""

from dataclasses import replace

import pytest
from tests.bench.seeding.fill import fill
from tests.bench.seeding.plan import Plan
from tests.support.catalog import fetch
from tests.support.tables import empty_all

from harvester.catalog.models import Source
from harvester.catalog.offers import differences
from harvester.feeds.models import Feed
from harvester.guards.host_keys import HostKey
from harvester.kernel.errors import InvalidInput
from harvester.kernel.gtin import normalize_gtin
from harvester.kernel.money import Price
from harvester.kernel.signature import price_signature
from harvester.runs.models import Run

SMALL = Plan(feeds=50, runs=600, offers=3000, prices_per_offer=3, seed=4)
_CONTENT = (
    "SELECT s.name, p.id - first.id, p.title, p.sku, o.amount FROM source_products p "
    "JOIN sources s ON s.id = p.source_id JOIN offers o ON o.source_id = p.source_id AND o.product_id = p.id, "
    "(SELECT min(id) AS id FROM source_products) first ORDER BY 2"
)


@pytest.fixture(scope="module")
def seeded(cluster, django_db_blocker):
    with django_db_blocker.unblock():
        empty_all()
        progress = []
        made = fill(SMALL, lambda *step: progress.append(step))
        yield made, progress
        empty_all()


@pytest.fixture(autouse=True)
def _allowed(seeded, django_db_blocker):
    with django_db_blocker.unblock():
        yield


def test_there_is_as_much_as_was_asked_for(seeded):
    made, progress = seeded
    counted = [fetch(f"SELECT count(*) FROM {table}")[0][0] for table in ("feeds", "offers", "source_products")]
    assert counted == [50, 3000, 3000]
    assert Run.objects.exclude(status="RUNNING").count() == 600
    assert fetch("SELECT count(*) FROM prices") == [(9000,)]
    assert (made.feeds, made.runs, made.offers, made.prices) == (50, 600, 3000, 9000)
    assert progress[-1][:2] == (3000, 3000)


def test_offers_equal_what_their_prices_say():
    assert differences() == []


def test_most_offers_are_visible_and_some_are_not():
    [(visible,)] = fetch("SELECT count(*) FROM visible_offers")
    assert 2400 < visible < 3000


def test_what_is_written_has_the_form_that_real_runs_write():
    rows = fetch(
        "SELECT p.gtin, l.signature, l.amount, l.original_amount, l.in_stock FROM prices l "
        "JOIN source_products p ON p.source_id = l.source_id AND p.id = l.source_product_id ORDER BY 1, 2 LIMIT 200"
    )
    for gtin, signature, amount, original, in_stock in rows:
        before = Price(amount=round(original, 2), currency="USD") if original else None
        assert normalize_gtin(gtin).valid
        assert signature.hex == price_signature(
            Price(amount=round(amount, 2), currency="USD"), in_stock=in_stock, original=before
        )
    assert all(HostKey.parse(key) for key in Feed.objects.values_list("seen_host_key", flat=True))


def test_every_story_is_present_and_agrees_with_its_runs():
    states = dict(fetch("SELECT status, count(*) FROM feeds GROUP BY status"))
    assert states == {"ENABLED": 47, "PAUSED": 1, "DISABLED": 1, "DRAFT": 1}
    held = Run.objects.get(outcome="HELD")
    assert Source.objects.get(held_run_no=held.no).pk == held.source_id
    [(changes, missing)] = fetch("SELECT count(*), count(*) FILTER (WHERE is_missing) FROM held_changes")
    assert held.feed_run.would_expire_count == missing
    assert changes > missing
    disabled = Run.objects.filter(subject_id__in=Feed.objects.filter(status="DISABLED").values("pk")).order_by("-no")[
        :4
    ]
    assert [run.status for run in disabled] == ["FAILED", "FAILED", "FAILED", "SUCCEEDED"]


def test_a_held_run_shows_its_difference_and_some_products_wait_for_a_person():
    [(missing,)] = fetch("SELECT count(*) FROM held_changes WHERE is_missing")
    [(progress,)] = fetch("SELECT (summary -> 'counts' ->> 'missing')::int FROM run_differences")
    assert progress == missing
    states = dict(fetch("SELECT status, count(*) FROM product_links GROUP BY status"))
    assert states == {"LINKED": 60, "NEEDS_REVIEW": 30}


def test_runs_count_the_prices_that_they_wrote():
    wrong = fetch(
        "SELECT r.no FROM runs r JOIN feed_runs f ON f.run_id = r.id "
        "WHERE coalesce(f.prices_written, 0) <> (SELECT count(*) FROM prices p WHERE p.run_no = r.no)"
    )
    assert wrong == []


def test_no_run_is_running_without_an_open_job():
    assert fetch(
        "SELECT count(*) FROM runs r LEFT JOIN jobs j ON j.id = r.job_id AND j.state = 'pending' "
        "WHERE r.status = 'RUNNING' AND j.id IS NULL"
    ) == [(0,)]


@pytest.mark.parametrize(
    "wrong", [{"feeds": 0}, {"runs": 4_999}, {"offers": 10}, {"prices_per_offer": 0}, {"seed": -1}]
)
def test_a_plan_that_makes_no_sense_names_its_field(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Plan(**wrong)


def test_the_same_seed_makes_the_same_products_and_another_makes_others():
    first = fetch(_CONTENT)
    empty_all()
    fill(SMALL)
    assert fetch(_CONTENT) == first
    empty_all()
    fill(replace(SMALL, seed=5))
    assert fetch(_CONTENT) != first
