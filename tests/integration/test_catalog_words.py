"""Offers are found by the words of what they are offers of, at once or soon after they are visible."""

import itertools
import json

import pytest
from tests.support import catalog
from tests.support.catalog import fetch
from tests.support.feeds import row
from tests.support.jobs import job
from tests.support.workers import run_until_idle

from harvester.catalog import offers, search_index
from harvester.catalog.search import search
from harvester.catalog.search_query import Query
from harvester.engine.enqueue import enqueue

pytestmark = pytest.mark.usefixtures("database")

#: A job looks with two, and each of them comes to an end of its own.
BOTH_SESSIONS = 2


def found(text):
    return sorted(offer.title for offer in search(Query(text=text)).offers)


def words_of_all():
    return dict(fetch("SELECT product_id, words::text FROM offer_words"))


def written_later():
    """What the jobs behind runs wrote."""
    return [json.loads(row[0]) for row in fetch("SELECT result::text FROM jobs WHERE queue = 'search' ORDER BY id")]


def test_a_run_with_some_new_products_is_found_at_once(world):
    world.put(100, 200)
    world.run()
    assert found("thing") == ["Thing 100", "Thing 200"]
    assert written_later() == []


def test_a_run_with_very_many_new_products_is_visible_first_and_found_soon(world, monkeypatch):
    monkeypatch.setattr(search_index, "AT_ONCE", 2)
    world.put(100, 200, 300)
    world.run()
    assert written_later() == [{"products": 3, "added": 3}]
    assert found("thing") == ["Thing 100", "Thing 200", "Thing 300"]
    assert not search_index.are_lacking(world.feed.source_id)
    assert offers.differences() == []


def test_a_changed_title_is_found_and_the_old_one_is_not(world):
    world.put(100, 200)
    world.run()
    world.put(row(100, Name="Hammer"), 200)
    world.run()
    assert (found("hammer"), found("thing")) == (["Hammer"], ["Thing 200"])
    assert offers.differences() == []


@pytest.fixture
def source():
    return catalog.source(is_display_primary=True)


def test_words_that_are_there_stay_and_products_without_offer_get_theirs_beforehand(source):
    first, second = (catalog.offer(source) for _ in range(2))
    unoffered = catalog.product(source)
    fetch("UPDATE offer_words SET words = 'kept' WHERE product_id = %s", first)
    fetch("DELETE FROM offer_words WHERE product_id = %s", second)
    made = enqueue(search_index.MAKE_SEARCHABLE, {"source_id": str(source.pk)}).job_id
    run_until_idle(queues=("search",))
    assert job(made).result == {"products": 3, "added": 2}
    assert words_of_all()[first] == "'kept'"
    assert f"'{unoffered}':2" in words_of_all()[unoffered]
    assert f"'{second}':2" in words_of_all()[second]


def test_slices_of_a_source_cover_all_of_its_products(source, monkeypatch):
    monkeypatch.setattr(search_index, "SLICE", 2)
    numbers = [catalog.offer(source) for _ in range(7)]
    fetch("DELETE FROM offer_words")
    made = enqueue(search_index.MAKE_SEARCHABLE, {"source_id": str(source.pk)}).job_id
    run_until_idle(queues=("search",))
    assert job(made).result == {"products": 7, "added": 7}
    assert sorted(words_of_all()) == numbers


def test_words_that_somebody_writes_meanwhile_are_left_to_him(source, monkeypatch):
    """A promotion with some new products writes theirs itself, also while the job is running."""
    first, second = (catalog.offer(source) for _ in range(2))
    fetch("DELETE FROM offer_words")
    raced = search_index._ADD_SLICE.replace("NOT EXISTS", "true OR NOT EXISTS")
    monkeypatch.setattr(search_index, "_ADD_SLICE", raced)
    fetch("INSERT INTO offer_words SELECT source_id, product_id, 'kept' FROM offers WHERE product_id = %s", first)
    made = enqueue(search_index.MAKE_SEARCHABLE, {"source_id": str(source.pk)}).job_id
    run_until_idle(queues=("search",))
    assert job(made).result == {"products": 2, "added": 1}
    assert words_of_all()[first] == "'kept'"
    assert f"'{second}':2" in words_of_all()[second]


def test_products_that_come_when_the_job_is_past_them_get_their_words_from_the_next(source, monkeypatch):
    catalog.offer(source)
    look, ends, late = search_index._Writer._next, itertools.count(1), []

    def look_and_end(making):
        part = look(making)
        if part is None and next(ends) == BOTH_SESSIONS:
            late.append(catalog.offer(source))
            fetch("DELETE FROM offer_words WHERE product_id = %s", late[0])
            search_index.ask_for_words(source.pk)
        return part

    monkeypatch.setattr(search_index._Writer, "_next", look_and_end)
    search_index.ask_for_words(source.pk)
    run_until_idle(queues=("search",))
    assert late[0] in words_of_all()
    assert [result["added"] for result in written_later()] == [0, 1]


def test_the_other_sources_are_left_alone(source):
    other = catalog.offer(catalog.source())
    fetch("DELETE FROM offer_words")
    enqueue(search_index.MAKE_SEARCHABLE, {"source_id": str(source.pk)})
    run_until_idle(queues=("search",))
    assert other not in words_of_all()


def test_the_nightly_check_has_missing_words_written(source):
    number = catalog.offer(source, run_no=catalog.run(source).no)
    fetch("DELETE FROM offer_words")
    enqueue(offers.CHECK_OFFERS)
    run_until_idle(queues=("maintenance", "search"))
    assert list(words_of_all()) == [number]


def test_a_product_whose_offer_comes_back_is_found(source):
    number = catalog.offer(source)
    fetch("DELETE FROM offer_words")
    fetch("DELETE FROM offers")
    offers.recompute(source.pk, [number])
    assert found("thing") == [f"thing {number}"]
