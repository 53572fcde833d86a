"""What the catalog's tables themselves refuse, for every writer."""

import datetime as dt
import uuid

import psycopg
import pytest
from django.db import IntegrityError, connections, transaction
from tests.support import catalog
from tests.support.catalog import fetch
from tests.support.tables import rows

from harvester.catalog.models import Source
from harvester.engine.connections import connect
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")
KEY = "(source_id, source_product_id, observed_at, run_no, signature)"


@pytest.fixture
def feed():
    return catalog.source()


@pytest.fixture
def priced(feed):
    catalog.price(feed, 1, "10")
    catalog.price(feed, 1, "10", observed_at=dt.datetime(2001, 1, 1, tzinfo=dt.UTC))
    return feed


def partitions():
    return [
        name
        for (name,) in rows("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'prices'::regclass")
    ]


def test_prices_have_one_unique_index_and_their_partitions_only_its_children():
    unique = "SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    [(name, definition)] = rows(unique + "WHERE i.indrelid = 'prices'::regclass AND i.indisunique")
    assert name == "prices_once"
    assert definition.endswith(KEY)
    names = partitions()
    assert "prices_default" in names
    assert len(names) >= 4
    for partition in names:
        children = rows(
            "SELECT h.inhparent::regclass::text FROM pg_index i LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid "
            "WHERE i.indrelid = %s::regclass AND i.indisunique",
            partition,
        )
        assert children == [("prices_once",)], partition
    constraints = rows(
        "SELECT conname FROM pg_constraint WHERE contype IN ('u', 'p', 'x', 'f') AND conrelid = ANY (%s::regclass[])",
        ["prices", *names],
    )
    assert constraints == []


def test_the_same_price_cannot_be_written_twice(feed):
    once = {"observed_at": catalog.now(), "signature": uuid.uuid4(), "run_no": 3}
    catalog.price(feed, 1, "10", **once)
    with pytest.raises(IntegrityError, match=r"source_id_source_product_id_observed|prices_once"), transaction.atomic():
        catalog.price(feed, 1, "11", **once)


CHANGES = ("UPDATE {} SET amount = amount", "DELETE FROM {}", "TRUNCATE {}")


@pytest.mark.parametrize("change", CHANGES)
def test_the_application_can_only_append_prices(priced, change):
    with connect("test") as session:
        for name in ("prices", *partitions()):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(change.format(name))


@pytest.mark.parametrize("change", CHANGES)
def test_not_even_the_owner_can_change_prices(priced, change):
    parameters = connections["owner"].get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters, autocommit=True) as owner:
        for name in ("prices", *partitions()):
            [count] = owner.execute(f"SELECT count(*) FROM {name}").fetchone()
            if count or "TRUNCATE" in change:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    owner.execute(change.format(name))


def test_a_price_of_any_time_finds_a_partition(priced):
    assert fetch("SELECT count(*), count(DISTINCT tableoid) FROM prices") == [(2, 2)]


@pytest.mark.parametrize(("hours", "allowed"), [(0, False), (1, True), (168, True), (169, False), (None, True)])
def test_expiry_hours_are_from_1_to_168_or_nothing(feed, hours, allowed):
    change = Source.objects.filter(pk=feed.pk)
    if allowed:
        assert change.update(expiry_hours=hours) == 1
    else:
        with pytest.raises(IntegrityError, match="expiry_hours_range"), transaction.atomic():
            change.update(expiry_hours=hours)


def test_a_source_has_at_most_one_held_run(feed):
    catalog.run(feed, "HELD")
    catalog.run(feed, "REJECTED"), catalog.run(catalog.source(), "HELD")
    with pytest.raises(IntegrityError, match="runs_one_held_per_subject"), transaction.atomic():
        catalog.run(feed, "HELD")


def test_a_source_knows_since_when_its_run_is_held(feed):
    with pytest.raises(IntegrityError, match="held_run_and_time"), transaction.atomic():
        Source.objects.filter(pk=feed.pk).update(held_run_no=1)


@pytest.mark.parametrize(
    "change",
    [{"trigger": "MANUAL"}, {"kind": "SCRAPE"}, {"job_id": 8}, {"artifact_hash": "b"}, {"artifact_hash": None}],
)
def test_what_a_run_is_and_what_it_read_never_change(feed, change):
    run = catalog.run(feed, artifact_hash="a", job_id=7)
    with pytest.raises(IntegrityError, match="never change"), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(**change)


def test_what_a_run_read_is_set_once(feed):
    run = catalog.run(feed)
    assert Run.objects.filter(pk=run.pk).update(artifact_hash="a") == 1


def test_a_run_that_ended_says_when(feed):
    with pytest.raises(IntegrityError, match="runs_finished_when_ended"), transaction.atomic():
        catalog.run(feed, finished_at=None)


@pytest.mark.parametrize(
    "table",
    [
        *("source_products", "offers", "hidden_offers", "prices", "held_changes", "run_absences"),
        *("replaced_contents", "replaced_presence", "replaced_promotions", "ignored_prices", "corrected_prices"),
    ],
)
def test_volume_tables_are_keyed_by_their_source_and_refer_to_nothing(table):
    keys = rows(
        "SELECT (SELECT attname FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[0]) "
        "FROM pg_index i WHERE i.indrelid = %s::regclass AND i.indisunique",
        table,
    )
    assert set(keys) == {("source_id",)}
    assert rows("SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid = %s::regclass", table) == []
