"""People decide what the resolver cannot, once, and it stays decided."""

from uuid import UUID

import pytest
from tests.support import catalog
from tests.support.catalog import details, fetch
from tests.support.workers import run_until_idle

from harvester.catalog import resolver, review_queue
from harvester.engine.enqueue import enqueue
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.gtin import with_check_digit
from harvester.kernel.ids import uuid7

pytestmark = pytest.mark.usefixtures("database")
OLGA = Actor(kind="person", id="olga", name="Olga")
GTIN = with_check_digit("400638133393")


def resolve(source, run_no=7):
    enqueue(resolver.RESOLVE, {"source_id": str(source.pk), "run_no": run_no})
    run_until_idle(queues=("catalog",))


@pytest.fixture
def source():
    return catalog.source(upc_trusted=True)


@pytest.fixture
def unknown(source):
    number = catalog.product(source, 7, title="Nameless thing", brand="Acme")
    resolve(source)
    return number


def state(number):
    return fetch("SELECT status, match_type, product_id FROM product_links WHERE source_product_id = %s", number)[0]


def waiting_numbers(**given):
    return [one.product_id for one in review_queue.waiting(**given)]


def test_what_waits_is_listed_in_order_page_by_page(source, unknown):
    more = [catalog.product(source, 8) for _ in range(3)]
    other = catalog.product(catalog.source(), 8)
    resolve(source, 8)
    resolve(catalog.Source.objects.exclude(pk=source.pk).get(), 8)
    first = review_queue.waiting(most=2)
    assert [one.product_id for one in first] == [unknown, more[0]]
    assert waiting_numbers(after=first[-1].cursor) == [*more[1:], other]
    assert waiting_numbers(source_id=source.pk, after=first[-1].cursor) == more[1:]
    with pytest.raises(InvalidInput, match="start at the beginning"):
        review_queue.waiting(after="x~y")


@pytest.mark.parametrize("decision", ["link", "create", "skip"])
def test_a_decision_survives_whatever_a_later_run_brings(source, unknown, decision):
    known = resolver.create_by_hand("Known", None) if decision == "link" else None
    if decision == "link":
        review_queue.link(OLGA, source.pk, unknown, known)
    elif decision == "create":
        known = review_queue.create(OLGA, source.pk, unknown, brand="Acme Inc")
    else:
        review_queue.skip(OLGA, source.pk, unknown, "a gift card")
    expected = ("SKIPPED", None, None) if decision == "skip" else ("LINKED", "MANUAL", known)
    assert state(unknown) == expected
    fetch("UPDATE source_products SET gtin = %s, updated_run_no = 8", GTIN)
    resolve(source, 8)
    assert state(unknown) == expected
    assert waiting_numbers() == []
    verb = {"link": "PRODUCT_LINKED", "create": "PRODUCT_CREATED", "skip": "PRODUCT_SKIPPED"}[decision]
    assert len(details(verb)) == 1


def test_a_new_product_is_named_like_its_first_one_unless_a_name_is_given(source, unknown):
    made = review_queue.create(OLGA, source.pk, unknown, title="A name")
    assert fetch("SELECT id, title, brand, gtin, fingerprint FROM products") == [(made, "A name", "Acme", None, None)]


def test_two_people_decide_once(source, unknown):
    review_queue.skip(OLGA, source.pk, unknown)
    for again in (
        lambda: review_queue.skip(OLGA, source.pk, unknown),
        lambda: review_queue.create(OLGA, source.pk, unknown),
        lambda: review_queue.link(OLGA, source.pk, unknown, uuid7()),
    ):
        with pytest.raises(Conflict, match="already skipped by Olga"):
            again()
    assert fetch("SELECT count(*) FROM products") == [(0,)]


def test_what_is_not_there_cannot_be_decided(source, unknown):
    with pytest.raises(NotFound, match="no canonical product"):
        review_queue.link(OLGA, source.pk, unknown, uuid7())
    with pytest.raises(NotFound, match="has not processed"):
        review_queue.skip(OLGA, source.pk, unknown + 1)
    assert waiting_numbers() == [unknown]


def test_a_decision_can_be_taken_back_and_the_resolver_tries_again(source, unknown):
    review_queue.skip(OLGA, source.pk, unknown)
    review_queue.reopen(OLGA, source.pk, unknown)
    assert waiting_numbers() == [unknown]
    with pytest.raises(Conflict, match="not decided by a person"):
        review_queue.reopen(OLGA, source.pk, unknown)
    fetch("UPDATE source_products SET gtin = %s, updated_run_no = 8", GTIN)
    resolve(source, 8)
    assert state(unknown)[:2] == ("LINKED", "GTIN")


def test_canonical_products_are_found_by_number_and_by_what_is_sold_as_them(source, unknown):
    number = catalog.offer(source)
    fetch("UPDATE source_products SET title = 'Claw hammer', gtin = %s, created_run_no = 9 WHERE id = %s", GTIN, number)
    catalog.recompute_offers(source, [number])
    resolve(source, 9)
    [[product]] = fetch("SELECT id FROM products")
    for text in ("claw", GTIN, f"0{GTIN}", str(product)):
        assert [(one.id, one.sources) for one in review_queue.find_products(text)] == [(product, 1)], text
    for text in ("", "  ", "!", "drill", str(UUID(int=0))):
        assert review_queue.find_products(text) == [], text
