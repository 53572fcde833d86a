"""The breaker of a source in the database: kinds of runs apart, one probe, people, quota, alerts."""

import pytest
from django.db import connection, transaction
from tests.support import catalog
from tests.support.catalog import audited, fetch
from tests.support.together import together

from harvester.catalog import governance, sources
from harvester.catalog.governance import Gate
from harvester.catalog.models import Source
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput

pytestmark = pytest.mark.usefixtures("database")
OLGA = Actor(kind="person", id="olga", name="Olga")
FEED, PAGES = "AFFILIATE_FEED", "SCRAPE"


@pytest.fixture
def source():
    return catalog.source()


def note(source, results, kind=PAGES):
    for result in results:
        with transaction.atomic(), connection.cursor() as cursor:
            sources.locked(source.pk)
            governance.note(cursor, source.pk, kind, "closes" if result == "." else "fails", is_blocked=result == "b")


def pass_pause():
    fetch("UPDATE source_breakers SET paused_until = paused_until - interval '2 days'")


def may(source, holder="1", kind=PAGES):
    return governance.may_request(source.pk, kind, holder=holder)


def gate(source, kind=PAGES):
    [found] = [state.gate for state in governance.states([source.pk]) if state.kind == kind]
    return found


def alerts(state="open"):
    is_open = "IS NULL" if state == "open" else "IS NOT NULL"
    return [(kind, key.split(":")[-1]) for kind, key in fetch(
        f"SELECT kind, key FROM alerts WHERE resolved_at {is_open} ORDER BY id")]  # fmt: skip


def test_five_failures_pause_pages_and_not_the_feed(source):
    note(source, "xxxx")
    assert may(source).is_allowed
    note(source, "x")
    paused = may(source)
    assert not paused.is_allowed
    assert 290 < paused.wait <= 300
    assert may(source, kind=FEED).is_allowed
    note(source, ".", kind=FEED)
    assert gate(source) is Gate.OPEN, "a feed that works does not close it"
    assert may(catalog.source()).is_allowed
    assert alerts() == [("SOURCE_PAUSED", PAGES)]


def test_one_probe_at_a_time_and_a_success_closes_it(source):
    note(source, "xxxxx")
    pass_pause()
    allowed = together(*[lambda number=number: may(source, str(number)).is_allowed for number in range(4)])
    assert sorted(allowed) == [False, False, False, True]
    holder = str(allowed.index(True))
    assert may(source, holder).is_allowed, "who probes may ask again"
    note(source, ".")
    assert [may(source, str(number)).is_allowed for number in range(4)] == [True] * 4
    assert (alerts(), alerts("ended")) == ([], [("SOURCE_PAUSED", PAGES)])


def test_a_probe_that_was_killed_keeps_others_waiting_for_its_lease_only(source):
    note(source, "xxxxx")
    pass_pause()
    assert may(source, "killed").is_allowed
    assert not may(source, "next").is_allowed
    fetch("UPDATE source_breakers SET probe_until = probe_until - interval '2 minutes'")
    assert may(source, "next").is_allowed
    assert not may(source, "killed").is_allowed


def test_a_probe_that_fails_doubles_the_pause(source):
    note(source, "xxxxx")
    pass_pause()
    assert may(source).is_allowed
    note(source, "x")
    assert 590 < may(source).wait <= 600
    pass_pause()
    assert may(source, "other").is_allowed, "the lease ended with the probe"
    assert fetch("SELECT times FROM alerts") == [(2,)], "one alert, counted"


def test_refusals_stop_it_until_a_person_resumes_it(source):
    note(source, "bbbbb")
    for _ in range(2):
        pass_pause()
        assert may(source).is_allowed
        note(source, "b")
    pass_pause()
    stopped = may(source)
    assert (stopped.is_stopped, stopped.reason.endswith("its server refuses us")) == (True, True)
    assert alerts() == [("SOURCE_BLOCKED", PAGES)], "one alert for one cause"
    note(source, ".")
    assert may(source).is_stopped, "a late success is not a person"
    assert alerts() == [("SOURCE_BLOCKED", PAGES)]
    governance.resume(OLGA, source.pk, PAGES)
    assert may(source).is_allowed
    assert alerts() == []
    note(source, "xxxx")
    assert may(source).is_allowed, "it begins at zero"
    assert ("SOURCE_RESUMED", "source", []) in audited()


def test_people_pause_and_resume_a_kind_of_run(source):
    governance.pause(OLGA, source.pk, PAGES, "the shop asked us to")
    stopped = may(source)
    assert stopped.is_stopped
    assert "the shop asked us to" in stopped.reason
    assert may(source, kind=FEED).is_allowed
    with pytest.raises(Conflict, match="paused for SCRAPE already"):
        governance.pause(OLGA, source.pk, PAGES, "again")
    governance.resume(OLGA, source.pk, PAGES)
    assert may(source).is_allowed
    with pytest.raises(Conflict, match="is not paused"):
        governance.resume(OLGA, source.pk, PAGES)
    with pytest.raises(InvalidInput, match="kind: choose from"):
        governance.pause(OLGA, source.pk, "PAGES", "no such kind")
    with pytest.raises(InvalidInput, match="reason"):
        governance.pause(OLGA, source.pk, FEED, " ")
    assert [verb for verb, *_ in audited()] == ["SOURCE_PAUSED", "SOURCE_RESUMED"]


def test_a_source_is_asked_as_often_in_a_minute_as_its_quota_says(source):
    Source.objects.filter(pk=source.pk).update(rate_per_minute=2)
    assert may(source).is_allowed
    refused = may(source, kind=FEED)
    assert (refused.is_allowed, refused.is_stopped) == (False, False)
    assert 0 < refused.wait <= 30
    assert refused.reason == "its source is asked at most 2 times a minute"


def test_a_refusal_by_the_quota_takes_no_lease(source):
    Source.objects.filter(pk=source.pk).update(rate_per_minute=1)
    assert may(source).is_allowed
    note(source, "xxxxx")
    pass_pause()
    assert not may(source, "refused").is_allowed
    Source.objects.filter(pk=source.pk).update(rate_per_minute=None)
    assert may(source, "other").is_allowed


def test_a_success_of_a_source_that_works_writes_nothing(source):
    note(source, "..")
    assert fetch("SELECT FROM source_breakers") == []
    note(source, "x.")
    [(before,)] = fetch("SELECT xmin::text FROM source_breakers")
    note(source, "..")
    assert fetch("SELECT xmin::text FROM source_breakers") == [(before,)]
