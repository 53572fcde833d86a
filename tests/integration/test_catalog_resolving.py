"""Products of different sources are linked exactly or not at all, once however often it runs."""

import pytest
from tests.support import catalog
from tests.support.catalog import fetch
from tests.support.jobs import job
from tests.support.together import together
from tests.support.workers import run_until_idle

from harvester.catalog import resolver
from harvester.engine.enqueue import enqueue
from harvester.kernel.gtin import with_check_digit
from harvester.kernel.ids import uuid7

pytestmark = pytest.mark.usefixtures("database")
GTIN = with_check_digit("400638133393")


def resolve(source, run_no):
    made = enqueue(resolver.RESOLVE, {"source_id": str(source.pk), "run_no": run_no}).job_id
    run_until_idle(queues=("catalog",))
    ended = job(made)
    assert ended.state == "succeeded", ended.error
    return ended.result


def links():
    return {
        number: (status, match_type, product)
        for number, status, match_type, product in fetch(
            "SELECT source_product_id, status, match_type, product_id FROM product_links"
        )
    }


@pytest.fixture
def trusted():
    return catalog.source(upc_trusted=True)


@pytest.fixture
def untrusted():
    return catalog.source()


def test_trusted_numbers_link_across_sources_and_spellings(trusted):
    other = catalog.source(upc_trusted=True)
    one, two = catalog.product(trusted, 7, gtin=GTIN), catalog.product(other, 7, gtin=f"0{GTIN}")
    assert resolve(trusted, 7)["gtin"] == resolve(other, 7)["gtin"] == 1
    found = links()
    assert found[one][:2] == found[two][:2] == ("LINKED", "GTIN")
    assert found[one][2] == found[two][2]
    assert fetch("SELECT gtin FROM products") == [(GTIN.zfill(14),)]


BARRED = {
    "wrong check digit": GTIN[:-1] + str((int(GTIN[-1]) + 1) % 10),
    "a shop's own": with_check_digit("212345678901"),
}


@pytest.mark.parametrize("gtin", BARRED.values(), ids=BARRED)
def test_a_number_that_must_not_be_matched_is_not(trusted, gtin):
    number = catalog.product(trusted, 7, gtin=gtin)
    resolve(trusted, 7)
    assert links()[number] == ("NEEDS_REVIEW", None, None)
    assert fetch("SELECT count(*) FROM products") == [(0,)]


def test_the_number_of_a_source_that_is_not_trusted_counts_for_nothing(untrusted):
    number = catalog.product(untrusted, 7, gtin=GTIN)
    resolve(untrusted, 7)
    assert links()[number] == ("NEEDS_REVIEW", None, None)


def test_without_a_number_a_complete_fingerprint_links(trusted, untrusted):
    one = catalog.product(trusted, 7, brand="Acme", title="Olive Oil Virgin 500 ml")
    two = catalog.product(untrusted, 7, brand="ACME", title="Acme olive oil virgin 0.5 l", gtin=GTIN)
    three = catalog.product(untrusted, 7, brand="Acme", title="Olive Oil Virgin")
    resolve(trusted, 7)
    assert resolve(untrusted, 7) == {"products": 2, "gtin": 0, "fingerprint": 1, "needs_review": 1}
    found = links()
    assert found[one] == found[two]
    assert found[one][:2] == ("LINKED", "FINGERPRINT")
    assert found[three] == ("NEEDS_REVIEW", None, None)


def test_only_what_the_run_touched_is_resolved_and_again_changes_nothing(trusted, monkeypatch):
    monkeypatch.setattr(resolver, "BATCH", 2)
    numbers = [catalog.product(trusted, 7, gtin=GTIN) for _ in range(5)]
    changed = catalog.product(trusted, 3, updated_run_no=7)
    catalog.product(trusted, 3), catalog.product(catalog.source(), 7)
    assert resolve(trusted, 7)["products"] == 6
    assert sorted(links()) == [*numbers, changed]
    queries = ("SELECT l::text FROM product_links l ORDER BY l::text", "SELECT p::text FROM products p")
    before = [fetch(query) for query in queries]
    resolve(trusted, 7)
    assert [fetch(query) for query in queries] == before


def test_a_link_follows_what_its_product_has_become(trusted):
    number = catalog.product(trusted, 7)
    resolve(trusted, 7)
    fetch("UPDATE source_products SET gtin = %s, updated_run_no = 8", GTIN)
    resolve(trusted, 8)
    assert links()[number][:2] == ("LINKED", "GTIN")


def test_a_slow_look_at_an_older_run_does_not_undo_the_link_of_a_newer_one(trusted, monkeypatch):
    number = catalog.product(trusted, 7)
    resolver.ask_for_links(trusted.pk, 7)
    real = resolver._link

    def newer_run():
        fetch("UPDATE source_products SET gtin = %s, updated_run_no = 8", GTIN)
        resolver.ask_for_links(trusted.pk, 8)
        run_until_idle(queues=("catalog",))

    def a_newer_run_first(*args):
        monkeypatch.setattr(resolver, "_link", real)
        together(newer_run)
        real(*args)

    monkeypatch.setattr(resolver, "_link", a_newer_run_first)
    run_until_idle(queues=("catalog",), threads=1)
    assert links()[number][:2] == ("LINKED", "GTIN")


@pytest.mark.parametrize("decided", ["manual", "skipped"])
def test_what_a_person_decided_stays(trusted, decided):
    number = catalog.product(trusted, 7, gtin=GTIN)
    product = uuid7()
    values = {"product_id": product, "status": "LINKED", "match_type": "MANUAL"}
    values = values if decided == "manual" else {"status": "SKIPPED"}
    catalog.insert("product_links", source_id=trusted.pk, source_product_id=number, **values)
    before = links()
    resolve(trusted, 7)
    assert links() == before
